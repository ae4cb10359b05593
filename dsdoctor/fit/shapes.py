"""What a model is made of, from its config.json or from its size: exact where the family is known, said where not."""

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from dsdoctor.fit.config import MOST_LAYERS, BadConfig, Config
from dsdoctor.fit.decoders import FAMILIES, heads_of, rotary_decoder, traits_of
from dsdoctor.fit.encoder_decoders import ENCODER_DECODERS
from dsdoctor.fit.encoders import ENCODERS
from dsdoctor.fit.moe_decoders import MOE, sparse_layers
from dsdoctor.fit.older_decoders import OLDER
from dsdoctor.fit.tensors import Part, attention, gated_ffn, norm

MAKERS: Final[dict[str, Callable[[Config], tuple[Part, ...]]]] = {
    **dict.fromkeys(FAMILIES, rotary_decoder),
    **OLDER,
    **MOE,
    **ENCODERS,
    **ENCODER_DECODERS,
}


class ModelShape(msgspec.Struct, frozen=True, kw_only=True):
    """A model's sizes; ``parts`` hold every parameter tensor's, so sums over them are exact when ``exact`` is."""

    family: str
    parts: tuple[Part, ...]
    hidden: int
    layers: int  # that are run one after another: encoder and decoder together
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int  # 0: no vocabulary (images)
    tied: bool
    gated: bool = True  # the feed-forward has a gate
    activation: str = "silu"  # of the feed-forward, by transformers' name
    experts: int = 0
    experts_per_token: int = 0
    expert_layers: int = 0
    expert_ffn: int = 0
    shared_ffn: int = 0  # of the experts that every token meets
    dropout: bool = False  # after each sub-layer, while training
    attention_dropout: bool = False
    softcap: bool = False  # of the logits
    encoder_layers: int = 0
    decoder_layers: int = 0
    exact: bool = True
    notes: tuple[str, ...] = ()

    @property
    def parameters(self) -> int:
        return sum(part.elements * part.times for part in self.parts)

    @property
    def tensors(self) -> int:
        """How many parameter tensors there are."""
        return sum(len(part.tensors) * part.times for part in self.parts)

    @property
    def largest_layer(self) -> int:
        """Parameters of the largest layer, as DeepSpeed's estimators count it: the modules' own parameters together."""
        return max(part.elements for part in self.parts)

    @property
    def largest_tensor(self) -> int:
        return max(size for part in self.parts for size in part.tensors)

    def small(self, threshold: int) -> int:
        """Elements in all tensors below the threshold: ZeRO-3 never partitions those."""
        return sum(size * part.times for part in self.parts for size in part.tensors if size < threshold)


def from_config(raw: Mapping[str, object]) -> ModelShape:
    """The shape of a config.json; BadConfig when it has not even the numbers that any transformer has."""
    config = Config(raw)
    maker = MAKERS.get(config.family)
    notes: tuple[str, ...] = ()
    if maker is None:
        notes = (f"{config.family} is not known here: counted like Llama, so the number of parameters is an estimate",)
        if config.find("ffn") is None:
            config.raw["intermediate_size"] = 4 * config.positive("hidden")
            notes += ("it does not say how wide the feed-forward is: 4 times the hidden size is taken",)
    parts = (maker or rotary_decoder)(config)
    if config.outer:
        notes += (f"only the text part of {config.outer} is counted: not what it sees or hears with",)
    if config.raw.get("quantization_config"):
        notes += ("the file says that the weights are quantised: counted as if they were not",)
    return _described(config, parts, exact=maker is not None and not config.outer, notes=notes)


def _described(config: Config, parts: tuple[Part, ...], *, exact: bool, notes: tuple[str, ...]) -> ModelShape:
    heads = heads_of(config, traits_of(config))
    layers = {name: sum(p.times for p in parts if p.name == f"{name} layer") for name in ("encoder", "decoder")}
    both = config.family in ENCODER_DECODERS
    count = config.positive("layers", 6)
    experts = config.find("experts", 0) or 0
    sparse = sum(sparse_layers(config)) if experts else 0
    hidden = config.positive("hidden")
    return ModelShape(
        family=config.family,
        parts=tuple(part for part in parts if part.tensors),
        hidden=hidden,
        layers=sum(layers.values()) if both else count,
        heads=heads.heads,
        kv_heads=heads.kv_heads,
        head_dim=heads.head_dim,
        ffn=config.find("ffn") or 4 * hidden,
        vocab=0 if config.family == "vit" else config.positive("vocab", 1),
        tied=not any(
            p.name == "head" and max(p.tensors, default=0) >= hidden * config.number("vocab", 1) for p in parts
        ),
        gated=_gated(config),
        activation=_activation(config),
        experts=experts,
        experts_per_token=config.number("experts_per_token", 2) if experts else 0,
        expert_layers=sparse,
        shared_ffn=_shared_ffn(config) if experts else 0,
        dropout=_drops(config, DROPOUT, DROPS),
        attention_dropout=_drops(config, ATTENTION_DROPOUT, DROPS_ATTENTION),
        softcap=bool(config.raw.get("final_logit_softcapping", config.family == "gemma2")),
        expert_ffn=(config.find("moe_ffn") or config.find("ffn") or 0) if experts else 0,
        encoder_layers=layers["encoder"] if both else count if config.family in ENCODERS else 0,
        decoder_layers=layers["decoder"] if both else 0 if config.family in ENCODERS else count,
        exact=exact,
        notes=notes,
    )


BERT: Final = {"bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "deberta-v2"}
T5: Final = {"t5", "mt5", "umt5"}
# transformers' own defaults are 0.1 for these where the file does not say, else 0
DROPS_ATTENTION: Final = {*BERT, *T5, "gpt2", "gpt_bigcode"}
DROPS: Final = {*DROPS_ATTENTION, "opt", "bart", "mbart", "pegasus", "marian"}
DROPOUT: Final = ("hidden_dropout_prob", "resid_pdrop", "dropout_rate", "hidden_dropout", "resid_dropout", "dropout")
ATTENTION_DROPOUT: Final = ("attention_probs_dropout_prob", "attn_pdrop", "dropout_rate", "attention_dropout")


def _drops(config: Config, names: tuple[str, ...], usual: set[str]) -> bool:
    """Is a share of the values dropped while it trains? Each dropout keeps a mask."""
    said = next((value for name in names if isinstance(value := config.raw.get(name), int | float)), None)
    return config.family in usual if said is None else said > 0


def _shared_ffn(config: Config) -> int:
    """The width of the experts that every token meets, all together."""
    if config.family == "qwen2_moe":
        return config.positive("shared_expert_intermediate_size", 5632)
    if config.family in ("deepseek_v2", "deepseek_v3"):
        return config.number("n_shared_experts", 1) * (config.find("moe_ffn") or 0)
    return 0


def _gated(config: Config) -> bool:
    if config.family in ("t5", "mt5", "umt5"):
        return config.text("feed_forward_proj", "relu" if config.family == "t5" else "gated-gelu").startswith("gated")
    if config.family in FAMILIES:
        return FAMILIES[config.family].gated
    return config.family in MOE or config.family == "modernbert" or config.family not in MAKERS


def _activation(config: Config) -> str:
    usual = {
        "gpt2": "gelu_new",
        "gpt_neo": "gelu_new",
        "gptj": "gelu_new",
        "phi": "gelu_new",
        "bloom": "bloom",
        "opt": "relu",
    }
    if config.family in T5:  # "gated-gelu" is written in Python there
        words = config.text("feed_forward_proj", "relu" if config.family == "t5" else "gated-gelu").split("-")
        return "gelu_new" if words == ["gated", "gelu"] else words[-1]
    said = next(
        (
            config.text(key, "")
            for key in ("activation_function", "hidden_act", "hidden_activation")
            if config.text(key, "")
        ),
        "",
    )
    return said or usual.get(config.family, "silu" if _gated(config) else "gelu")


UNITS: Final = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}


def parameters_of(text: str) -> int:
    """'7B', '350m', '1.5 B', '7e9' → a number of parameters."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:e\d{1,2})?)\s*([kmbt]?)\s*", text.lower())
    if match is None:
        raise BadConfig(f"{text!r} is no size: write 7B, 350M or 7000000000")
    count = int(float(match[1]) * UNITS[match[2]])
    if not 10**5 <= count <= 10**15:
        raise BadConfig(f"{text!r} is no size of a model")
    return count


def from_size(
    size: str, *, layers: int | None = None, hidden: int | None = None, vocab: int | None = None
) -> ModelShape:
    """A decoder like Llama with that many parameters; what is not given is guessed, and said."""
    count, words = parameters_of(size), vocab or min(32_000, parameters_of(size) // 256)
    for name, value, most in (("layers", layers, MOST_LAYERS), ("hidden", hidden, 10**6), ("vocab", vocab, 10**8)):
        if value is not None and not 1 <= value <= most:
            raise BadConfig(f"{value} {name} are no model")
    guessed = [name for name, value in (("layers", layers), ("hidden", hidden), ("vocab", vocab)) if value is None]
    hidden, layers = _proportions(count, words, layers, hidden)
    heads = max(1, hidden // 128)
    body = max(0, count - 2 * words * hidden - hidden)
    fixed = sum(attention(hidden, hidden, hidden)) + 2 * hidden
    ffn = max(hidden, (body // layers - fixed) // (3 * hidden))
    layer = attention(hidden, hidden, hidden) + gated_ffn(hidden, ffn) + norm(hidden) * 2
    rest = count - 2 * words * hidden - hidden - layers * sum(layer)
    parts = [
        Part(name="embedding", tensors=(words * hidden,)),
        Part(name="layer", tensors=layer, times=layers),
        Part(name="last norm", tensors=norm(hidden)),
        Part(name="head", tensors=(words * hidden,)),
    ]
    if rest > 0:  # what the division left over, so that the sum is what was asked for
        parts.append(Part(name="rest", tensors=(rest,)))
    notes = (f"guessed for a model of {size.strip()}: {', '.join(guessed)}",) if guessed else ()
    return ModelShape(
        family="size", parts=tuple(parts), hidden=hidden, layers=layers, heads=heads, kv_heads=heads, head_dim=hidden // heads,
        ffn=ffn, vocab=words, tied=False, decoder_layers=layers, exact=False,
        notes=(*notes, "from a size alone: the shares of layers and embeddings are those of a decoder like Llama"),
    )  # fmt: skip


def _proportions(count: int, vocab: int, layers: int | None, hidden: int | None) -> tuple[int, int]:
    """Llama's: about 12 hidden² parameters a layer, and hidden about 128 times the number of layers."""
    if hidden is None:

        def total(width: int) -> int:
            return 12 * width * width * (layers or max(1, width // 128)) + 2 * vocab * width

        hidden = max((width for width in range(64, 65_536, 64) if total(width) <= count), default=64)
    return hidden, layers or max(1, round((count - 2 * vocab * hidden) / (12 * hidden * hidden)))
