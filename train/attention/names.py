"""The attentions that a configuration may name; choice.py selects one. Nothing here loads torch."""

from replay_sessions.foundation.errors import BadConfig, did_you_mean

PACKED = ("flex", "merged", "structured")  # they pass over a whole pack at once
ATTENTIONS = ("auto", *PACKED, "depth_first")
DEFAULT_CHUNK_TOKENS = 2048


def check_attention_name(name: str, chunk_tokens: int | None) -> None:
    """Raises BadConfig for an unknown name, or one that contradicts `chunk_tokens`."""
    if name == "cudnn":
        raise BadConfig(f"model.attention 'cudnn' was removed; choose one of {', '.join(ATTENTIONS)}.")
    if name not in ATTENTIONS:
        raise BadConfig(f"model.attention is {name!r}. {did_you_mean(name, ATTENTIONS)}")
    if chunk_tokens is not None and name in PACKED:
        raise BadConfig(
            f"model.attention is {name!r}, which passes whole packs, and model.chunk_tokens {chunk_tokens} asks "
            "for depth-first passes; leave one of them out."
        )


def resolve_chunk_tokens(name: str, chunk_tokens: int | None) -> int | None:
    """How many tokens of a trunk depth-first passes take at a time; None: passes are not depth-first."""
    return DEFAULT_CHUNK_TOKENS if name == "depth_first" and chunk_tokens is None else chunk_tokens
