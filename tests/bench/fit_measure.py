"""Measures what trainings need on this machine's GPUs → a line of JSON per rank, for fixtures/fit/h200.jsonl.

    python tests/bench/fit_measure.py OUT.jsonl [--gpus N] [--only NAME,NAME] [--dry]

Needs torch, transformers and DeepSpeed, nothing of dsdoctor. Each point is a process of its own (one per rank): a randomly
initialised model, three steps, and after each phase what torch's allocator, NVML and the kernel say. --dry: a tiny model, CPU.
"""

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LLAMA = {"model_type": "llama", "max_position_embeddings": 8192, "tie_word_embeddings": False}
MODELS: dict[str, dict[str, Any]] = {
    "gpt2": {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 2048, "vocab_size": 50257,
             "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    "l035": {**LLAMA, "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 20, "num_attention_heads": 16,
             "num_key_value_heads": 16, "vocab_size": 32000},
    "l08": {**LLAMA, "hidden_size": 1536, "intermediate_size": 4608, "num_hidden_layers": 24, "num_attention_heads": 12,
            "num_key_value_heads": 4, "vocab_size": 50304},
    "q15": {"model_type": "qwen2", "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12,
            "num_key_value_heads": 2, "vocab_size": 151936, "max_position_embeddings": 32768, "tie_word_embeddings": True},
    "l3": {**LLAMA, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28, "num_attention_heads": 24,
           "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": True},
    "tiny": {**LLAMA, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
             "num_key_value_heads": 2, "vocab_size": 512},
}  # fmt: skip
SMALL = {"reduce_bucket_size": 50_000_000, "allgather_bucket_size": 50_000_000}
USUAL = {"world": 1, "ckpt": False, "attn": "sdpa", "opt": "fused", "off": None, "poff": None, "cap": None, "init": False, "dtype": "bf16",
         "gas": 1, "pin": None, "limit": 150, "zero": SMALL}  # fmt: skip


def point(model: str, stage: int, seq: int, mb: int, **more: Any) -> dict[str, Any]:
    """``opt``: fused = torch's AdamW(fused=True), foreach = torch's AdamW, ds = what DeepSpeed takes by itself."""
    words = [f"{key}{value}" for key, value in more.items() if key not in ("zero", "limit")]
    name = "-".join([model, f"z{stage}", f"{seq}x{mb}", *words])
    return {**USUAL, "name": name, "model": model, "stage": stage, "seq": seq, "mb": mb, **more}


POINTS = [
    point("l035", 0, 2048, 4), point("l035", 2, 2048, 4), point("q15", 1, 2048, 2), point("q15", 2, 4096, 4, ckpt=True, zero={}),
    point("l3", 2, 2048, 1, ckpt=True, zero={}), point("l08", 3, 2048, 4, ckpt=True), point("l3", 3, 4096, 1, ckpt=True, zero={}),
    point("gpt2", 2, 1024, 8, attn="eager"), point("gpt2", 0, 1024, 8, opt="ds"), point("gpt2", 0, 1024, 8, opt="foreach"),
    point("q15", 2, 1024, 4, ckpt=True, opt="ds", off="cpu"), point("l08", 3, 1024, 4, ckpt=True, opt="ds", off="cpu", pin=False),
    point("l08", 3, 2048, 2, ckpt=True, opt="ds", off="cpu", poff="cpu"), point("l035", 2, 1024, 4, dtype="fp32"),
    point("q15", 2, 1024, 2, ckpt=True, cap=24), point("l08", 2, 4096, 2, cap=30), point("l035", 2, 2048, 4, cap=15),
    point("l035", 2, 2048, 2, world=2), point("l08", 1, 2048, 2, world=2, opt="ds"), point("l08", 3, 2048, 2, world=2, ckpt=True),
    point("l08", 3, 1024, 2, world=2, ckpt=True, opt="ds", off="cpu", poff="cpu", init=True),
]  # fmt: skip
DRY = [
    point("tiny", 0, 64, 2),
    point("tiny", 2, 64, 2, ckpt=True),
    point("tiny", 3, 64, 2, ckpt=True, init=True, world=2),
]


def ds_config(p: dict[str, Any]) -> dict[str, Any]:
    torchs = {"fused": {"torch_adam": True, "fused": True}, "foreach": {"torch_adam": True}, "ds": {}}
    zero: dict[str, Any] = {"stage": p["stage"], **(p["zero"] if p["stage"] else {})}
    for key, device in (("offload_optimizer", p["off"]), ("offload_param", p["poff"])):
        if device:
            zero[key] = {"device": device} if p["pin"] is None else {"device": device, "pin_memory": p["pin"]}
    kind = {"bf16": {"enabled": True}} if p["dtype"] == "bf16" else {}
    return {
        "train_micro_batch_size_per_gpu": p["mb"], "gradient_accumulation_steps": p["gas"], "gradient_clipping": 1.0,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-5, **torchs[p["opt"]]}}, "zero_optimization": zero, **kind,
    }  # fmt: skip


def kernel_says() -> dict[str, int]:
    wanted = ("VmHWM", "VmRSS", "RssAnon", "RssFile", "RssShmem")
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    return {words[0][:-1]: int(words[1]) * 1024 for words in lines if words and words[0][:-1] in wanted}


def model_of(p: dict[str, Any], config: dict[str, Any]) -> Any:
    """In RAM, without the minutes that random initialisation takes: tensors are filled with one tile of noise."""
    import contextlib

    import torch

    hugging: Any = importlib.import_module("transformers")
    hugging.PreTrainedModel.initialize_weights = lambda self, *a, **k: None
    for name in ("kaiming_uniform_", "normal_", "uniform_", "zeros_", "ones_"):
        setattr(torch.nn.init, name, lambda tensor, *a, **k: tensor)
    dtype = torch.bfloat16 if p["dtype"] == "bf16" else torch.float32
    parsed = hugging.AutoConfig.for_model(**MODELS[p["model"]], use_cache=False)
    made: Any = contextlib.nullcontext()
    if p["init"]:
        made = importlib.import_module("deepspeed").zero.Init(config_dict_or_path=config, dtype=dtype)
    with made:
        model = hugging.AutoModelForCausalLM.from_config(parsed, dtype=dtype, attn_implementation=p["attn"])
    tile = (torch.randn(1 << 20) * 0.02).to(dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            flat = getattr(parameter, "ds_tensor", parameter).data.view(-1)
            for start in range(0, flat.numel(), tile.numel()):
                flat[start : start + tile.numel()].copy_(tile[: flat.numel() - start])
    if p["ckpt"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model.train()


def gpu_says() -> list[int]:
    import torch

    if not torch.cuda.is_available():
        return [0, 0]
    torch.cuda.synchronize()
    peaks = [torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()]
    torch.cuda.reset_peak_memory_stats()
    return peaks


def measure(p: dict[str, Any], answer: dict[str, Any]) -> None:
    import torch

    deepspeed = importlib.import_module("deepspeed")
    cuda, local = torch.cuda.is_available(), int(os.environ["LOCAL_RANK"])
    if cuda:
        torch.cuda.set_device(local)
        if p["cap"]:
            torch.cuda.set_per_process_memory_fraction(p["cap"] * 2**30 / torch.cuda.mem_get_info()[1])
    else:  # a dry run needs no compiled op
        setattr(sys.modules["deepspeed.comm.torch"], "build_shm_op", lambda: None)  # noqa: B010
    deepspeed.comm.init_distributed("nccl" if cuda else "gloo", verbose=False)
    config = answer["ds_config"] = ds_config(p)
    phases: dict[str, list[int]] = answer.setdefault("phases", {})

    def mark(name: str) -> None:
        phases[name] = [*gpu_says(), kernel_says()["VmHWM"]]

    model = model_of(p, config)
    answer["parameters"] = sum(getattr(x, "ds_numel", x.numel()) for x in model.parameters())
    mark("build")
    engine = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)[0]
    del model
    mark("initialize")
    for step in range(3):
        for _ in range(p["gas"]):
            ids = torch.randint(0, MODELS[p["model"]]["vocab_size"], (p["mb"], p["seq"]), device=engine.device)
            loss = engine(input_ids=ids, labels=ids).loss
            mark(f"forward{step}")
            engine.backward(loss)
            mark(f"backward{step}")
            engine.step()
            mark(f"step{step}")
            del loss
    answer.update(peak_allocated=max(x[0] for x in phases.values()), peak_reserved=max(x[1] for x in phases.values()))
    answer.update(
        host_peak=kernel_says()["VmHWM"], host_end=kernel_says(), nvml_process=nvml_says() if cuda else None, ok=True
    )
    answer.update(torch=torch.__version__, deepspeed=deepspeed.__version__, optimizer=type(engine.optimizer).__name__)


def nvml_says() -> int | None:
    """This process's memory, the driver's own included."""
    import torch

    pynvml: Any = importlib.import_module("pynvml")
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByUUID(
        f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"
    )
    found = [x.usedGpuMemory for x in pynvml.nvmlDeviceGetComputeRunningProcesses(handle) if x.pid == os.getpid()]
    return found[0] if found else None


def rank_main(p: dict[str, Any], target: Path) -> None:
    kept = {key: value for key, value in p.items() if key not in ("model", "zero", "limit")}
    answer: dict[str, Any] = {"point": kept, "rank": int(os.environ["RANK"]), "ok": False, "config": MODELS[p["model"]]}
    try:
        measure(p, answer)
    except RuntimeError as error:  # torch's out-of-memory error is one: a result
        answer["error"] = " ".join(str(error).split())[:300]
    target.write_text(json.dumps(answer))
    os._exit(0)


def play(p: dict[str, Any], port: int, dry: bool) -> list[str]:
    """Starts the ranks of one point and ends them when its time is over."""
    folder = Path(tempfile.mkdtemp(prefix="fit-"))
    ranks = []
    for rank in range(p["world"]):
        env = dict(
            os.environ,
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            WORLD_SIZE=str(p["world"]),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
        )
        env.update({"DS_ACCELERATOR": "cpu"} if dry else {})
        command = [sys.executable, __file__, "--rank", json.dumps(p), str(folder / f"{rank}.json")]
        ranks.append(subprocess.Popen(command, env=env, start_new_session=True))
    deadline = time.monotonic() + p["limit"]
    while time.monotonic() < deadline and any(rank.poll() is None for rank in ranks):
        time.sleep(0.2)
    for process in ranks:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return [path.read_text() for path in sorted(folder.glob("*.json"))]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--dry", action="store_true")
    asked = parser.parse_args()
    for number, p in enumerate(DRY if asked.dry else POINTS):
        if p["world"] <= asked.gpus and (not asked.only or p["name"] in asked.only.split(",")):
            lines = play(p, 29600 + number, asked.dry)
            with asked.out.open("a") as out:
                out.writelines(line + "\n" for line in lines)
            print(p["name"], [json.loads(line)["ok"] for line in lines], flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        rank_main(json.loads(sys.argv[2]), Path(sys.argv[3]))
    main()
