"""The variables that torch, CUDA, NCCL and DeepSpeed read."""

from dsdoctor.facts import Environment
from dsdoctor.facts.environment import NAMES, PREFIXES
from dsdoctor.probes.system import System

LONGEST = 8192


def probe(system: System) -> Environment:
    """Only variables with a known name or prefix; nothing else of the user's environment is looked at."""
    chosen = {
        name: _text(value[:LONGEST]) for name, value in system.env.items() if name in NAMES or name.startswith(PREFIXES)
    }
    return Environment(variables=dict(sorted(chosen.items())))


def _text(value: str) -> str:
    """Bytes that are no UTF-8 come as lone surrogates, which no report can hold: they become U+FFFD."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
