"""Which architectures the session tree does right, each as a small model with random weights."""

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from replay_sessions.foundation.errors import CheckpointMismatch
from train.models import enable_checked_tree_attention

MAX_TOKENS = 512
SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 1024,
    "initializer_range": 0.1,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GPT2 = {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.1, "eos_token_id": 2}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10_000.0,
    "short_factor": [1.0] * 4,
    "long_factor": [4.0] * 4,
}


def model_of(kind: str, **options: Any) -> Any:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **options)).eval()


# The architectures of docs/models.md.
EXPERTS = {"moe_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2}
ACCEPTED: dict[str, dict[str, Any]] = {
    "llama": SMALL,
    "qwen2": SMALL,
    "qwen3": SMALL,
    "mistral": {**SMALL, "sliding_window": None},
    "smollm3": {**SMALL, "no_rope_layers": [1, 0]},
    "phi3": {**SMALL, "head_dim": 16, "partial_rotary_factor": 0.75},
    "olmo2": SMALL,
    "glm": {**SMALL, "attention_bias": True},
    "glm4": SMALL,
    "exaone4": {**SMALL, "sliding_window": None, "layer_types": ["full_attention"] * 2},
    "gemma": SMALL,
    "granite": {**SMALL, "attention_multiplier": 0.2},
    "qwen3_moe": {**SMALL, **EXPERTS, "num_hidden_layers": 3, "mlp_only_layers": [1]},
    "gpt2": GPT2,
}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *ACCEPTED.items(),
        ("qwen2", {**SMALL, "use_sliding_window": True, "sliding_window": MAX_TOKENS, "max_window_layers": 0}),
    ],
)
def test_plain_causal_attention_is_accepted(kind, options):
    model = model_of(kind, **options)
    enable_checked_tree_attention(model, kind, MAX_TOKENS)
    assert model.config._attn_implementation == "session_tree"


@pytest.mark.parametrize(
    ("kind", "options", "reason"),
    [
        ("mistral", {**SMALL, "sliding_window": MAX_TOKENS - 1}, "slides over 511 tokens"),
        (
            "qwen2",
            {**SMALL, "use_sliding_window": True, "sliding_window": 64, "max_window_layers": 1},
            "slides over 64 tokens",
        ),
        (
            "smollm3",
            {**SMALL, "use_sliding_window": True, "sliding_window": 64, "layer_types": ["sliding_attention"] * 2},
            "slides over 64 tokens",
        ),
        ("gemma2", {**SMALL, "sliding_window": 4096}, "caps logits softly"),
        ("gemma3_text", {**SMALL, "sliding_window": 64}, "slides over 64 tokens"),
        (
            "gpt_oss",
            {**SMALL, "sliding_window": 4096, "num_local_experts": 4, "num_experts_per_tok": 2},
            "attention has sinks",
        ),
        ("gpt2", {**GPT2, "n_positions": 128}, "has 128 positions, and sequences have up to 512"),
        (
            "phi3",
            {**SMALL, "original_max_position_embeddings": 256, "rope_parameters": LONGROPE},
            r"positions \(longrope\) depend on a sequence's whole length beyond 256 tokens",
        ),
        ("mamba", {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}, "no attention"),
        (
            "bloom",
            {"vocab_size": 64, "hidden_size": 32, "n_layer": 2, "n_head": 4},
            "AttentionInterface|packed sequence",
        ),
        ("cohere", {**SMALL, "logit_scale": 0.0625}, "differ from those of plain rows"),
        (
            "bert",
            {k: v for k, v in SMALL.items() if k not in ("num_key_value_heads", "head_dim")},
            "output layer has a bias",
        ),
    ],
)
def test_models_that_a_tree_would_misread_are_refused_with_the_reason(kind, options, reason):
    model = model_of(kind, **options)
    with pytest.raises(CheckpointMismatch, match=reason) as refusal:
        enable_checked_tree_attention(model, "some/model", MAX_TOKENS)
    assert "\n" not in str(refusal.value)
    assert "some/model" in str(refusal.value)


def test_a_window_that_no_configuration_states_is_seen_in_the_trial():
    model = model_of("mistral", **{**SMALL, "sliding_window": 4})
    with pytest.raises(CheckpointMismatch, match="on random tokens its log-probabilities differ"):
        enable_checked_tree_attention(model, "some/model", max_tokens=4)
