"""The last parts of the names of all targets: from their labels, and where those are the same from their addresses."""

import functools

from replay_sessions.simplify.apart import tell_apart
from replay_sessions.simplify.names import leaf
from replay_sessions.simplify.targets import Target

__all__ = ["last_parts"]


def last_parts(targets: list[Target], labels: list[str]) -> list[str]:
    """The last part of each target's name, as far as its scope allows the same as of no other."""
    lasts = [_last_part(target, label) for target, label in zip(targets, labels, strict=True)]
    places = [
        (index if target.is_container else target.scope.named, last)
        for index, (target, last) in enumerate(zip(targets, lasts, strict=True))
    ]
    added = tell_apart(places, labels, lasts, functools.partial(_address, targets))
    return [f"{last}_{added[index]}" if index in added else last for index, last in enumerate(lasts)]


def _last_part(target: Target, label: str) -> str:
    if target.is_container:
        return ""
    last = leaf(label) or target.tag
    card = target.scope.card
    if card is not None and card.repeat and _repeats(last, card.title_word()):
        last = card.repeat if target.steady or not target.has_image else "image"
    return last


def _repeats(last: str, title: str) -> bool:
    """Whether a label says the title of its card, or several words of it and no others."""
    return last == title or ("_" in last and title.startswith(f"{last}_"))


def _address(targets: list[Target], index: int) -> str | None:
    """Where a target leads, or the first one in it."""
    target = targets[index]
    inside = targets[index + 1] if index + 1 < len(targets) else target
    return target.attributes.get("href") or (inside.attributes.get("href") if inside.outer is target else None)
