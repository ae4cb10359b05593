"""Runs in the patient: a few ZeRO-2 steps of a tiny model. One JSON line per event on the answer descriptor.

The batch is fixed, so the loss must fall. Stdlib plus the patient's torch and DeepSpeed; Python 3.8.
"""

import faulthandler
import json
import math
import os
import re
import sys
import time
import traceback

STEPS = 8
STAGE = 2
WIDTHS = (64, 256, 64)
BATCH = 16


def open_answer():
    descriptor = int(sys.argv[sys.argv.index("--answer-fd") + 1])
    if os.name == "nt":
        import msvcrt

        descriptor = msvcrt.open_osfhandle(descriptor, os.O_WRONLY)
    os.set_inheritable(descriptor, False)
    return os.fdopen(descriptor, "wb", buffering=0)


def say(**values):
    # no ASCII escapes: "replace" must see lone surrogates, which no report can hold
    OUT.write(json.dumps(values, default=str, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


def shorten(text):
    """At most 4000 characters. Of a long build log: its first line, then from the first error on, no line without end."""
    if len(text) > 4000:
        lines = [line[:1000] for line in text.splitlines()]
        wrong = re.compile(r"(?i)\berror\b|undefined reference|cannot find|not found")
        first = next((i for i, line in enumerate(lines) if i and wrong.search(line)), 1)
        text = "\n".join([lines[0]] + lines[first:])
    return text[:4000]


class phase:
    """Announces a phase and how long it took."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        say(begin=self.name)
        self.started = time.monotonic()

    def __exit__(self, kind, error, trace):
        if kind is None:
            say(end=self.name, seconds=time.monotonic() - self.started)


def announce_ops():
    """Make each op that DeepSpeed compiles or loads a phase. A DeepSpeed that builds in another way goes unannounced."""
    try:
        from deepspeed.ops.op_builder.builder import OpBuilder

        jit_load = OpBuilder.jit_load
    except Exception:
        return

    def announced(self, *args, **kwargs):
        name = str(getattr(self, "name", "an op"))
        library = os.path.join(os.environ.get("TORCH_EXTENSIONS_DIR", ""), name, name)
        built = any(os.path.exists(library + ending) for ending in (".so", ".pyd"))
        with phase(("load " if built else "compile ") + name):
            return jit_load(self, *args, **kwargs)

    OpBuilder.jit_load = announced


def config(dtype):
    settings = {
        "train_micro_batch_size_per_gpu": BATCH,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},  # torch_adam: no op to compile
        "zero_optimization": {"stage": STAGE, "reduce_bucket_size": 1000000, "allgather_bucket_size": 1000000},
        "steps_per_print": 1000000,
    }
    if dtype == "bf16":
        settings["bf16"] = {"enabled": True}
    elif dtype == "fp16":
        settings["fp16"] = {"enabled": True, "initial_scale_power": 8}
    return settings


def choose_dtype(torch):
    """bf16 where the hardware has it, else fp16 on a GPU; fp32 on a CPU."""
    if not torch.cuda.is_available() or os.environ.get("DS_ACCELERATOR") == "cpu":
        return "fp32"
    return "bf16" if torch.cuda.get_device_capability(0)[0] >= 8 else "fp16"


def train(torch, deepspeed):
    torch.manual_seed(7)
    dtype = choose_dtype(torch)
    layers = [torch.nn.Linear(WIDTHS[0], WIDTHS[1]), torch.nn.ReLU(), torch.nn.Linear(WIDTHS[1], WIDTHS[2])]
    model = torch.nn.Sequential(*layers)
    with phase("initialize"):
        engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config(dtype))
    accelerator = deepspeed.accelerator.get_accelerator()
    name = accelerator._name
    device = torch.cuda.get_device_name(0) if name == "cuda" else name
    say(accelerator=name, device=device, dtype=dtype, stage=STAGE, world_size=torch.distributed.get_world_size())
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[dtype]
    inputs = torch.randn(BATCH, WIDTHS[0], dtype=kind, device=engine.device)
    targets = torch.randn(BATCH, WIDTHS[2], dtype=kind, device=engine.device)

    def step():
        started = time.monotonic()
        loss = torch.nn.functional.mse_loss(engine(inputs).float(), targets.float())
        engine.backward(loss)
        engine.step()
        value = float(loss.detach())  # waits for the device
        if not math.isfinite(value):
            raise FloatingPointError("the loss became %s" % value)
        say(step_ms=(time.monotonic() - started) * 1000, loss=value)

    with phase("first step"):
        step()
    with phase("steps"):
        for _ in range(STEPS - 1):
            step()
    if name == "cuda":
        say(peak_bytes=torch.cuda.max_memory_allocated())
    say(steps=engine.global_steps)
    torch.distributed.destroy_process_group()


def peak_host_bytes():
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main():
    try:
        with phase("import torch"):
            import torch
        with phase("import deepspeed"):
            import deepspeed
        announce_ops()
        train(torch, deepspeed)
    except BaseException as error:
        trace = traceback.format_exc()
        sys.stderr.write(trace)
        say(error_type=type(error).__name__, error=shorten(str(error)))
        sys.exit(1)
    finally:
        say(peak_host_bytes=peak_host_bytes())
    say(done=True)


OUT = open_answer()
faulthandler.enable()
if not getattr(sys.flags, "safe_path", False):
    sys.path[0] = os.getcwd()
if __name__ == "__main__":
    main()
