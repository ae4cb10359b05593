"""``accelerate env`` and ``transformers env`` (``transformers-cli env``), in any release.

Grammar: accelerate/commands/env.py of 0.16, 0.24, 0.34 and 1.15; transformers/commands/env.py of 4.12, 4.31, 4.46 and 4.55
and transformers/cli/system.py of 5.24. All print rows "- Key: value"; the config's rows stand below, after a tab. Copied from a
page that shows it, the report has lost its dashes and backticks.
"""

from dsdoctor.readers import pasted, regex
from dsdoctor.readers.told import Build, Told, build_of

_HEAD = regex.compile(r"^\s*[-*\u2022]? ?`?(Accelerate|accelerate|transformers)`? version: (\d\S*)")
_ROW = regex.compile(r"^\s*(?:[-*\u2022] ?)?([^:]{2,60}): ?(.*)$")
_NEXT = regex.compile(r"^\s*(?:[-*\u2022] ?)?Platform: ")
_TORCH = regex.compile(r"^(\d+\.\d+[\w.+-]*)(?: \((\w+)\))?")
_VERSION = regex.compile(r"^(\d+\.\d+[\w.+]*)")
_RAM = regex.compile(r"^(\d{1,6}(?:\.\d+)?) GB$")
_KEYS = {"Numpy version": "numpy", "Huggingface_hub version": "huggingface-hub", "Safetensors version": "safetensors", "Accelerate version": "accelerate",
         "DeepSpeed version": "deepspeed", "PEFT version": "peft"}  # fmt: skip
_MOST_ROWS = 200


def parse(text: str) -> tuple[Told, ...]:
    """What each such report in a text tells. Never raises."""
    return read(pasted.lines(text))


def read(lines: list[str]) -> tuple[Told, ...]:
    """The same, of lines that are clean already."""
    starts = [(n, head) for n, line in enumerate(lines) if "version: " in line and (head := _HEAD.match(line))]
    told = []
    for number, head in starts:
        if "`" not in head.group(0) and not any(map(_NEXT.match, lines[number + 1 : number + 3])):
            continue  # a row of `transformers env`, or of something else
        told.append(_report(lines[number : number + _MOST_ROWS], number, head.group(1).lower(), head.group(2)))
    return tuple(told)


def _report(lines: list[str], number: int, program: str, version: str) -> Told:
    rows: dict[str, str] = {}
    for line in lines[1:]:
        row = _ROW.match(line)
        if (head := _HEAD.match(line)) and "`" in head.group(0):
            break  # the next report
        if row is not None:
            rows.setdefault(row.group(1).strip("`"), row.group(2).strip())
        elif line.strip() and len(rows) > 2 and not line[:1].isspace():
            break
    torch, build = _torch(rows)
    packages = {program: version} | {
        name: found.group(1) for key, name in _KEYS.items() if (found := _VERSION.match(rows.get(key, "")))
    }
    python = _VERSION.match(rows.get("Python version", ""))
    ram = _RAM.match(rows.get("System RAM", ""))
    return Told(
        line=number,
        exactness=2,
        torch=torch,
        build=build,
        deepspeed=packages.get("deepspeed"),
        python=python.group(1) if python else None,
        platform=rows.get("Platform"),
        gpus={0: rows["GPU type"]} if rows.get("GPU type") else None,
        ram_bytes=round(float(ram.group(1)) * 2**30) if ram else None,
        site_packages=None,
        packages=packages,
    )


def _torch(rows: dict[str, str]) -> tuple[str | None, Build | None]:
    """Version and build: by its ending. "(True)" after it is ``torch.cuda.is_available()``, which ROCm answers too."""
    for key, value in rows.items():
        if key.startswith("PyTorch version") and (found := _TORCH.match(value)):
            return found.group(1), build_of(found.group(1))
    return None, None
