"""A Hugging Face config.json as numbers: one name for what every family calls differently, and a plain error."""

from collections.abc import Mapping
from typing import Final

# what the families say: our name, then theirs in the order to look
NAMES: Final[dict[str, tuple[str, ...]]] = {
    "hidden": ("hidden_size", "n_embd", "d_model", "dim"),
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers"),
    "heads": ("num_attention_heads", "n_head", "num_heads", "n_heads", "encoder_attention_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads"),
    "head_dim": ("head_dim", "d_kv"),
    "ffn": ("intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner", "d_ff", "hidden_dim", "encoder_ffn_dim"),
    "vocab": ("vocab_size", "padded_vocab_size"),
    "positions": ("max_position_embeddings", "n_positions", "max_seq_len"),
    "experts": ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts"),
    "experts_per_token": ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k"),
    "moe_ffn": ("moe_intermediate_size", "expert_ffn_hidden_size"),
}
# what transformers takes where the text part of a multi-modal file is silent, as those mostly are
LLAMA: Final[dict[str, object]] = {
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32000,
}
USUAL: Final[dict[str, dict[str, object]]] = {
    "llama": LLAMA,
    "mistral": {**LLAMA, "intermediate_size": 14336, "num_key_value_heads": 8},
    "qwen2": {**LLAMA, "intermediate_size": 22016, "vocab_size": 151936},
    "qwen3": {**LLAMA, "intermediate_size": 22016, "vocab_size": 151936},
    "gemma3_text": {
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "vocab_size": 262208,
    },
}
MOST_LAYERS: Final = 1000
LARGEST: Final = 10**15  # beyond any model: a number that large is a mistake, and its products are nonsense


class BadConfig(ValueError):
    """The file is no config.json that can be counted; the message says what is missing or wrong, for the reader."""


class Config:
    """Looks numbers up by our names or by the family's own."""

    def __init__(self, raw: Mapping[str, object]) -> None:
        inner = raw.get("text_config")
        self.outer = ""  # the model that this is the text part of
        self.raw = dict(raw)
        if isinstance(inner, dict) and "hidden_size" not in raw:
            self.outer = str(raw.get("model_type") or "the model")
            self.raw = {**USUAL.get(str(inner.get("model_type")), {}), **raw, **inner}
        self.family = str(self.raw.get("model_type") or "unknown")

    def find(self, name: str, default: int | None = None) -> int | None:
        """The number, or the default when the file says nothing or null."""
        for key in NAMES.get(name, (name,)):
            value = self.raw.get(key)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
                raise BadConfig(f"{key} is {value!r}, not a number")
            if not 0 <= value <= (MOST_LAYERS if "layer" in key else LARGEST) or value != int(value):
                raise BadConfig(f"{key} is {value!r}, not a size")
            return int(value)
        return default

    def number(self, name: str, default: int | None = None) -> int:
        """The number; an error that names the key when neither the file nor the family has one."""
        value = self.find(name, default)
        if value is None:
            raise BadConfig(f"config.json has no {' or '.join(NAMES.get(name, (name,)))}")
        return value

    def positive(self, name: str, default: int | None = None) -> int:
        value = self.number(name, default)
        if value < 1:
            raise BadConfig(f"{NAMES.get(name, (name,))[0]} is {value}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        value = self.raw.get(name)
        return default if value is None else bool(value)

    def text(self, name: str, default: str) -> str:
        value = self.raw.get(name)
        return value if isinstance(value, str) else default

    def items(self, name: str) -> tuple[object, ...] | None:
        value = self.raw.get(name)
        return tuple(value) if isinstance(value, list | tuple) else None
