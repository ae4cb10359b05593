"""Tables that ship with the checks. Every row says where it comes from and when that was looked up."""

import sys
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
