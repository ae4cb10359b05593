"""The user's ds_config.json, parsed with the place of every key."""

from dsdoctor.facts.placed import Placed


class DsConfig(Placed, frozen=True, kw_only=True):
    readable: bool = True
    problem: str | None = None  # why it could not be read or parsed, one sentence
    line: int | None = None  # where it stopped, 1-based
    column: int | None = None
    duplicates: tuple[str, ...] = ()  # dotted keys given twice
    strict_json: bool | None = None  # False: DeepSpeed (Hjson) reads it, plain JSON readers (transformers) do not
