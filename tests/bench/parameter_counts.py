"""Counts the parameters of real models on the meta device → fixtures/fit/parameter_counts.json (needs torch, transformers).

    python tests/bench/parameter_counts.py

Every row has the config.json that was counted, the number of parameters and of tensors, and the largest tensor.
"""

import importlib
import json
import logging
from pathlib import Path
from typing import Any

import torch

hugging: Any = importlib.import_module("transformers")

TABLE = Path(__file__).parents[2] / "fixtures/fit/parameter_counts.json"
GQA: dict[str, Any] = {
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
}
SMALL: dict[str, Any] = {**GQA, "vocab_size": 1000, "pad_token_id": 0}
GPT = {"n_embd": 256, "n_layer": 3, "n_head": 8, "vocab_size": 1000, "n_positions": 128}
BART = {"d_model": 256, "encoder_layers": 3, "decoder_layers": 2, "encoder_attention_heads": 8, "decoder_attention_heads": 8,
        "encoder_ffn_dim": 512, "decoder_ffn_dim": 768, "vocab_size": 1000, "max_position_embeddings": 128}  # fmt: skip
T5 = {
    "d_model": 256,
    "d_kv": 32,
    "d_ff": 640,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 6,
    "vocab_size": 1000,
}
MLA = {"kv_lora_rank": 64, "q_lora_rank": 96, "qk_rope_head_dim": 16, "qk_nope_head_dim": 32, "v_head_dim": 48}
EXPERTS = {"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 96, "n_group": 2, "topk_group": 1}

# (family, what the config says beyond the family's defaults); {} alone: the defaults
ROWS: list[tuple[str, dict[str, Any]]] = [
    # models that people train, by the numbers of their config.json
    ("llama", {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000}),
    ("llama", {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256}),
    ("llama", {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256}),
    ("llama", {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256, "tie_word_embeddings": True}),
    ("mistral", {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000}),
    ("qwen2", {"hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064}),
    ("qwen2", {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True}),
    ("qwen3", {"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": True}),
    ("gemma2", {"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 256000}),
    ("mixtral", {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2}),
    ("qwen3_moe", {"hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128, "vocab_size": 151936}),
    ("deepseek_v3", {"hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "n_routed_experts": 256, "first_k_dense_replace": 3, "vocab_size": 129280}),
    # every family small, with what it says by itself left out ...
    *((family, SMALL) for family in (
        "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi", "phi3", "stablelm", "starcoder2",
        "olmo", "olmo2", "olmo3", "granite", "smollm3", "nemotron", "cohere", "cohere2", "glm", "glm4", "internlm3", "gpt_neox",
        "mixtral", "olmoe", "gpt_oss")),
    *((family, GPT) for family in ("gpt2", "gptj", "gpt_bigcode")),
    # ... and its switches turned
    ("ministral", {**SMALL, "head_dim": 32}), ("helium", {**SMALL, "head_dim": 32}),
    ("llama", {**SMALL, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "head_dim": 48}),
    ("gemma", {**SMALL, "tie_word_embeddings": False, "head_dim": 32}),
    ("stablelm", {**SMALL, "use_qkv_bias": True}), ("cohere", {**SMALL, "use_qk_norm": True}),
    ("starcoder2", {**SMALL, "use_bias": False, "tie_word_embeddings": False}), ("glm4", {**SMALL, "attention_bias": False}),
    ("gpt2", {**GPT, "n_inner": 300, "tie_word_embeddings": False}), ("gpt_bigcode", {**GPT, "multi_query": False}),
    ("gpt_neo", {"hidden_size": 256, "num_layers": 2, "num_heads": 8, "vocab_size": 1000, "attention_types": [[["global", "local"], 1]], "max_position_embeddings": 128}),
    ("gpt_neox", {**SMALL, "attention_bias": False, "tie_word_embeddings": True}),
    ("opt", {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 8, "ffn_dim": 700, "vocab_size": 1000, "max_position_embeddings": 128}),
    ("opt", {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 8, "ffn_dim": 700, "vocab_size": 1000, "word_embed_proj_dim": 128, "do_layer_norm_before": False}),
    ("bloom", {"hidden_size": 256, "n_layer": 3, "n_head": 8, "vocab_size": 1000}),
    ("mpt", {"d_model": 256, "n_layers": 3, "n_heads": 8, "vocab_size": 1000, "max_seq_len": 128}),
    ("falcon", {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 8, "vocab_size": 1000}),
    ("falcon", {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 8, "num_kv_heads": 2, "new_decoder_architecture": True, "vocab_size": 1000}),
    ("falcon", {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 8, "multi_query": False, "parallel_attn": False, "bias": True, "vocab_size": 1000}),
    ("qwen2_moe", {**SMALL, "decoder_sparse_step": 2, "num_experts": 6, "moe_intermediate_size": 96, "shared_expert_intermediate_size": 128}),
    ("qwen3_moe", {**SMALL, "mlp_only_layers": [1], "num_experts": 6, "moe_intermediate_size": 96, "head_dim": 48}),
    ("gpt_oss", {**SMALL, "num_local_experts": 6, "attention_bias": False}),
    ("deepseek_v2", {**SMALL, **MLA, **EXPERTS, "first_k_dense_replace": 1, "num_key_value_heads": 8}),
    ("deepseek_v2", {**SMALL, **MLA, **EXPERTS, "q_lora_rank": None, "num_key_value_heads": 8, "n_shared_experts": 3, "attention_bias": True}),
    ("deepseek_v3", {**SMALL, **MLA, **EXPERTS, "first_k_dense_replace": 1, "num_key_value_heads": 8}),
    # encoders
    *((family, {k: v for k, v in SMALL.items() if k != "num_key_value_heads"}) for family in ("bert", "roberta", "xlm-roberta", "camembert", "electra", "modernbert")),
    ("electra", {"hidden_size": 256, "embedding_size": 128, "intermediate_size": 704, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 1000}),
    ("distilbert", {"dim": 256, "hidden_dim": 600, "n_layers": 3, "n_heads": 8, "vocab_size": 1000}),
    ("deberta-v2", {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 3, "num_attention_heads": 8, "vocab_size": 1000}),
    ("deberta-v2", {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 3, "num_attention_heads": 8, "vocab_size": 1000, "type_vocab_size": 2,
                    "relative_attention": True, "position_buckets": 64, "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p", "position_biased_input": False}),
    ("deberta-v2", {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 3, "num_attention_heads": 8, "vocab_size": 1000,
                    "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "conv_kernel_size": 3}),
    ("vit", {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 3, "num_attention_heads": 8, "image_size": 64, "patch_size": 8}),
    ("modernbert", {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 3, "num_attention_heads": 8, "vocab_size": 1000, "pad_token_id": 0, "attention_bias": True, "mlp_bias": True, "norm_bias": True, "decoder_bias": False}),
    # encoder-decoders
    ("t5", T5), ("t5", {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}), ("mt5", T5), ("umt5", T5),
    ("bart", BART), ("mbart", BART), ("pegasus", BART), ("marian", {**BART, "pad_token_id": 999}),
    ("whisper", {**BART, "num_mel_bins": 40, "max_source_positions": 100, "max_target_positions": 50, "pad_token_id": 0}),
]  # fmt: skip


def model_of(config: Any) -> Any:
    """The class that people train: the causal, masked or sequence-to-sequence head."""
    if config.model_type == "vit":
        return hugging.AutoModelForImageClassification.from_config(config)
    if config.model_type == "whisper":
        return hugging.AutoModelForSpeechSeq2Seq.from_config(config)
    if config.is_encoder_decoder:
        return hugging.AutoModelForSeq2SeqLM.from_config(config)
    if config.model_type in (
        "bert",
        "roberta",
        "xlm-roberta",
        "camembert",
        "electra",
        "distilbert",
        "deberta-v2",
        "modernbert",
    ):
        return hugging.AutoModelForMaskedLM.from_config(config)
    return hugging.AutoModelForCausalLM.from_config(config)


def row(family: str, says: dict[str, object]) -> dict[str, object]:
    with torch.device("meta"):
        model = model_of(hugging.AutoConfig.for_model(family, **says))
    sizes = [parameter.numel() for parameter in model.parameters()]
    config = {"model_type": family, **says}
    return {"config": config, "parameters": sum(sizes), "tensors": len(sizes), "largest_tensor": max(sizes)}


def main() -> None:
    logging.disable(logging.WARNING)  # token ids beyond the small vocabularies
    rows = [row(family, dict(says)) for family, says in ROWS]
    about = f"counted by tests/bench/parameter_counts.py with transformers {hugging.__version__}"
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    TABLE.write_text(f'{{"about": {json.dumps(about)}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")
    print(len(rows), "rows")


if __name__ == "__main__":
    main()
