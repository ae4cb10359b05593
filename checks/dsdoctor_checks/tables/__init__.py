"""Tables that ship with the checks. Every row says where it comes from and when that was looked up."""

import sys
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@cache
def table(name: str) -> dict[str, Any]:
    """The parsed TOML table ``name`` (without ending)."""
    return tomllib.loads(resources.files(__package__).joinpath(f"{name}.toml").read_text("utf-8"))


def signatures() -> Iterator[str]:
    """The texts of the tables of known log lines, in the order of their names."""
    folder = resources.files(__package__).joinpath("signatures")
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".toml"):
            yield file.read_text("utf-8")


@cache
def slugs() -> tuple[str, ...]:
    """All causes of causes.toml, by its headers alone: parsing it all costs more than a whole triage may."""
    text = resources.files(__package__).joinpath("causes.toml").read_text("utf-8")
    return tuple(line.strip("[]") for line in text.splitlines() if line.startswith("["))
