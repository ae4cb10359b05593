"""What the numbers do not know: said beside them, once."""

from typing import Final

from dsdoctor.fit.encoder_decoders import ENCODER_DECODERS
from dsdoctor.fit.shapes import ModelShape
from dsdoctor.fit.training import Training

# families of which a layer's activations were held against a real model's (fixtures/fit) or a real training
CHECKED: Final = {"llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "olmo2", "stablelm", "starcoder2", "cohere", "phi", "glm4",
                  "phi3", "glm", "mixtral", "qwen3_moe", "olmoe", "gpt2", "opt", "bloom", "gpt_neox", "bert", "roberta", "t5", "electra", "distilbert",
                  "granite", "smollm3", "cohere2", "nemotron", "helium", "mpt", "gptj", "qwen2_moe", "bart"}  # fmt: skip
MEASURED_WORLD: Final = 2


def caveats(shape: ModelShape, training: Training) -> tuple[str, ...]:
    """Sentences, the weightiest first; those about the model's file are in ``shape.notes``."""
    found = []
    if training.world > MEASURED_WORLD:
        found.append(f"measured on one and two GPUs only: NCCL's own memory on {training.world} is an estimate")
    if training.nodes > 1:
        found.append(
            "each node is taken to be like this one; NCCL's buffers for the network between them are not counted"
        )
    if shape.family not in CHECKED:
        found.append(f"activations of {shape.family} were never held against a real model: less sure than the rest")
    if training.optimizer in ("adamw-8bit", "adafactor", "lion"):
        found.append(f"{training.optimizer} was never measured: its states are counted as its authors say")
    if training.lora_rank:
        found.append(
            "adapters on query, key, value and output of each layer; the frozen weights are counted as 16 or 32 bits, not quantised"
        )
    if shape.family in ENCODER_DECODERS:
        found.append("encoder and decoder are counted with sequences of the same length")
    found.append(
        "not counted: torch.compile, data loaders, evaluation, and logits that your script keeps; flash-attention is counted like sdpa"
    )
    return tuple(found)
