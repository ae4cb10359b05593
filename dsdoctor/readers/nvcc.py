"""``nvcc --version`` (with ``which nvcc`` before it, when that was pasted too)."""

from dsdoctor.facts import Toolkit
from dsdoctor.readers import pasted, regex

UNKNOWN_ROOT = "(folder of the pasted nvcc)"
_RELEASE = regex.compile(r"Cuda compilation tools, release (\d+\.\d+)")
_PATH = regex.compile(r"^\s*(/\S*)/bin/nvcc\s*$")
_MISSING = regex.compile(r"nvcc: (?:command )?not found|command not found: nvcc|'nvcc' is not recognized")


def parse(text: str) -> Toolkit | None:
    """The toolkit that the text speaks of; None when it holds no answer of nvcc. The last answer counts. Never raises."""
    root, version, missing = None, None, None
    for line in pasted.lines(text):
        if path := _PATH.match(line):
            root = path.group(1) or "/"
        if release := _RELEASE.search(line):
            version, missing = release.group(1), None
        elif _MISSING.search(line):
            version, missing = None, line.strip()[:200]
    if version is None and missing is None:
        return None
    root = root or UNKNOWN_ROOT
    return Toolkit(
        root=root,
        found_by="PATH",
        exists=missing is None,
        nvcc=f"{root}/bin/nvcc" if version else None,
        nvcc_problem=missing,
        version=version,
        from_text=True,
    )
