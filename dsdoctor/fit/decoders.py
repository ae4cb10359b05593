"""Dense decoders: of which tensors a layer, the embeddings and the head of each family are made (transformers' modules)."""

from collections.abc import Callable
from typing import Final

import msgspec

from dsdoctor.fit.config import Config
from dsdoctor.fit.tensors import Part, Sizes, attention, gated_ffn, linear, norm, plain_ffn


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """How a family of decoders with rotary positions departs from Llama. ``str`` traits name the config's flag, ``:on`` means true when not said."""

    qkv_bias: bool | str = False
    out_bias: bool | str = False
    mlp_bias: bool | str = False
    gated: bool = True
    fused_gate: bool = False  # gate and up projection are one matrix
    fused_qkv: bool = False
    norms: int = 2  # per layer, of the hidden size
    norm_bias: bool = False
    norm_weight: bool = True  # OLMo's norms have no parameters
    qk_norm: str = ""  # "head": of a head's size; "heads": of all heads together; "flag": when use_qk_norm says so
    tied: bool = False  # when the file does not say
    head_bias: bool = False
    head_dim: int | None = None  # when the file does not say
    kv_heads: int | None = None  # likewise: transformers' own default


LLAMA: Final = Traits(qkv_bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias")
FAMILIES: Final[dict[str, Traits]] = {
    "llama": LLAMA,
    "mistral": Traits(kv_heads=8),
    "ministral": Traits(kv_heads=8),
    "qwen2": Traits(qkv_bias=True),
    "qwen3": Traits(qkv_bias="attention_bias", out_bias="attention_bias", qk_norm="head", head_dim=128),
    "gemma": Traits(qkv_bias="attention_bias", out_bias="attention_bias", tied=True, head_dim=256),
    "gemma2": Traits(
        qkv_bias="attention_bias", out_bias="attention_bias", norms=4, tied=True, head_dim=256, kv_heads=4
    ),
    "gemma3_text": Traits(
        qkv_bias="attention_bias",
        out_bias="attention_bias",
        norms=4,
        qk_norm="head",
        tied=True,
        head_dim=256,
        kv_heads=4,
    ),
    "phi": Traits(qkv_bias=True, out_bias=True, mlp_bias=True, gated=False, norms=1, norm_bias=True, head_bias=True),
    "phi3": Traits(fused_gate=True, fused_qkv=True),
    "stablelm": Traits(qkv_bias="use_qkv_bias", norm_bias=True),
    "starcoder2": Traits(
        qkv_bias="use_bias:on",
        out_bias="use_bias:on",
        mlp_bias="use_bias:on",
        gated=False,
        norm_bias=True,
        tied=True,
        kv_heads=2,
    ),
    "olmo": Traits(qkv_bias="attention_bias", out_bias="attention_bias", norm_weight=False),
    "olmo2": Traits(qkv_bias="attention_bias", out_bias="attention_bias", qk_norm="heads"),
    "olmo3": Traits(qkv_bias="attention_bias", out_bias="attention_bias", qk_norm="heads"),
    "granite": LLAMA,
    "helium": Traits(qkv_bias="attention_bias", mlp_bias="mlp_bias", head_dim=128),
    "smollm3": Traits(qkv_bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias", tied=True),
    "nemotron": Traits(
        qkv_bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias", gated=False, norm_bias=True
    ),
    "cohere": Traits(qkv_bias="attention_bias", out_bias="attention_bias", norms=1, qk_norm="flag", tied=True),
    "cohere2": Traits(qkv_bias="attention_bias", out_bias="attention_bias", norms=1, tied=True),
    "glm": Traits(qkv_bias="attention_bias:on", fused_gate=True, head_dim=128, kv_heads=2),
    "glm4": Traits(qkv_bias="attention_bias:on", fused_gate=True, norms=4, head_dim=128, kv_heads=2),
    "internlm3": Traits(qkv_bias="qkv_bias", out_bias="bias", mlp_bias="bias", head_dim=128),
}
FLAG_DEFAULTS: Final = {"use_bias:on": True, "glm.attention_bias": True}


def traits_of(config: Config) -> Traits:
    return FAMILIES.get(config.family, LLAMA)


def says(config: Config, trait: bool | str) -> bool:
    if isinstance(trait, bool):
        return trait
    name, _, default = trait.partition(":")
    return config.flag(name, default == "on")


class Heads(msgspec.Struct, frozen=True, kw_only=True):
    """Attention's sizes."""

    heads: int
    kv_heads: int
    head_dim: int

    @property
    def queries(self) -> int:
        return self.heads * self.head_dim

    @property
    def keys(self) -> int:
        return self.kv_heads * self.head_dim


def heads_of(config: Config, traits: Traits) -> Heads:
    heads = config.positive("heads")
    head_dim = config.find("head_dim", traits.head_dim) or config.positive("hidden") // heads
    kv_heads = config.find("kv_heads", traits.kv_heads) or heads
    return Heads(heads=heads, kv_heads=min(kv_heads, heads), head_dim=head_dim)


def attention_of(config: Config, traits: Traits) -> Sizes:
    hidden, heads = config.positive("hidden"), heads_of(config, traits)
    bias, out_bias = says(config, traits.qkv_bias), says(config, traits.out_bias)
    if traits.fused_qkv:
        sizes = linear(hidden, heads.queries + 2 * heads.keys, bias) + linear(heads.queries, hidden, out_bias)
    else:
        sizes = attention(hidden, heads.queries, heads.keys, qkv_bias=bias, out_bias=out_bias)
    match traits.qk_norm:
        case "head":
            sizes += norm(heads.head_dim) * 2
        case "heads":
            sizes += norm(heads.queries) + norm(heads.keys)
        case "flag" if config.flag("use_qk_norm", False):
            sizes += norm(heads.queries) + norm(heads.keys)
    return sizes


def mlp_of(config: Config, traits: Traits, ffn: int) -> Sizes:
    hidden, bias = config.positive("hidden"), says(config, traits.mlp_bias)
    if not traits.gated:
        return plain_ffn(hidden, ffn, bias)
    if traits.fused_gate:
        return linear(hidden, 2 * ffn, bias) + linear(ffn, hidden, bias)
    return gated_ffn(hidden, ffn, bias)


def norms_of(config: Config, traits: Traits, count: int) -> Sizes:
    return norm(config.positive("hidden"), traits.norm_bias) * count if traits.norm_weight else ()


def frame(config: Config, layers: tuple[Part, ...], traits: Traits) -> tuple[Part, ...]:
    """Embeddings before, the last norm and the head after."""
    hidden, vocab = config.positive("hidden"), config.positive("vocab")
    tied = config.flag("tie_word_embeddings", traits.tied)
    head: Sizes = () if tied else (vocab * hidden,)
    head += (vocab,) if traits.head_bias else ()
    return (
        Part(name="embedding", tensors=(vocab * hidden,)),
        *layers,
        Part(name="last norm", tensors=norms_of(config, traits, 1)),
        *((Part(name="head", tensors=head),) if head else ()),
    )


def rotary_decoder(config: Config) -> tuple[Part, ...]:
    traits = traits_of(config)
    ffn = config.positive("ffn")
    tensors = attention_of(config, traits) + mlp_of(config, traits, ffn) + norms_of(config, traits, traits.norms)
    return frame(config, (Part(name="layer", tensors=tensors, times=config.positive("layers")),), traits)


Maker = Callable[[Config], tuple[Part, ...]]
