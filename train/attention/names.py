"""The attentions that a run may ask for, by name; choice.py takes one."""

from replay_sessions.errors import BadConfig, did_you_mean

__all__ = ["ATTENTIONS", "OF_WHOLE_PACKS", "STRETCH", "asked_stretch", "check_name"]

OF_WHOLE_PACKS = ("cudnn", "flex", "merged", "structured")  # in the order in which a run tries them
DEPTH_FIRST = "depth_first"
ATTENTIONS = ("auto", *OF_WHOLE_PACKS, DEPTH_FIRST)
STRETCH = 2048  # tokens of a trunk, where sessions are passed depth-first and nobody says how many


def check_name(name: str, stretch_tokens: int | None) -> None:
    """Raises BadConfig for a name that is none, or one that takes no stretches."""
    if name not in ATTENTIONS:
        raise BadConfig(f"model.attention is {name!r}. {did_you_mean(name, ATTENTIONS)}")
    if stretch_tokens is not None and name in OF_WHOLE_PACKS:
        raise BadConfig(
            f"model.attention is {name!r}, which passes whole packs, and model.stretch_tokens {stretch_tokens} asks "
            "for depth-first passes; leave one of them out."
        )


def asked_stretch(name: str, stretch_tokens: int | None) -> int | None:
    """How many tokens of a trunk are passed at a time, where depth-first passes are asked for; None: they are not."""
    return STRETCH if name == DEPTH_FIRST and stretch_tokens is None else stretch_tokens
