"""Which language models support session trees: by their configuration, then by a trial of the model itself.

    config ─► reasons that a short trial cannot show ─► a few random tokens, as a tree and as rows ─► equal, or rejected

The tree replaces a model's attention by its own (train.session_tree) and applies the output weight itself
(train.policy). A model whose attention or head does more than that would train, and wrongly.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from replay_sessions.foundation.errors import CheckpointMismatch
from train.attention.structured import Structured
from train.session_tree import SessionTree, enable_tree_attention, hidden_states, pack

# Of the range of the model's own log-probabilities; float32 rounding is a hundred times smaller.
TOLERANCE = 1e-3
# Scalings of queries, keys or logits that stand in a configuration and outside of the attention function.
SOFTCAPS = ("attn_logit_softcapping", "final_logit_softcapping", "logits_soft_cap")
POSITIONS = ("wpe", "embed_positions", "position_embeddings", "position_embedding")
LENGTH_DEPENDENT_ROPE = ("dynamic", "longrope")


def enable_checked_tree_attention(model: Any, name: str, max_tokens: int | None) -> None:
    """Enables tree attention (train.session_tree.enable_tree_attention) after checking that `model` supports it.

    Args:
        name: Of the model, in messages.
        max_tokens: The longest sequence; None: any.

    Raises:
        CheckpointMismatch: It does not support it, with the reason.
    """
    reason = next(_config_faults(model, max_tokens), None) or _find_fault(model)
    if reason is not None:
        raise CheckpointMismatch(
            f"the model '{name}' ({type(model).__name__}) cannot be used with session trees: {reason}. Take a decoder "
            "with plain causal attention in every layer, such as Llama, Qwen2, Qwen3 or SmolLM2."
        )


def _config_faults(model: Any, max_tokens: int | None) -> Iterator[str]:
    """Reasons against it in the model's configuration and modules."""
    config = model.config.get_text_config()
    longest = float("inf") if max_tokens is None else max_tokens
    lengths = f"sequences have up to {'any number of tokens' if max_tokens is None else max_tokens}"
    if config.is_encoder_decoder:
        yield "it is an encoder and a decoder"
    kinds = set(getattr(config, "layer_types", None) or ["full_attention", "sliding_attention"])
    if others := kinds - {"full_attention", "sliding_attention", "chunked_attention"}:
        yield f"some of its layers are no attention ({', '.join(sorted(others))})"
    window, chunk = getattr(config, "sliding_window", None), getattr(config, "attention_chunk_size", None)
    if window is not None and "sliding_attention" in kinds and window < longest:
        yield f"its attention slides over {window} tokens, and {lengths}"
    if chunk is not None and "chunked_attention" in kinds and chunk < longest:
        yield f"its attention is cut into chunks of {chunk} tokens, and {lengths}"
    for key in SOFTCAPS:
        if getattr(config, key, None):
            yield f"it caps logits softly ({key})"
    if any(part.endswith(".sinks") for part, _ in model.named_parameters()):
        yield "its attention has sinks"
    if getattr(model.get_output_embeddings(), "bias", None) is not None:
        yield "its output layer has a bias"
    rope: dict[str, Any] = getattr(config, "rope_parameters", None) or {}
    trained_length: int = rope.get("original_max_position_embeddings", getattr(config, "max_position_embeddings", 0))
    if rope.get("rope_type") in LENGTH_DEPENDENT_ROPE and trained_length < longest:
        yield f"its positions ({rope['rope_type']}) depend on a sequence's whole length beyond {trained_length} tokens"
    for part, module in model.named_modules():
        # A table of positions; an index beyond its end would stop a GPU for good.
        if isinstance(module, nn.Embedding) and part.rpartition(".")[2] in POSITIONS and len(module.weight) < longest:
            yield f"it has {len(module.weight)} positions, and {lengths}"


class _CountingAttention(Structured):
    """Counts its calls, one of each layer."""

    calls = 0

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        self.calls += 1
        return super().attend(layer, query, key, value, scale)


@torch.no_grad()
def _find_fault(model: Any) -> str | None:
    """Compares a small tree with its rows by the model's own attention; leaves the model with the tree's."""
    before = model.training
    model.eval()
    try:
        model.set_attn_implementation("eager")
        trees = _trial_trees(model.config.get_text_config().vocab_size)
        expected = torch.cat([_row_log_probs(model, tree) for tree in trees])
        enable_tree_attention(model)
        packed = pack(trees).to(model.device)
        attention = _CountingAttention(packed)
        states = hidden_states(model, packed.input_ids, packed.position_ids, attention)
        logits = states[packed.predicted_from] @ model.get_output_embeddings().weight.T
        log_probs = torch.log_softmax(logits, dim=-1)
    except (AttributeError, LookupError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        first_line = next(iter(str(error).splitlines()), "")
        return f"it does not run with a packed sequence ({type(error).__name__}: {first_line})"
    finally:
        model.train(before)
    if not attention.calls:
        return "its layers do not attend through transformers' AttentionInterface"
    difference = ((log_probs - expected).abs().max() / (expected.max() - expected.min())).item()
    if not difference < TOLERANCE:
        return (
            f"on random tokens its log-probabilities differ from those of plain rows by {difference:.1e} of their range"
        )
    return None


def _trial_trees(vocabulary: int) -> list[SessionTree]:
    generator = torch.Generator().manual_seed(0)

    def tokens(count: int) -> list[int]:
        return torch.randint(vocabulary, (count,), generator=generator).tolist()

    return [
        SessionTree(tokens(12), [5, 12], [[tokens(3), tokens(4)], [tokens(4), tokens(3)]]),
        SessionTree(tokens(6), [6], [[tokens(4)]]),
    ]


def _row_log_probs(model: Any, tree: SessionTree) -> Tensor:
    """(N, V) log-probabilities at the reply tokens of a tree, each reply as a row behind its prompt."""
    rows = []
    for fork, replies in zip(tree.forks, tree.replies, strict=True):
        for reply in replies:
            tokens = torch.tensor([[*tree.trunk[:fork], *reply]], device=model.device)
            rows.append(model(input_ids=tokens, use_cache=False).logits[0, fork - 1 : -1])
    return torch.log_softmax(torch.cat(rows).float(), dim=-1)
