"""Decoders from before Llama: learned or rotary positions, LayerNorm with bias, plain feed-forward."""

from collections.abc import Callable
from typing import Final

from dsdoctor.fit.config import Config
from dsdoctor.fit.tensors import Part, Sizes, attention, linear, norm, plain_ffn


def decoder(
    config: Config, layer: Sizes, before: Sizes, after: Sizes, *, tied: bool, head_bias: bool = False
) -> tuple[Part, ...]:
    hidden, vocab = config.positive("hidden"), config.positive("vocab")
    head: Sizes = () if config.flag("tie_word_embeddings", tied) else (vocab * hidden,)
    head += (vocab,) if head_bias else ()
    return (
        Part(name="embedding", tensors=(vocab * hidden, *before)),
        Part(name="layer", tensors=layer, times=config.positive("layers")),
        Part(name="last norm", tensors=after),
        *((Part(name="head", tensors=head),) if head else ()),
    )


def gpt2(config: Config) -> tuple[Part, ...]:
    hidden = config.positive("hidden")
    ffn = config.find("ffn") or 4 * hidden
    layer = (
        linear(hidden, 3 * hidden, True)
        + linear(hidden, hidden, True)
        + plain_ffn(hidden, ffn)
        + norm(hidden, True) * 2
    )
    return decoder(config, layer, (config.positive("positions", 1024) * hidden,), norm(hidden, True), tied=True)


def gpt_neo(config: Config) -> tuple[Part, ...]:
    hidden = config.positive("hidden")
    ffn = config.find("ffn") or 4 * hidden
    layer = attention(hidden, hidden, hidden, out_bias=True) + plain_ffn(hidden, ffn) + norm(hidden, True) * 2
    return decoder(config, layer, (config.positive("positions", 2048) * hidden,), norm(hidden, True), tied=True)


def gpt_neox(config: Config) -> tuple[Part, ...]:
    hidden, bias = config.positive("hidden"), config.flag("attention_bias", True)
    layer = linear(hidden, 3 * hidden, bias) + linear(hidden, hidden, bias)
    layer += plain_ffn(hidden, config.positive("ffn")) + norm(hidden, True) * 2
    return decoder(config, layer, (), norm(hidden, True), tied=False)


def gptj(config: Config) -> tuple[Part, ...]:
    hidden = config.positive("hidden")
    ffn = config.find("ffn") or 4 * hidden
    layer = attention(hidden, hidden, hidden) + plain_ffn(hidden, ffn) + norm(hidden, True)
    return decoder(config, layer, (), norm(hidden, True), tied=False, head_bias=True)


def opt(config: Config) -> tuple[Part, ...]:
    hidden, vocab, bias = config.positive("hidden"), config.positive("vocab"), config.flag("enable_bias", True)
    narrow = config.find("word_embed_proj_dim") or hidden
    affine = norm(hidden, True) if config.flag("layer_norm_elementwise_affine", True) else ()
    layer = (
        attention(hidden, hidden, hidden, qkv_bias=bias, out_bias=bias)
        + plain_ffn(hidden, config.positive("ffn"), bias)
        + affine * 2
    )
    between = () if narrow == hidden else linear(hidden, narrow) + linear(narrow, hidden)
    last = config.flag("do_layer_norm_before", True) and not config.flag("_remove_final_layer_norm", False)
    head = () if config.flag("tie_word_embeddings", True) else (Part(name="head", tensors=(vocab * narrow,)),)
    return (
        Part(name="embedding", tensors=(vocab * narrow, (config.positive("positions", 2048) + 2) * hidden)),
        Part(name="layer", tensors=layer, times=config.positive("layers")),
        Part(name="last norm", tensors=between + (affine if last else ())),
        *head,
    )


def bloom(config: Config) -> tuple[Part, ...]:
    hidden = config.positive("hidden")
    layer = (
        linear(hidden, 3 * hidden, True)
        + linear(hidden, hidden, True)
        + plain_ffn(hidden, 4 * hidden)
        + norm(hidden, True) * 2
    )
    return decoder(config, layer, norm(hidden, True), norm(hidden, True), tied=True)


def falcon(config: Config) -> tuple[Part, ...]:
    hidden, heads, bias = config.positive("hidden"), config.positive("heads"), config.flag("bias", False)
    head_dim, new = hidden // heads, config.flag("new_decoder_architecture", False)
    parallel, multi_query = config.flag("parallel_attn", True), config.flag("multi_query", True)
    if new:
        wide = (2 * (config.find("kv_heads") or heads) + heads) * head_dim
    else:
        wide = hidden + 2 * head_dim if multi_query else 3 * hidden
    norms = 2 if not parallel or config.number("num_ln_in_parallel_attn", 2 if new else 1) == 2 else 1
    ffn = config.find("ffn") or 4 * hidden
    layer = (
        linear(hidden, wide, bias)
        + linear(hidden, hidden, bias)
        + plain_ffn(hidden, ffn, bias)
        + norm(hidden, True) * norms
    )
    return decoder(config, layer, (), norm(hidden, True), tied=True)


def gpt_bigcode(config: Config) -> tuple[Part, ...]:
    hidden = config.positive("hidden")
    ffn = config.find("ffn") or 4 * hidden
    keys = hidden // config.positive("heads") if config.flag("multi_query", True) else hidden
    layer = (
        linear(hidden, hidden + 2 * keys, True)
        + linear(hidden, hidden, True)
        + plain_ffn(hidden, ffn)
        + norm(hidden, True) * 2
    )
    return decoder(config, layer, (config.positive("positions", 1024) * hidden,), norm(hidden, True), tied=True)


def mpt(config: Config) -> tuple[Part, ...]:
    hidden = config.positive("hidden")
    layer = (
        linear(hidden, 3 * hidden) + linear(hidden, hidden) + plain_ffn(hidden, 4 * hidden, False) + norm(hidden) * 2
    )
    return decoder(config, layer, (), norm(hidden), tied=True)


OLDER: Final[dict[str, Callable[[Config], tuple[Part, ...]]]] = {
    "gpt2": gpt2,
    "gpt_neo": gpt_neo,
    "gpt_neox": gpt_neox,
    "gptj": gptj,
    "opt": opt,
    "bloom": bloom,
    "falcon": falcon,
    "gpt_bigcode": gpt_bigcode,
    "mpt": mpt,
}
