"""What a Hugging Face config.json says that a ds_config has to fit: sizes, heads, experts, and the type of its weights."""

from dsdoctor.facts.base import Fact


class ModelConfig(Fact, frozen=True, kw_only=True):
    path: str
    problem: str | None = None  # why it could not be read, one sentence
    missing: bool = False  # it is not there at all
    family: str | None = None  # its model_type
    hidden: int | None = None  # as transformers gives it to everyone: hidden_size, or the largest of hidden_sizes
    text_hidden: int | None = None  # of its text_config, where the model itself has none: the Trainer looks there
    heads: int | None = None
    kv_heads: int | None = None
    experts: int | None = None
    dtype: str | None = None  # "bfloat16": what the weights were saved in
