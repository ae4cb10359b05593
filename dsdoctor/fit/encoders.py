"""Encoders, counted with the head that training usually has: masked words, replaced words, or classes of an image."""

from collections.abc import Callable
from typing import Final

from dsdoctor.fit.config import Config
from dsdoctor.fit.tensors import Part, Sizes, attention, linear, norm, plain_ffn


def block(hidden: int, ffn: int) -> Sizes:
    """BERT's layer: four projections with bias, a plain feed-forward, two LayerNorms."""
    return (
        attention(hidden, hidden, hidden, qkv_bias=True, out_bias=True)
        + plain_ffn(hidden, ffn)
        + norm(hidden, True) * 2
    )


def word_head(config: Config, hidden: int, width: int) -> Sizes:
    """Dense, LayerNorm and the vocabulary's bias; the decoder's matrix is the embedding when tied."""
    vocab = config.positive("vocab")
    tied = config.flag("tie_word_embeddings", True)
    return linear(hidden, width, True) + norm(width, True) + (vocab,) + (() if tied else (vocab * width,))


def bert(config: Config) -> tuple[Part, ...]:
    hidden, ffn, layers = config.positive("hidden"), config.positive("ffn"), config.positive("layers")
    width = config.find("embedding_size") or (128 if config.family == "electra" else hidden)
    types = config.number("type_vocab_size", 2)
    embedding = (
        config.positive("vocab") * width,
        config.positive("positions", 512) * width,
        types * width,
        *norm(width, True),
    )
    if width != hidden:
        embedding += linear(width, hidden, True)
    return (
        Part(name="embedding", tensors=embedding),
        Part(name="layer", tensors=block(hidden, ffn), times=layers),
        Part(name="head", tensors=word_head(config, hidden, width)),
    )


def distilbert(config: Config) -> tuple[Part, ...]:
    hidden = config.positive("hidden")
    places = config.positive("positions", 512) * hidden
    return (
        Part(name="embedding", tensors=(config.positive("vocab") * hidden, places, *norm(hidden, True))),
        Part(
            name="layer", tensors=block(hidden, config.positive("hidden_dim", 3072)), times=config.positive("layers", 6)
        ),
        Part(name="head", tensors=word_head(config, hidden, hidden)),
    )


def deberta(config: Config) -> tuple[Part, ...]:
    hidden, ffn, vocab = config.positive("hidden"), config.positive("ffn"), config.positive("vocab")
    width = config.find("embedding_size") or hidden
    embedding: Sizes = (vocab * width,)
    if config.flag("position_biased_input", True):
        embedding += (config.positive("positions", 512) * width,)
    if types := config.number("type_vocab_size", 0):
        embedding += (types * width,)
    if width != hidden:
        embedding += linear(width, hidden)
    embedding += norm(hidden, True)
    layer = block(hidden, ffn)
    relative: Sizes = ()
    if config.flag("relative_attention", False):
        buckets = config.find("position_buckets") or -1
        reach = config.find("max_relative_positions") if _positive(config) else config.positive("positions", 512)
        relative = (2 * (buckets if buckets > 0 else reach or 0) * hidden,)
        if "layer_norm" in config.text("norm_rel_ebd", "none"):
            relative += norm(hidden, True)
        if not config.flag("share_att_key", False):
            kinds = _position_kinds(config)
            layer += linear(hidden, hidden, True) * sum(kind in kinds for kind in ("c2p", "p2c"))
    return (
        Part(name="embedding", tensors=embedding),
        Part(name="layer", tensors=layer, times=config.positive("layers")),
        Part(name="relative positions", tensors=relative + convolution(config, hidden)),
        Part(name="head", tensors=word_head(config, hidden, width)),
    )


def convolution(config: Config, hidden: int) -> Sizes:
    """DeBERTa-v2 XL has one; its kernel is in conv_kernel_size."""
    kernel = config.number("conv_kernel_size", 0)
    groups = config.positive("conv_groups", 1)
    return (hidden * hidden // groups * kernel, hidden, *norm(hidden, True)) if kernel else ()


def _positive(config: Config) -> bool:
    value = config.raw.get("max_relative_positions")
    return isinstance(value, int) and value >= 1


def _position_kinds(config: Config) -> tuple[str, ...]:
    value = config.raw.get("pos_att_type")
    if isinstance(value, str):
        return tuple(word.strip() for word in value.lower().split("|"))
    return tuple(str(word) for word in config.items("pos_att_type") or ())


def vit(config: Config) -> tuple[Part, ...]:
    hidden, size, patch = (
        config.positive("hidden"),
        config.positive("image_size", 224),
        config.positive("patch_size", 16),
    )
    channels = config.positive("num_channels", 3)
    patches = (size // patch) ** 2
    bias = config.flag("qkv_bias", True)
    layer = attention(hidden, hidden, hidden, qkv_bias=bias, out_bias=True) + plain_ffn(hidden, config.positive("ffn"))
    labels = config.find("num_labels") or len(_labels(config)) or 2
    return (
        Part(name="embedding", tensors=(hidden, (patches + 1) * hidden, channels * patch * patch * hidden, hidden)),
        Part(name="layer", tensors=layer + norm(hidden, True) * 2, times=config.positive("layers")),
        Part(name="head", tensors=norm(hidden, True) + linear(hidden, labels, True)),
    )


def _labels(config: Config) -> dict[object, object]:
    value = config.raw.get("id2label")
    return value if isinstance(value, dict) else {}


def modernbert(config: Config) -> tuple[Part, ...]:
    hidden, ffn, vocab = config.positive("hidden"), config.positive("ffn"), config.positive("vocab")
    bias, mlp, normed = (config.flag(name, False) for name in ("attention_bias", "mlp_bias", "norm_bias"))
    core = linear(hidden, 3 * hidden, bias) + linear(hidden, hidden, bias) + norm(hidden, normed)
    core += linear(hidden, 2 * ffn, mlp) + linear(ffn, hidden, mlp)
    head = linear(hidden, hidden, config.flag("classifier_bias", False)) + norm(hidden, normed)
    head += (vocab,) if config.flag("decoder_bias", True) else ()
    head += () if config.flag("tie_word_embeddings", True) else (vocab * hidden,)
    layers = config.positive("layers")
    return (
        Part(name="embedding", tensors=(vocab * hidden, *norm(hidden, normed))),
        Part(name="layer", tensors=core),  # the first has no norm before its attention
        *((Part(name="layer", tensors=core + norm(hidden, normed), times=layers - 1),) if layers > 1 else ()),
        Part(name="head", tensors=norm(hidden, normed) + head),
    )


ENCODERS: Final[dict[str, Callable[[Config], tuple[Part, ...]]]] = {
    "bert": bert,
    "roberta": bert,
    "xlm-roberta": bert,
    "camembert": bert,
    "electra": bert,
    "distilbert": distilbert,
    "deberta-v2": deberta,
    "vit": vit,
    "modernbert": modernbert,
}
