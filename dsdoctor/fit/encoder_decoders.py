"""Encoder-decoders: T5's kin with relative positions, BART's kin with learned ones, Whisper with its two convolutions."""

from collections.abc import Callable
from typing import Final

from dsdoctor.fit.config import Config
from dsdoctor.fit.tensors import Part, Sizes, attention, gated_ffn, linear, norm, plain_ffn


def t5(config: Config) -> tuple[Part, ...]:
    hidden, heads, vocab = config.positive("d_model", 512), config.positive("heads", 8), config.positive("vocab")
    wide = heads * config.positive("d_kv", 64)
    layers = config.positive("num_layers", 6)
    ffn, gated = (
        config.positive("d_ff", 2048),
        config.text("feed_forward_proj", _feed_forward(config)).startswith("gated"),
    )
    feed = gated_ffn(hidden, ffn) if gated else plain_ffn(hidden, ffn, False)
    attend, buckets = attention(hidden, wide, wide), config.positive("relative_attention_num_buckets", 32) * heads
    encoder = attend + feed + norm(hidden) * 2
    decoder = attend * 2 + feed + norm(hidden) * 3
    every = config.family == "umt5"  # each layer has its own relative positions there
    return (
        Part(
            name="embedding", tensors=(vocab * hidden,)
        ),  # and the head: transformers ties them whatever the file says
        *_stack("encoder layer", encoder, layers, buckets, every),
        Part(name="encoder's last norm", tensors=norm(hidden)),
        *_stack("decoder layer", decoder, config.find("num_decoder_layers") or layers, buckets, every),
        Part(name="decoder's last norm", tensors=norm(hidden)),
    )


def _feed_forward(config: Config) -> str:
    return "gated-gelu" if config.family in ("mt5", "umt5") else "relu"


def _stack(name: str, layer: Sizes, count: int, buckets: int, every: bool) -> tuple[Part, ...]:
    if every:
        return (Part(name=name, tensors=(*layer, buckets), times=count),)
    first = Part(name=name, tensors=(*layer, buckets))
    return (first, Part(name=name, tensors=layer, times=count - 1)) if count > 1 else (first,)


def bart_layers(config: Config, key_bias: bool = True) -> tuple[Part, Part]:
    """Encoder and decoder layers; Whisper's keys have no bias."""
    hidden = config.positive("d_model", 1024)
    attend = attention(hidden, hidden, hidden, qkv_bias=True, out_bias=True)
    if not key_bias:
        attend = linear(hidden, hidden, True) * 3 + linear(hidden, hidden)
    encoder = attend + plain_ffn(hidden, config.positive("encoder_ffn_dim", 4096)) + norm(hidden, True) * 2
    decoder = attend * 2 + plain_ffn(hidden, config.positive("decoder_ffn_dim", 4096)) + norm(hidden, True) * 3
    return (
        Part(name="encoder layer", tensors=encoder, times=config.positive("encoder_layers", 12)),
        Part(name="decoder layer", tensors=decoder, times=config.positive("decoder_layers", 12)),
    )


def bart(config: Config) -> tuple[Part, ...]:
    hidden, vocab = config.positive("d_model", 1024), config.positive("vocab")
    places = config.positive("max_position_embeddings", 1024)
    sines = config.family in ("pegasus", "marian")  # positions are fixed there, yet parameters
    table = places if sines else places + 2
    norms = {"bart": norm(hidden, True), "mbart": norm(hidden, True) * 2, "pegasus": norm(hidden, True)}
    side: Sizes = (table * hidden, *norms.get(config.family, ()))
    encoder, decoder = bart_layers(config)
    tied = config.flag("tie_word_embeddings", True)
    return (
        Part(name="embedding", tensors=(vocab * hidden,)),
        Part(name="encoder's ends", tensors=side),
        encoder,
        Part(name="decoder's ends", tensors=side),
        decoder,
        *(() if tied else (Part(name="head", tensors=(vocab * hidden,)),)),
    )


def whisper(config: Config) -> tuple[Part, ...]:
    hidden, vocab = config.positive("d_model", 384), config.positive("vocab", 51865)
    mels = config.positive("num_mel_bins", 80)
    convolutions = (hidden * mels * 3, hidden, hidden * hidden * 3, hidden)
    encoder, decoder = bart_layers(config, key_bias=False)
    return (
        Part(name="embedding", tensors=(vocab * hidden,)),
        Part(
            name="encoder's ends",
            tensors=(*convolutions, config.positive("max_source_positions", 1500) * hidden, *norm(hidden, True)),
        ),
        encoder,
        Part(
            name="decoder's ends", tensors=(config.positive("max_target_positions", 448) * hidden, *norm(hidden, True))
        ),
        decoder,
    )


ENCODER_DECODERS: Final[dict[str, Callable[[Config], tuple[Part, ...]]]] = {
    "t5": t5,
    "mt5": t5,
    "umt5": t5,
    "bart": bart,
    "mbart": bart,
    "pegasus": bart,
    "marian": bart,
    "whisper": whisper,
}
