"""What forward leaves for backward: per layer and token the tensors that transformers' modules save, then the loss."""

from typing import Final

import msgspec

from dsdoctor.fit.older_decoders import OLDER
from dsdoctor.fit.shapes import ModelShape
from dsdoctor.fit.training import Training

LAYER_NORM: Final = {*OLDER, "phi", "stablelm", "starcoder2", "nemotron", "cohere", "cohere2", "bert", "roberta", "xlm-roberta", "camembert",
                     "electra", "distilbert", "deberta-v2", "vit", "modernbert", "bart", "mbart", "pegasus", "marian", "whisper"}  # fmt: skip
FP32_NORM: Final = {
    "gemma",
    "gemma2",
    "gemma3_text",
    "olmo2",
    "olmo3",
    "olmoe",
    "helium",
    "glm4",
}  # weight times fp32 values, narrowed after
QK_NORM: Final = {"qwen3", "qwen3_moe", "gemma3_text", "olmo2", "olmo3", "olmoe"}
ONE_NORM: Final = {"phi", "gptj", "cohere", "cohere2"}  # a layer with one norm
FOUR_NORMS: Final = {"gemma2", "gemma3_text", "glm4"}
PLAIN_SOFTMAX: Final = {
    "gpt2",
    "bert",
    "roberta",
    "t5",
    "mt5",
    "umt5",
}  # eager attention whose softmax stays in 16 bits
NARROW_LOSS: Final = {"bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "deberta-v2", "t5", "mt5", "umt5",
                      "bart", "mbart", "pegasus", "marian", "whisper"}  # cross entropy of the logits as they are  # fmt: skip
MLP_TENSORS: Final = {
    "relu": 1,
    "gelu_new": 5,
    "relu2": 2,
}  # of the feed-forward's width, where there is no gate; else 2
GATED: Final = 4  # inputs of the activation, of the product with the gate (two), and of the last matrix
MORE_GATED: Final = {"gelu_new": 3}  # an activation written in Python
T5: Final = ("t5", "mt5", "umt5")


class Activations(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes on one GPU."""

    layer: int  # everything that one layer keeps for its backward
    kept: int  # of all layers, until backward comes to them
    recomputed: int  # with checkpointing: one layer's again, while its backward runs
    loss: int  # the highest moment of the loss: logits and their gradients
    ends: int  # embeddings' and last norm's


def norm_bytes(shape: ModelShape, width: int) -> int:
    """Per token and element: RMSNorm is written in Python and keeps an fp32 copy, LayerNorm keeps its input."""
    if shape.family in ("cohere", "cohere2") and width == 2:
        return 3 * 4 + width  # LayerNorm in Python: twice less the mean, and the normalised values, in fp32
    if shape.family in LAYER_NORM:
        return 2 * width  # its input and its output (the next matrix needs it)
    if width == 4:
        return 3 * width
    return 4 + 2 * width + (2 if shape.family in FP32_NORM else 0)  # the fp32 copy, the normalised values, the output


def mlp_bytes(shape: ModelShape, width: int) -> int:
    """Per token: inputs of the activation, of the product with the gate, and of the last matrix."""
    tensors = GATED + MORE_GATED.get(shape.activation, 0) if shape.gated else MLP_TENSORS.get(shape.activation, 2)
    if not shape.experts:
        inside = (1 + width) * shape.ffn if shape.dropout and shape.family in T5 else 0  # T5 drops inside, too
        return tensors * width * shape.ffn + inside
    sparse = (tensors * width * shape.expert_ffn + 2 * width * shape.hidden) * shape.experts_per_token
    sparse += tensors * width * shape.shared_ffn
    rest = shape.layers - shape.expert_layers
    return (sparse * shape.expert_layers + tensors * width * shape.ffn * rest) // max(1, shape.layers)


def attention_bytes(shape: ModelShape, training: Training, cross: bool = False) -> int:
    """Per token: query, key, value and the result; eager attention also keeps the scores of every head."""
    width, queries, keys = training.width, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    normed = (norm_bytes(shape, width) - width) * (queries + keys) if shape.family in QK_NORM else 0
    if training.attention == "eager":
        each = (
            width if shape.family in PLAIN_SOFTMAX or width == 4 else 4 + width
        )  # softmax in fp32, and its 16-bit copy
        each += (1 + width) if shape.attention_dropout else 0  # a mask of bytes, and what it leaves
        # keys and values are repeated for every head
        return width * 4 * queries + each * shape.heads * training.sequence + normed
    known = width * (2 * queries + 2 * keys) + 4 * shape.heads + normed  # and the softmax's logarithms
    if shape.family in T5 and not cross:  # a learned bias leaves sdpa only its slow way, in fp32, with all scores
        each = 4 + (5 if shape.attention_dropout else 0)
        return known + 12 * queries + each * shape.heads * training.sequence
    return known


def norms_bytes(shape: ModelShape, training: Training, stage3: bool) -> int:
    """Per token, of one layer's norms without those that only a decoder's second attention has."""
    count = 1 if shape.family in ONE_NORM else 4 if shape.family in FOUR_NORMS else 2
    after = max(0, count - 2)  # a norm whose output is only added: nothing keeps that
    each = norm_bytes(shape, training.width)
    if training.lora_rank and shape.family not in LAYER_NORM and training.width == 2:
        # frozen: no normalised values, and an output only where an adapter reads it, or ZeRO-3's own matrix product
        return (4 * count + training.width * (count if stage3 else 1)) * shape.hidden
    return (each * count - training.width * after) * shape.hidden


def layer_bytes(shape: ModelShape, training: Training, stage3: bool = False) -> int:
    """Per token, of one layer on average; an encoder-decoder's decoder layers attend twice.

    ZeRO-3 replaces torch's matrix product by its own, which keeps its input even where the matrix is frozen (zero/linear.py).
    """
    twice = shape.decoder_layers / shape.layers if shape.encoder_layers and shape.decoder_layers else 0.0
    attend = attention_bytes(shape, training) + attention_bytes(shape, training, cross=True) * twice
    masks = shape.hidden * (2 + twice) if shape.dropout else 0  # bytes, of each sub-layer's dropout
    dropped = training.lora_rank and not shape.experts and not stage3  # the input of a frozen matrix
    frozen = training.width * shape.ffn if dropped else 0
    total = norms_bytes(shape, training, stage3) * (1 + twice / 2) + attend + masks + mlp_bytes(shape, training.width)
    return int(total) - frozen


def activations(shape: ModelShape, training: Training, stage3: bool = False) -> Activations:
    tokens, width = training.tokens, training.width
    layer = layer_bytes(shape, training, stage3) * tokens
    kept = width * shape.hidden * tokens * shape.layers if training.checkpointing else layer * shape.layers
    ends = (norm_bytes(shape, width) + width) * shape.hidden * tokens
    # log-softmax kept, its gradient and the logits' gradient: fp32 where the loss widens the logits first
    loss = 3 * (width if shape.family in NARROW_LOSS else 4) * shape.vocab * tokens
    loss += width * shape.vocab * tokens if shape.softcap else 0  # the tanh's result
    return Activations(layer=layer, kept=kept, recomputed=layer if training.checkpointing else 0, loss=loss, ends=ends)


def blocks_of(shape: ModelShape, training: Training) -> tuple[list[int], list[int]]:
    """The same tensors one by one: those that a layer keeps, and the largest of those that only pass through."""
    width, tokens = training.width, training.tokens
    hidden, queries, keys = (
        size * tokens for size in (shape.hidden, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim)
    )
    normed = (
        [width * hidden] * 2 if norm_bytes(shape, width) == 2 * width else [4 * hidden, width * hidden, width * hidden]
    )
    if training.attention == "eager":
        scores = shape.heads * training.sequence * tokens
        attend = [width * queries] * 4 + (
            [width * scores] if shape.family in PLAIN_SOFTMAX else [4 * scores, width * scores]
        )
    else:
        attend = [width * queries, width * keys, width * keys, width * queries]
    known = sum(normed) * 2 + sum(attend)
    mlp = [width * shape.ffn * tokens] * max(
        1, (layer_bytes(shape, training) * tokens - known) // max(1, width * shape.ffn * tokens)
    )
    return [*normed, *attend, *normed, *mlp], [4 * hidden, width * queries, width * hidden]
