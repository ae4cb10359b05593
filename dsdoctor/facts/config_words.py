"""What the patient's own DeepSpeed says of the user's ds_config: its config class, asked about each section and about the whole."""

from dsdoctor.facts.base import Fact


class ConfigWord(Fact, frozen=True, kw_only=True):
    """One thing that it refuses, or calls deprecated."""

    key: str  # dotted, as far as it says
    kind: str  # pydantic's type ("extra_forbidden", "int_parsing", ...), the name of an exception, or "deprecated"
    said: str


class ConfigWords(Fact, frozen=True, kw_only=True):
    path: str
    version: str | None = None  # of the DeepSpeed that was asked
    known: tuple[str, ...] = ()  # dotted keys of the file that it asked for by name: no stranger to it
    words: tuple[ConfigWord, ...] = ()
    whole: str | None = None  # what it raised at all sections together, when it takes each of them
    left_out: tuple[str, ...] = ()  # keys that say "auto": Hugging Face replaces them before DeepSpeed looks
    ranks: int | None = None  # the world size that was asked about; None: one at which the batch sizes agree
