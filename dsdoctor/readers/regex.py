"""Patterns that are compiled when they are first used: the readers know hundreds, and a text needs a few of them."""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    compile = re.compile
else:

    class compile:
        """Stands for ``re.compile(pattern, flags)`` and becomes it at the first use."""

        def __init__(self, pattern: str, flags: int = 0) -> None:
            self.pattern, self._flags = pattern, flags

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            compiled = re.compile(self.pattern, self._flags)
            for method in ("match", "search", "fullmatch", "findall", "finditer", "sub", "subn", "split"):
                setattr(self, method, getattr(compiled, method))  # the next use comes straight here
            return getattr(compiled, name)
