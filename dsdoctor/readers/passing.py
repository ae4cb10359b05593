"""What the log of a training or a build says in passing of the environment: versions in messages, paths in tracebacks.

Messages: deepspeed/__init__.py, accelerator/real_accelerator.py, op_builder/builder.py and launcher/launch.py of 0.19.8,
torch/utils/cpp_extension.py of 2.13.0.
"""

import re

from dsdoctor.readers import pasted, regex
from dsdoctor.readers.told import Build, Told, build_of

_ENGINE = regex.compile(r"DeepSpeed info: version=(\d[\w.+-]*)")
_ACCELERATOR = regex.compile(r"Setting ds_accelerator to (\w{1,20})")
_RANKS = regex.compile(r"\bnnodes=(\d{1,6}), num_local_procs=(\d{1,6}), node_rank=")
_CACHE = regex.compile(r"/py(3)(\d{1,2})\w{0,2}_(?:cu(\d{2,3})|cpu|rocm\w*)(?=[/\s'\"]|\.\.\.|$)")
_TORCH = regex.compile(
    r"^\W*(?:PyTorch|torch)(?:\.__version__)?(?: version)?\s*[:=]+\s*v?(\d+\.\d+\.\d+[\w.+]*)\s*$", re.IGNORECASE
)
MISMATCH = regex.compile(
    r"(?:Installed CUDA version (\d+\.\d+) does not match the version torch was compiled with (\d+\.\d+)"
    r"|The detected CUDA version \((\d+\.\d+)\) mismatches the version that was used to compile(?: ?PyTorch \((\d+\.\d+)\))?)"
)
_MISMATCHED = regex.compile(
    r"PyTorch \((\d+\.\d+)\)\. Please make sure to use the same CUDA versions"
)  # a line of its own before torch 2
_NVCC = regex.compile(r"(?:^|[\s\]])(/[^\s:'\"]{0,300}?)/bin/nvcc(?=\s)")
_COMPILES = regex.compile(r"\s(?:-c|-gencode\S*|--generate-dependencies\S*|-arch\S*)\s")
_PACKAGES = regex.compile(
    r"((/[^\s:'\"]{0,300}?)/lib(?:64)?/python(3\.\d{1,2})/(site|dist)-packages)(/(?:torch|deepspeed)/)?"
)
_PREFIXED = regex.compile(r"^/(?:usr|usr/local)?$|/\.local$")


class _Heard:
    """The last word on each, while the lines go by."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}
        self.cache: Build | None = None
        self.ranks: tuple[int, int] | None = None
        self.line = 0
        self.own = False  # the path is of torch or DeepSpeed itself

    def take(self, line: str) -> bool:
        """True when the line told something."""
        before = dict(self.words)
        if "DeepSpeed info" in line and (found := _ENGINE.search(line)):
            self.words["deepspeed"] = found.group(1)
        elif "ds_accelerator" in line and (found := _ACCELERATOR.search(line)):
            self.words["accelerator"] = found.group(1)
        elif "num_local_procs" in line and (found := _RANKS.search(line)):
            self.ranks = int(found.group(1)), int(found.group(2))
        elif "CUDA version" in line and (found := MISMATCH.search(line)):
            self.words["home_nvcc"] = found.group(1) or found.group(3)
            self._built(found.group(2) or found.group(4))
        elif "same CUDA versions" in line and (found := _MISMATCHED.search(line)):
            self._built(found.group(1))
        elif "orch" in line and len(line) < 200 and (found := _TORCH.match(line)):
            self.words["torch"] = found.group(1)
        if "/py3" in line and (found := _CACHE.search(line)):
            self._cache_folder(found)
        if "/bin/nvcc" in line and (found := _NVCC.search(line)) and _COMPILES.search(line):
            self.words["toolkit"] = found.group(1)
        if "-packages" in line and (found := _PACKAGES.search(line)):
            self._folder(found)
        return self.words != before

    def _built(self, cuda: str | None) -> None:
        self.cache = Build("cuda", cuda) if cuda else self.cache

    def _cache_folder(self, found: re.Match[str]) -> None:
        self.words.setdefault("python", f"{found.group(1)}.{found.group(2)}")
        if found.group(3):
            self._built(f"{found.group(3)[:-1]}.{found.group(3)[-1]}")

    def _folder(self, found: re.Match[str]) -> None:
        """Where torch or DeepSpeed lie counts before where others do."""
        if found.group(5) or not self.own:
            self.own = self.own or bool(found.group(5))
            self.words["site_packages"], self.words["python"] = found.group(1), found.group(3)
            self.words.pop("prefix", None)
            if found.group(4) == "site" and not _PREFIXED.search(found.group(2)):
                self.words["prefix"] = found.group(2)


def parse(text: str) -> tuple[Told, ...]:
    """What a log tells of its environment. Never raises."""
    return read(pasted.lines(text))


def read(lines: list[str]) -> tuple[Told, ...]:
    """The same, of lines that are clean already. What DeepSpeed says is exact; a path is less so."""
    heard = _Heard()
    for number, line in enumerate(lines):
        if heard.take(line):
            heard.line = number
    words = heard.words
    if not words and heard.cache is None and heard.ranks is None:
        return ()
    deepspeed, accelerator, torch = (
        words.pop("deepspeed", None),
        words.pop("accelerator", None),
        words.pop("torch", None),
    )
    return (
        Told(
            line=heard.line,
            exactness=2,
            deepspeed=deepspeed,
            accelerator=accelerator,
            engine=deepspeed is not None,
            home_nvcc=words.pop("home_nvcc", None),
            toolkit=words.pop("toolkit", None),
            cache_build=heard.cache,
            ranks=heard.ranks,
        ),
        Told(line=heard.line, exactness=1, torch=torch, build=build_of(torch)),
        Told(
            line=heard.line,
            exactness=0,
            python=words.get("python"),
            site_packages=words.get("site_packages"),
            prefix=words.get("prefix"),
        ),
    )
