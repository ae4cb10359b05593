"""``python -m torch.utils.collect_env``, in any release of torch, alone or inside of vLLM's or PyTorch's issue form.

Grammar: torch/utils/collect_env.py of the 1.x and 2.x sources, of the 2.13.0 wheel, and recorded output
(fixtures/transcripts/collect_env__*.txt). vLLM's copy (vllm/collect_env.py) has the same rows in boxes, the OS first.
"""

import re

from dsdoctor.readers import pasted, regex
from dsdoctor.readers.told import MOST_PACKAGES, Build, Told, build_of, first, normalised

_ROW = regex.compile(
    r"^\s*(PyTorch version|CUDA used to build PyTorch|ROCM used to build PyTorch|OS|GCC version|Clang version|Libc version"
    r"|Python version|Python platform|Is CUDA available|CUDA runtime version|GPU models and configuration"
    r"|Nvidia driver version)\s*: ?(.*)$"
)
_FIRST = "PyTorch version"
_ALONE = ("CUDA used to build PyTorch", "GPU models and configuration", "Is CUDA available", "Python platform")
_NONE = ("", "N/A", "None", "Could not collect", "No CUDA")
_GPU = regex.compile(r"^\s*GPU (\d{1,4}): (.+?)(?: \(UUID: .*)?$")
_PACKAGE = regex.compile(r"^\s*\[pip3?\] ([A-Za-z0-9][\w.-]*)==(\S+)")
_CONDA = regex.compile(r"^\s*\[conda\] ([A-Za-z0-9][\w.-]*)\s+(\d\S*)\s+\S+")
_LSCPU = regex.compile(r"^\s*(Architecture|CPU\(s\)|Vendor ID|Model name|Flags)\s*:\s+(\S.*)$")
_VERSION = regex.compile(r"(\d+(?:\.\d+)+)")
_GCC = regex.compile(r"(?:^|\s)(\d{1,2}\.\d+(?:\.\d+)?)(?:\s|$)")
_MOST_GPUS = 64
_BOXED_OS = regex.compile(r"^\s*OS {2,}: ")
_BOXED = 12  # lines from the first row of vLLM's form to its torch


def parse(text: str) -> Told | None:
    """The last report in a text; None when it holds none. Never raises."""
    return read(pasted.lines(text))


def read(lines: list[str]) -> Told | None:
    """The same, of lines that are clean already."""
    start = _last_report(lines)
    if start is None:
        return None
    rows, gpus, cpu, packages = _rows(lines[start:])
    torch = _told(rows.get(_FIRST))
    return Told(
        line=start,
        exactness=2,
        torch=torch,
        build=_build(torch, rows),
        python=first(_VERSION, rows.get("Python version")),
        platform=_told(rows.get("Python platform")),
        os=_told(rows.get("OS")),
        libc=_told(rows.get("Libc version")),
        gcc=first(_GCC, re.sub(r"\([^()]*\)", " ", rows.get("GCC version", ""))),
        clang=first(_VERSION, rows.get("Clang version")),
        nvcc=first(regex.compile(r"^\s*(\d+\.\d+)"), rows.get("CUDA runtime version")),
        driver=first(regex.compile(r"(?:^|\s)(\d+\.\d+(?:\.\d+)?)(?:\s|$)"), rows.get("Nvidia driver version")),
        gpus=gpus or None,
        listed=bool(gpus),
        other_gpus=_others(rows),
        cpu=cpu or None,
        packages=packages,
    )


def _last_report(lines: list[str]) -> int | None:
    """Where the last report begins; a text that holds only a part of one begins with that."""
    begin, alone = None, None
    for number, line in enumerate(lines):
        if (row := _ROW.match(line)) is None:
            continue
        if row.group(1) == _FIRST:
            begin = next((n for n in range(max(0, number - _BOXED), number) if _BOXED_OS.match(lines[n])), number)
        elif row.group(1) in _ALONE and alone is None:
            alone = number
    if begin is not None and sum(_ROW.match(x) is not None for x in lines[begin : begin + 40]) > 1:
        return begin
    return alone


def _rows(lines: list[str]) -> tuple[dict[str, str], dict[int, str], dict[str, str], dict[str, str]]:
    rows: dict[str, str] = {}
    gpus: dict[int, str] = {}
    cpu: dict[str, str] = {}
    packages: dict[str, str] = {}
    for line in lines:
        if row := _ROW.match(line):
            rows.setdefault(row.group(1), row.group(2).strip())
            if row.group(1) != "GPU models and configuration":
                continue
            line = row.group(2)
        if (gpu := _GPU.match(line)) and len(gpus) < _MOST_GPUS:
            gpus.setdefault(int(gpu.group(1)), gpu.group(2).strip())
        elif package := _PACKAGE.match(line):
            if len(packages) < MOST_PACKAGES:
                packages[normalised(package.group(1))] = package.group(2)
        elif conda := _CONDA.match(line):
            name = normalised(conda.group(1))
            if len(packages) < MOST_PACKAGES:
                packages.setdefault("torch" if name == "pytorch" else name, conda.group(2))
        elif part := _LSCPU.match(line):
            cpu.setdefault(part.group(1), part.group(2).strip())
    return rows, gpus, cpu, packages


def _told(value: str | None) -> str | None:
    return None if value is None or value in _NONE else value


def _build(torch: str | None, rows: dict[str, str]) -> Build | None:
    """``torch.version.cuda`` and ``.hip`` are printed; None is printed as a word, by which a CPU build is known."""
    if torch is None:
        return None
    hip = first(_VERSION, rows.get("ROCM used to build PyTorch"))
    if hip is not None:
        return Build("hip", hip)
    said = rows.get("CUDA used to build PyTorch")
    cuda = first(_VERSION, said)
    if cuda is not None:
        return Build("cuda", cuda)
    return Build("cpu") if said in ("None", "Could not collect") else build_of(torch)


def _others(rows: dict[str, str]) -> tuple[str, ...]:
    """On ROCm the name of torch's device stands where nvidia-smi's list would."""
    said = _told(rows.get("GPU models and configuration"))
    other = said is not None and re.match(r"AMD |Radeon|Instinct", said)
    return (said[:200],) if said is not None and other else ()
