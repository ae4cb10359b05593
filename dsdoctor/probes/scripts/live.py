"""Runs in the patient: import torch, ask it, import deepspeed, ask it, run ds_report. One JSON line per step.

With ``--config FILE RANKS FILL`` it ends with asking DeepSpeed about a ds_config (config_words.py).

``{"begin": NAME}`` goes out before each step that may crash or hang, so that whoever reads knows where it stopped.
Stdlib only, Python 3.8.
"""

import faulthandler
import importlib
import importlib.util
import json
import os
import sys
import time
import traceback
import warnings

LIMIT = 2000  # characters of a message


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


def attempt(name, action):
    """Do one step; its outcome (an Import) goes out with what ``action`` returned."""
    say(begin=name)
    started = time.monotonic()
    try:
        value = action()
    except BaseException as error:  # SystemExit and friends included: the user's packages may do anything
        say(
            end=name,
            seconds=time.monotonic() - started,
            error_type=type(error).__name__,
            error=known(lambda error=error: str(error)[:LIMIT]),  # its own __str__ may raise
            traceback="".join(traceback.format_exc().splitlines(True)[-12:])[-4000:],
        )
        return None
    say(end=name, seconds=time.monotonic() - started, value=value)
    return value


def known(action):
    """The value of ``action``, or None: one question must not cost the others."""
    try:
        return action()
    except Exception:
        return None


def text(value):
    return None if value is None else str(value)


def import_torch():
    torch = importlib.import_module("torch")
    return {
        "version": known(lambda: text(torch.__version__)),
        "cuda": known(lambda: text(torch.version.cuda)),
        "mps": known(lambda: bool(torch.backends.mps.is_available())),
        "cxx11_abi": known(lambda: bool(torch._C._GLIBCXX_USE_CXX11_ABI)),
        "architectures": known(lambda: torch.cuda.get_arch_list()) or [],
        "nccl": known(lambda: ".".join(str(n) for n in torch.cuda.nccl.version())),
        "cudnn": known(lambda: cudnn(torch)),
    }


def cudnn(torch):
    number = torch.backends.cudnn.version()
    if number is None:
        return None
    return "%d.%d.%d" % (
        (number // 10000, number // 100 % 100, number % 100)
        if number >= 90000
        else (number // 1000, number // 100 % 10, number % 100)
    )


def start_cuda():
    """Makes the driver answer. May hang: everything from files and from the import is out by now."""
    torch = sys.modules["torch"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
        count = torch.cuda.device_count()
        error = None
        if available:
            torch.cuda.init()
        elif torch.version.cuda:
            try:
                torch.cuda.init()
            except Exception as failure:
                error = str(failure)
    texts = [str(w.message) for w in caught if "cuda" in str(w.message).lower() or "nvml" in str(w.message).lower()]
    return {
        "cuda_available": available,
        "device_count": count,
        "cuda_error": "\n".join(texts + ([error] if error else []))[:LIMIT] or None,
        "devices": [torch.cuda.get_device_name(i) for i in range(count)] if available else [],
        "capabilities": ["%d.%d" % torch.cuda.get_device_capability(i) for i in range(count)] if available else [],
        "bf16": torch.cuda.is_bf16_supported() if available else None,
    }


def add():
    """A small kernel of torch's own on every GPU: is there code for this GPU, and is the sum right?"""
    torch = sys.modules["torch"]
    for index in range(torch.cuda.device_count()):
        ones = torch.ones(64, 64, device="cuda:%d" % index)
        if float((ones + ones).sum()) != 2.0 * 64 * 64:
            raise RuntimeError("wrong sum on GPU %d" % index)


def cpp_extension():
    module = importlib.import_module("torch.utils.cpp_extension")
    return {"cuda_home": text(module.CUDA_HOME)}


def import_deepspeed():
    deepspeed = importlib.import_module("deepspeed")
    accelerator = importlib.import_module("deepspeed.accelerator").get_accelerator()
    return {
        "version": known(lambda: text(deepspeed.__version__)),
        "accelerator": known(lambda: text(accelerator.device_name()).split(":")[0])
        or known(lambda: text(accelerator._name)),
        "accelerator_why": "DS_ACCELERATOR" if os.environ.get("DS_ACCELERATOR") else "detected",
        "communication_backend": known(lambda: text(accelerator.communication_backend_name())),
        "bf16": known(lambda: bool(accelerator.is_bf16_supported())),
        "fp16": known(lambda: bool(accelerator.is_fp16_supported())),  # the CPU says None for no
    }


def ds_report():
    """ds_report's own main in this process, so that torch is imported once. Its text is caught at descriptor level."""
    module = importlib.import_module("deepspeed.env_report")
    sys.argv = ["ds_report"]
    text = Caught()
    failure = None
    with text:
        try:
            (getattr(module, "cli_main", None) or module.main)()
        except SystemExit:
            pass
        except BaseException:
            failure = traceback.format_exc()
    return {"text": (BEFORE + text.read())[-400000:] + (failure or "")}


def op_builders():
    """What the builders say of themselves. Nothing is compiled; their own probes ran in ds_report."""
    module = importlib.import_module("deepspeed.env_report")
    builders = getattr(module, "ALL_OPS", None) or importlib.import_module("deepspeed.ops.op_builder").ALL_OPS
    installed = known(lambda: importlib.import_module("deepspeed.git_version_info").installed_ops) or {}
    base = importlib.import_module("deepspeed.ops.op_builder.builder").CUDAOpBuilder
    return {"builders": [ask(name, builders[name], base, installed) for name in sorted(builders, key=str)]}


def ask(name, builder, base, installed):
    told = {"name": str(name), "builder": type(builder).__name__, "cuda": isinstance(builder, base)}
    told["installed"] = bool(installed.get(name, False))
    try:
        told["sources"] = [str(source) for source in builder.sources() if source]
        told["missing_sources"] = [s for s in told["sources"] if not os.path.exists(builder.deepspeed_src_path(s))]
        told["libraries"] = [flag[2:] for flag in builder.extra_ldflags() if flag.startswith("-l")]
        builder.include_paths()  # some import a package here
        told["architectures"] = known(lambda: kept(builder)) if told["cuda"] else None
    except BaseException as error:  # SystemExit too: one builder must not cost the others
        said = known(lambda error=error: str(error)[:LIMIT])  # its own __str__ may raise
        told["error"] = "%s: %s" % (type(error).__name__, said)
    return told


def kept(builder):
    """Those of the wanted architectures that the builder's filter leaves."""
    torch = sys.modules["torch"]
    listed = os.environ.get("TORCH_CUDA_ARCH_LIST", "").replace(" ", ";").split(";")
    here = ["%d.%d" % torch.cuda.get_device_capability(i) for i in range(torch.cuda.device_count())]
    wanted = [entry.strip() for entry in listed if entry.strip()] or here
    return [".".join(cc) for cc in builder.filter_ccs(sorted(set(wanted)))] if wanted else None


def config_words():
    """What DeepSpeed says of the user's ds_config."""
    path, ranks, fill = WANTED[WANTED.index("--config") + 1 :][:3]
    place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "config_words.py")
    spec = importlib.util.spec_from_file_location("dsdoctor_config_words", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    version = known(lambda: text(sys.modules["deepspeed"].__version__))
    return dict(module.words(path, int(ranks), fill == "fill"), version=version)


def flush():
    for stream in (sys.stdout, sys.stderr):
        known(lambda stream=stream: stream.flush())  # the user's packages may have replaced or closed it


class Caught:
    """Catches descriptors 1 and 2 in memory (a full /tmp must not matter), in a file where there is no memfd."""

    def __enter__(self):
        if hasattr(os, "memfd_create"):
            self.file = os.fdopen(os.memfd_create("ds_report"), "w+b")
        else:
            import tempfile

            self.file = tempfile.TemporaryFile()
        flush()
        self.saved = [os.dup(1), os.dup(2)]
        os.dup2(self.file.fileno(), 1)
        os.dup2(self.file.fileno(), 2)
        return self

    def __exit__(self, *_):
        flush()
        os.dup2(self.saved[0], 1)
        os.dup2(self.saved[1], 2)
        for descriptor in self.saved:
            os.close(descriptor)

    def read(self):
        self.file.seek(0)
        return self.file.read().decode("utf-8", "replace")


def main():
    if attempt("import torch", import_torch) is None:
        return
    attempt("import torch.utils.cpp_extension", cpp_extension)  # asks no driver: before what may hang
    cuda = attempt("start CUDA", start_cuda)
    if cuda and cuda["cuda_available"]:
        attempt("run on the GPU", add)
    noise = Caught()
    with noise:
        loaded = attempt("import deepspeed", import_deepspeed)
    global BEFORE
    BEFORE = noise.read()
    known(lambda: sys.stderr.write(BEFORE))
    if loaded is not None:
        attempt("ds_report", ds_report)
        with Caught():
            attempt("op builders", op_builders)
        if "--config" in WANTED:
            with Caught():
                attempt("judge the config", config_words)


OUT = open_answer()
BEFORE = ""
WANTED = list(sys.argv)  # ds_report replaces sys.argv
faulthandler.enable(os.dup(2))  # a copy: Caught redirects 2
if not getattr(sys.flags, "safe_path", False):
    sys.path[0] = os.getcwd()  # as for `python train.py` started here
main()
say(end="all")
