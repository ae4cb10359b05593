"""What forward leaves for backward: per layer and token the tensors that transformers' modules save, then the loss."""

from typing import Final

import msgspec

from dsdoctor.fit.older_decoders import OLDER
from dsdoctor.fit.shapes import ModelShape
from dsdoctor.fit.training import Training

LAYER_NORM: Final = {*OLDER, "phi", "stablelm", "starcoder2", "nemotron", "bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert",
                     "deberta-v2", "vit", "modernbert", "bart", "mbart", "pegasus", "marian", "whisper"}  # fmt: skip
PYTHON_GELU: Final = {"gelu_new", "gelu_fast", "gelu_pytorch_tanh_python", "bloom"}


class Activations(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes on one GPU."""

    layer: int  # everything that one layer keeps for its backward
    kept: int  # of all layers, until backward comes to them
    recomputed: int  # with checkpointing: one layer's again, while its backward runs
    loss: int  # the highest moment of the loss: logits and their gradients
    ends: int  # embeddings' and last norm's


def norm_bytes(shape: ModelShape, width: int) -> int:
    """Per token and element of hidden: RMSNorm is written in Python and keeps an fp32 copy, LayerNorm keeps its input."""
    if shape.family in LAYER_NORM:
        return 2 * width  # its input and its output (the next matrix needs it)
    return 4 + 2 * width if width == 2 else 3 * width  # the fp32 copy, the normalised values, the output


def mlp_bytes(shape: ModelShape, width: int) -> int:
    """Per token: inputs of the activation, of the product with the gate, and of the last matrix."""
    tensors = 4 if shape.gated else 2
    if not shape.gated and shape.activation in PYTHON_GELU:
        tensors = 6  # written in Python: the power, tanh and both products keep theirs
    if not shape.experts:
        return tensors * width * shape.ffn
    sparse = (
        tensors * width * shape.expert_ffn * shape.experts_per_token
        + 3 * width * shape.hidden * shape.experts_per_token
    )
    rest = shape.layers - shape.expert_layers
    return (sparse * shape.expert_layers + tensors * width * shape.ffn * rest) // max(1, shape.layers)


def attention_bytes(shape: ModelShape, training: Training) -> int:
    """Per token: query, key, value and the result; eager attention also keeps the scores, twice, of every head."""
    width, queries, keys = training.width, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    if training.attention == "eager":
        scores = (4 + width) * shape.heads * training.sequence
        return width * (3 * queries + queries) + scores  # keys and values are repeated for every head
    repeated = (
        keys if training.attention == "flash" or shape.kv_heads == shape.heads or training.width == 2 else queries
    )
    return width * (2 * queries + 2 * repeated) + 4 * shape.heads  # and the softmax's logarithms


def layer_bytes(shape: ModelShape, training: Training) -> int:
    """Per token, of one layer on average; an encoder-decoder's decoder layers attend twice."""
    norms = norm_bytes(shape, training.width) * shape.hidden * 2
    twice = shape.decoder_layers / shape.layers if shape.encoder_layers and shape.decoder_layers else 0.0
    attend = attention_bytes(shape, training)
    return int(norms * (1 + twice / 2) + attend * (1 + twice)) + mlp_bytes(shape, training.width)


def activations(shape: ModelShape, training: Training) -> Activations:
    tokens, width = training.tokens, training.width
    layer = layer_bytes(shape, training) * tokens
    kept = width * shape.hidden * tokens * shape.layers if training.checkpointing else layer * shape.layers
    ends = (norm_bytes(shape, width) + width) * shape.hidden * tokens
    # log-softmax kept, its gradient and the logits' gradient, all fp32
    loss = 12 * shape.vocab * tokens if shape.vocab else 0
    return Activations(layer=layer, kept=kept, recomputed=layer if training.checkpointing else 0, loss=loss, ends=ends)
