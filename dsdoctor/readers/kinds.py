"""What kinds of text a paste holds, by content, and the lines by which a scanner notices that one begins."""

import re
from collections.abc import Callable
from typing import NamedTuple

from dsdoctor.facts.log import TextKind
from dsdoctor.readers import accelerate_config, config_in_text, package_list, passing, pasted, regex
from dsdoctor.readers.ds_report_rows import INFO_TITLE, KNOWN_KEY, TITLE


class Landmark(NamedTuple):
    """A kind, a literal that stands in the line, and a pattern that is found in it (compiled when it is wanted)."""

    kind: TextKind
    literal: str
    pattern: str

    def on(self, line: str) -> bool:
        """Whether this line is one."""
        return self.literal in line and re.search(self.pattern, line) is not None


# A ds_report of which only the end of the program is there.
DIED = regex.compile(
    r"[/\\]ds_report(?:\.exe)?\", line \d+|[/\\]deepspeed[/\\]env_report\.py\", line \d+|^\s*(?:usage: )?ds_report(?::| \[)"
    r"|ds_report: (?:command )?not found|command not found: ds_report|'ds_report' is not recognized"
)
_NCCL = r"NCCL (?:INFO|WARN|TRACE|VERSION)"


def _marks(kind: TextKind, *pairs: tuple[str, str]) -> tuple[Landmark, ...]:
    return tuple(Landmark(kind, literal, pattern) for literal, pattern in pairs)


# A text of which facts can be read begins on such a line, or a little before it.
landmarks: tuple[Landmark, ...] = (
    *_marks("ds_report", (TITLE, r"DeepSpeed C\+\+/CUDA extension op report"), (INFO_TITLE, r"DeepSpeed general environment info"),
            ("install path", KNOWN_KEY.pattern), ("torch version", KNOWN_KEY.pattern), ("deepspeed info", KNOWN_KEY.pattern), ("ds_report", DIED.pattern), ("env_report", DIED.pattern)),
    *_marks("collect-env", ("Collecting environment information", r"^\W*Collecting environment information\.\.\."),
            ("PyTorch version", r"^\s*PyTorch version\s*: (?:\d|N/A)"), ("used to build PyTorch", r"^\s*(?:CUDA|ROCM) used to build PyTorch\s*:"),
            ("GPU models and configuration", r"^\s*GPU models and configuration\s*:"), ("OS  ", r"^\s*OS {2,}: ")),
    *_marks("accelerate-env", ("Accelerate` version", r"^\s*[-*] `Accelerate` version: \d"),
            ("Accelerate` default config", r"^\s*[-*] `Accelerate` default config:")),
    *_marks("transformers-env", ("transformers` version", r"^\s*[-*] `transformers` version: \d"),
            ("transformers version", r"^\s*(?:[-*\u2022] ?)?transformers version: \d")),
    *_marks("package-list", ("Package", package_list.HEAD.pattern), ("==", package_list.FREEZE.pattern)),
    *_marks("build-log", ("Successfully installed", r"^(?:#\d+ [\d.]+ )?Successfully installed \S+-\d"),
            ("already satisfied", r"Requirement already satisfied: \S"),
            ("PyTorch extensions root", r"Using \S+ as PyTorch extensions root"), ("CUDA version", passing.MISMATCH.pattern)),
    *_marks("training-log", ("DeepSpeed info", r"DeepSpeed info: version=\d")),
    *_marks("conda-list", ("packages in environment", package_list.CONDA_HEAD.pattern),
            ("# Name", package_list.CONDA_HEAD.pattern), ("=", package_list.EXPORT.pattern)),
    *_marks("nvidia-smi", ("NVIDIA-SMI", r"NVIDIA-SMI (?:\d+\.\d+|has failed)"), ("NVSMI LOG", r"=+NVSMI LOG=+"),
            ("(UUID: GPU-", r"^\s*GPU \d+: .+ \(UUID: GPU-"), ("initialize NVML", r"Failed to initialize NVML"),
            ("nvidia-smi", r"nvidia-smi: (?:command )?not found|command not found: nvidia-smi|'nvidia-smi' is not recognized"),
            ("No devices were found", r"^\s*No devices were found\s*$"), ("GPU0", r"^\s*GPU0\s+(?:X|GPU1)\s")),
    *_marks("nvcc", ("Cuda compilation tools", r"Cuda compilation tools, release \d+\.\d+"),
            ("NVIDIA (R) Cuda compiler", r"nvcc: NVIDIA \(R\) Cuda compiler driver"),
            ("nvcc", r"nvcc: (?:command )?not found|command not found: nvcc|'nvcc' is not recognized")),
    *_marks("ds_config", ('"zero_optimization"', r'^\s*[{,]?\s*"zero_optimization"\s*:'),
            ('"train_', r'"train_(?:micro_batch_size_per_gpu|batch_size)"\s*:'), ("json = {", r"\bjson = \{\s*$"),
            ("print_user_config", r"\bjson = \{\s*$")),
    *_marks("accelerate-config", ("compute_environment", r"^\s*(?:- )?compute_environment: \S"),
            ("deepspeed_config", r"^\s*(?:- )?deepspeed_config:"), ("distributed_type", r"^\s*(?:- )?distributed_type: \S")),
)  # fmt: skip

_LOGS: tuple[Landmark, ...] = (
    *_marks("training-log", ("Traceback (most recent", r"Traceback \(most recent call last\):"),
            ("[INFO]", r"\[INFO\] \[(?!real_accelerator)\w+\.py:\d+:\w+\]"), ("[WARNING]", r"\[WARNING\] \[\w+\.py:\d+:\w+\]"),
            ("[ERROR]", r"\[ERROR\] \[\w+\.py:\d+:\w+\]"), ("it/s", r"\d+/\d+ \[.*it/s"), ("s/it", r"\d+/\d+ \[.*s/it"),
            ("loss", r"'loss': |\bloss[=:] ?\d"), ("ChildFailedError", r"ChildFailedError"), ("exits with return code", r"exits with return code = -?\d+"),
            ("torch.distributed", r"torch\.distributed\.(?:run|launch|elastic)")),
    *_marks("build-log", ("FAILED: ", r"^\s*FAILED: \S"), ("Building wheel", r"Building wheels? for "), ("ninja: ", r"\bninja: (?:build stopped|error|fatal)"),
            ("fatal error: ", r"^\S+:\d+(?::\d+)?: fatal error: "), ("Emitting ninja build file", r"Emitting ninja build file"),
            ("subprocess-exited-with-error", r"subprocess-exited-with-error"), ("Collecting ", r"^Collecting [\w.-]+(?:\[.*\])?(?:[=<>~!].*| @ .*| \(.*)?$"), ("/bin/nvcc", r"/bin/nvcc .*\s-c\s")),
    *_marks("kernel-log", ("Out of memory", r"Out of memory: Killed process \d+"), ("oom-kill", r"oom-kill:constraint="), ("NVRM", r"NVRM: "),
            ("segfault at", r"\bsegfault at [0-9a-f]+ ip "), ("Memory cgroup out", r"Memory cgroup out of memory")),
    *_marks("nccl-debug", ("NCCL ", rf"\b{_NCCL}\b")),
)  # fmt: skip


def kinds(text: str) -> tuple[TextKind, ...]:
    """All kinds that a text holds, in the order in which they begin; ("text",) for none of them. Never raises."""
    return of_lines(pasted.lines(text))


def of_lines(lines: list[str]) -> tuple[TextKind, ...]:
    """The same, of lines that are clean already."""
    first: dict[TextKind, int] = {}
    whole = "\n".join(lines)
    present = [mark for mark in (*landmarks, *_LOGS) if mark[1] in whole]
    for number, line in enumerate(lines):
        for kind, literal, pattern in present:
            if literal in line and re.search(pattern, line):
                first.setdefault(kind, number)
    for kind, holds in _CONFIRM.items():
        if kind in first and not holds(lines):
            del first[kind]
    return tuple(sorted(first, key=lambda kind: first[kind])) or ("text",)


_CONFIRM: dict[TextKind, Callable[[list[str]], object]] = {  # one line of these is not enough
    "accelerate-config": lambda lines: accelerate_config.read(list(enumerate(lines, 1)), "") is not None,
    "ds_config": lambda lines: config_in_text.read(list(enumerate(lines, 1)), "") is not None,
    "package-list": package_list.read,
    "conda-list": package_list.read,
}
