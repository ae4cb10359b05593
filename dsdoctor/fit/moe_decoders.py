"""Decoders with experts: a router, routed experts kept in two big tensors (transformers 5), shared experts, dense layers between."""

from collections.abc import Callable, Sequence
from typing import Final

from dsdoctor.fit.config import Config
from dsdoctor.fit.decoders import Traits, attention_of, frame, norms_of
from dsdoctor.fit.tensors import Part, Sizes, gated_ffn, linear, norm

MIXTRAL: Final = Traits(kv_heads=8)
QWEN2_MOE: Final = Traits(qkv_bias="qkv_bias:on")
QWEN3_MOE: Final = Traits(qkv_bias="attention_bias", out_bias="attention_bias", qk_norm="head", kv_heads=4)
OLMOE: Final = Traits(qkv_bias="attention_bias", out_bias="attention_bias", qk_norm="heads")
GPT_OSS: Final = Traits(qkv_bias="attention_bias:on", out_bias="attention_bias:on", head_dim=64, kv_heads=8)


def experts(hidden: int, ffn: int, count: int) -> Sizes:
    """Gate and up projection of all experts are one tensor, their down projections another."""
    return (count * 2 * ffn * hidden, count * ffn * hidden)


def sparse_layers(config: Config) -> Sequence[bool]:
    """For each layer: has it experts?"""
    layers, step = config.positive("layers"), config.positive("decoder_sparse_step", 1)
    dense = {n for n in config.items("mlp_only_layers") or () if isinstance(n, int)}
    first = config.number("first_k_dense_replace", 0)
    return [i not in dense and (i + 1) % step == 0 and i >= first for i in range(layers)]


def layers_of(config: Config, sparse: Sizes, dense: Sizes) -> tuple[Part, ...]:
    kinds = sparse_layers(config)
    parts = (
        Part(name="dense layer", tensors=dense, times=kinds.count(False)),
        Part(name="expert layer", tensors=sparse, times=kinds.count(True)),
    )
    return tuple(part for part in parts if part.times)


def mixtral(config: Config) -> tuple[Part, ...]:
    hidden, count = config.positive("hidden"), config.positive("experts", 8)
    tensors = attention_of(config, MIXTRAL) + experts(hidden, config.positive("ffn"), count) + (count * hidden,)
    tensors += norms_of(config, MIXTRAL, 2)
    return frame(config, layers_of(config, tensors, ()), MIXTRAL)


def olmoe(config: Config) -> tuple[Part, ...]:
    hidden, count = config.positive("hidden"), config.positive("experts", 64)
    tensors = attention_of(config, OLMOE) + experts(hidden, config.positive("ffn"), count) + (count * hidden,)
    return frame(config, layers_of(config, tensors + norms_of(config, OLMOE, 2), ()), OLMOE)


def qwen_moe(config: Config) -> tuple[Part, ...]:
    second = config.family == "qwen2_moe"
    traits = QWEN2_MOE if second else QWEN3_MOE
    hidden, count = config.positive("hidden"), config.positive("experts", 60 if second else 128)
    rest = attention_of(config, traits) + norms_of(config, traits, 2)
    sparse = (*experts(hidden, config.positive("moe_ffn", 1408 if second else 768), count), count * hidden)
    if second:
        sparse += (*gated_ffn(hidden, config.positive("shared_expert_intermediate_size", 5632)), hidden)
    return frame(config, layers_of(config, rest + sparse, rest + gated_ffn(hidden, config.positive("ffn"))), traits)


def gpt_oss(config: Config) -> tuple[Part, ...]:
    hidden, count, ffn = config.positive("hidden"), config.positive("experts", 128), config.positive("ffn")
    tensors = (*attention_of(config, GPT_OSS), config.positive("heads"))  # the last are the attention sinks
    tensors += (*experts(hidden, ffn, count), count * 2 * ffn, count * hidden, count * hidden, count)
    return frame(config, layers_of(config, tensors + norms_of(config, GPT_OSS, 2), ()), GPT_OSS)


def latent_attention(config: Config) -> Sizes:
    """DeepSeek's multi-head latent attention: keys and values come out of one narrow projection."""
    hidden, heads, bias = config.positive("hidden"), config.positive("heads"), config.flag("attention_bias", False)
    rope, plain = config.positive("qk_rope_head_dim", 64), config.positive("qk_nope_head_dim", 128)
    value, narrow = config.positive("v_head_dim", 128), config.positive("kv_lora_rank", 512)
    query = config.find("q_lora_rank", None if "q_lora_rank" in config.raw else 1536)
    if query is None:
        sizes = linear(hidden, heads * (plain + rope))
    else:
        sizes = linear(hidden, query, bias) + norm(query) + linear(query, heads * (plain + rope))
    sizes += linear(hidden, narrow + rope, bias) + norm(narrow) + linear(narrow, heads * (plain + value))
    return sizes + linear(heads * value, hidden, bias)


def deepseek(config: Config) -> tuple[Part, ...]:
    hidden, third = config.positive("hidden"), config.family != "deepseek_v2"
    count, ffn = config.positive("experts", 256 if third else 64), config.positive("moe_ffn", 2048 if third else 1407)
    shared = config.number("n_shared_experts", 1 if third else 2)
    rest = latent_attention(config) + norm(hidden) * 2
    sparse = rest + experts(hidden, ffn, count) + (count * hidden,) + gated_ffn(hidden, ffn * shared)
    dense = rest + gated_ffn(hidden, config.positive("ffn"), config.flag("mlp_bias", False))
    return frame(config, layers_of(config, sparse, dense), Traits())


MOE: Final[dict[str, Callable[[Config], tuple[Part, ...]]]] = {
    "mixtral": mixtral,
    "olmoe": olmoe,
    "qwen2_moe": qwen_moe,
    "qwen3_moe": qwen_moe,
    "gpt_oss": gpt_oss,
    "deepseek_v2": deepseek,
    "deepseek_v3": deepseek,
}
