"""Distributions in the patient's environment, read from their metadata without importing anything."""

from typing import Literal

from dsdoctor.facts.base import Fact


class Distribution(Fact, frozen=True, kw_only=True):
    name: str  # normalised: "deepspeed", "nvidia-ml-py"
    version: str
    location: str  # the site-packages folder
    installer: str | None = None  # "pip", "uv", "conda"
    editable: str | None = None  # path of the source for an editable install


class Damage(Fact, frozen=True, kw_only=True):
    """A file that is not what the distribution's RECORD says."""

    distribution: str
    file: str
    kind: Literal["missing", "size", "empty"]
    expected_bytes: int | None = None
    actual_bytes: int | None = None


class Shadow(Fact, frozen=True, kw_only=True):
    """A local file or folder that Python imports instead of the installed package."""

    module: str
    path: str


class Packages(Fact, frozen=True, kw_only=True):
    distributions: dict[str, Distribution] = {}
    duplicates: dict[str, tuple[str, ...]] = {}  # name -> versions whose dist-info lie side by side
    leftovers: tuple[str, ...] = ()  # "~orch" folders of a half-finished pip
    damaged: tuple[Damage, ...] = ()  # of torch, deepspeed, triton (and what else was looked at)
    integrity_checked: tuple[str, ...] = ()  # distributions whose RECORD was read
    shadows: tuple[Shadow, ...] = ()
    namespace_only: tuple[str, ...] = ()  # folders named like a package, without metadata
    partial: bool = False  # taken from a text that names some: one that is not here may be installed

    def version(self, name: str) -> str | None:
        """Version of distribution ``name`` (normalised), or None when it is not installed."""
        found = self.distributions.get(name)
        return found.version if found else None

    def lacks(self, name: str) -> bool | None:
        """True when ``name`` is not installed; None when that cannot be told from a list that names only some."""
        if name in self.distributions:
            return False
        return None if self.partial else True
