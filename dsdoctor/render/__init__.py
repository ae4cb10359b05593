"""From a Report to text in a format. Renderers return strings; nobody here prints."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dsdoctor.model import Report

FORMATS = ("text", "json", "junit", "sarif", "github", "markdown", "html")


def renderer(name: str) -> "Callable[[Report], str]":
    """The ``render`` function of a format, loaded when it is asked for."""
    return import_module(f"dsdoctor.render.{name}").render  # type: ignore[no-any-return]
