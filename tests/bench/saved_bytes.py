"""Counts what one layer of real models keeps for backward → fixtures/fit/saved_bytes.json (needs torch, transformers; CPU).

    python -m tests.bench.saved_bytes

Bytes per token and layer in bf16 with dropout off: the difference between a model of three layers and one of one layer.
"""

import json
import logging
from pathlib import Path
from typing import Any

import torch

from tests.bench.parameter_counts import hugging, model_of

TABLE = Path(__file__).parents[2] / "fixtures/fit/saved_bytes.json"
BATCH, SEQUENCE = 2, 256
BASE: dict[str, Any] = {
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_attention_heads": 8,
    "vocab_size": 1000,
    "pad_token_id": 0,
}
DECODER: dict[str, Any] = {**BASE, "num_key_value_heads": 8}
DRY = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
GPT = {
    "n_embd": 256,
    "n_head": 8,
    "vocab_size": 1000,
    "n_positions": 512,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
}
T5: dict[str, Any] = {
    "d_model": 256,
    "d_ff": 768,
    "num_heads": 8,
    "d_kv": 32,
    "vocab_size": 1000,
    "decoder_start_token_id": 0,
    "pad_token_id": 0,
    "dropout_rate": 0.0,
}
EXPERTS = {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 768}
ROWS: list[tuple[str, str, dict[str, Any]]] = [
    *((family, attention, DECODER) for attention in ("sdpa", "eager") for family in (
        "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma3_text", "olmo2", "stablelm", "starcoder2", "cohere", "phi", "glm4")),
    ("gemma2", "eager", DECODER), ("phi3", "eager", DECODER), ("glm", "eager", DECODER),
    ("llama", "sdpa", {**DECODER, "num_key_value_heads": 2}), ("llama", "eager", {**DECODER, "num_key_value_heads": 2}),
    *((family, "sdpa", {**DECODER, **EXPERTS}) for family in ("mixtral", "qwen3_moe", "olmoe")),
    *(("gpt2", attention, {"n_embd": 256, "n_head": 8, "vocab_size": 1000, "n_positions": 512, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0})
      for attention in ("sdpa", "eager")),
    ("opt", "sdpa", {"hidden_size": 256, "num_attention_heads": 8, "ffn_dim": 1024, "vocab_size": 1000, "max_position_embeddings": 512, "dropout": 0.0}),
    ("bloom", "eager", {"hidden_size": 256, "n_head": 8, "vocab_size": 1000}), ("gpt_neox", "eager", BASE),
    *((family, "sdpa", {**BASE, **DRY}) for family in ("bert", "roberta", "electra")),
    ("opt", "eager", {"hidden_size": 256, "num_attention_heads": 8, "ffn_dim": 1024, "vocab_size": 1000, "max_position_embeddings": 512, "dropout": 0.0}),
    *((family, "sdpa", DECODER) for family in ("granite", "smollm3", "cohere2", "nemotron")), ("mpt", "eager", {"d_model": 256, "n_heads": 8, "vocab_size": 1000}),
    ("helium", "sdpa", {**DECODER, "head_dim": 32}),
    ("gptj", "eager", {**GPT, "rotary_dim": 16}), ("qwen2_moe", "sdpa", {**DECODER, **EXPERTS, "shared_expert_intermediate_size": 768}),
    ("distilbert", "sdpa", {"dim": 256, "hidden_dim": 768, "n_heads": 8, "vocab_size": 1000, "dropout": 0.0, "attention_dropout": 0.0}),
    *(("t5", attention, T5) for attention in ("sdpa", "eager")), ("t5", "sdpa", {**T5, "feed_forward_proj": "gated-gelu"}),
    ("bart", "sdpa", {"d_model": 256, "encoder_ffn_dim": 768, "decoder_ffn_dim": 768, "encoder_attention_heads": 8, "decoder_attention_heads": 8, "vocab_size": 1000,
                      "pad_token_id": 1, "max_position_embeddings": 512, "decoder_start_token_id": 2, "dropout": 0.0}),
]  # fmt: skip
LAYERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("gpt2", "bloom", "gptj"), ("n_layer",)), **dict.fromkeys(("mpt", "distilbert"), ("n_layers",)),
    "t5": ("num_layers", "num_decoder_layers"), "bart": ("encoder_layers", "decoder_layers"),
}  # fmt: skip


def kept(config: dict[str, Any], attention: str) -> int:
    """Bytes of all tensors that autograd keeps, each storage once, parameters and buffers left out."""
    parsed = hugging.AutoConfig.for_model(**config)
    parsed.use_cache, parsed._attn_implementation = False, attention
    model = model_of(parsed).to(torch.bfloat16).train()
    own = {tensor.untyped_storage().data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    seen: dict[int, tuple[int, torch.Tensor]] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            seen[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        ids = torch.randint(1, 100, (BATCH, SEQUENCE))
        _alive = model(input_ids=ids, **({"decoder_input_ids": ids} if config["model_type"] in ("t5", "bart") else {}))
    return sum(size for size, _ in seen.values())


def row(family: str, attention: str, says: dict[str, Any]) -> dict[str, object]:
    layers = LAYERS.get(family, ("num_hidden_layers",))
    one, three = (kept({"model_type": family, **says, **dict.fromkeys(layers, count)}, attention) for count in (1, 3))
    return {
        "config": {"model_type": family, **says, **dict.fromkeys(layers, 3)},
        "attention": attention,
        "sequence": SEQUENCE,
        "bytes": (three - one) / (2 * len(layers)) / (BATCH * SEQUENCE),
    }


def main() -> None:
    logging.disable(logging.WARNING)
    lines = ",\n".join("  " + json.dumps(row(*asked)) for asked in ROWS)
    TABLE.write_text(f'{{"about": "counted by tests/bench/saved_bytes.py", "rows": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
