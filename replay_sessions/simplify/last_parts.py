"""The last parts of the names of all targets: from their labels, and where those are the same from their addresses."""

from replay_sessions.simplify.apart import address_key, tell_apart, words_key
from replay_sessions.simplify.names import leaf, rest
from replay_sessions.simplify.targets import Target

__all__ = ["last_parts"]


def last_parts(targets: list[Target], labels: list[str]) -> list[str]:
    """The last part of each target's name, as far as its scope allows the same as of no other."""
    lasts = [_last_part(target, label) for target, label in zip(targets, labels, strict=True)]
    places = [
        (index if target.is_container else target.scope.named, last)
        for index, (target, last) in enumerate(zip(targets, lasts, strict=True))
    ]
    keys = _Keys(targets, labels, lasts)
    added = tell_apart(places, (keys.rest, keys.words, keys.number))
    return [f"{last}_{added[index]}" if index in added else last for index, last in enumerate(lasts)]


class _Keys:
    """What may tell targets from each other. Functions in a function would be a circle of references (mypyc)."""

    def __init__(self, targets: list[Target], labels: list[str], lasts: list[str]) -> None:
        self._targets = targets
        self._labels = labels
        self._lasts = lasts

    def rest(self, index: int) -> str:
        return rest(self._labels[index])

    def words(self, index: int) -> str:
        return words_key(_address(self._targets, index), self._lasts[index])

    def number(self, index: int) -> str:
        return address_key(_address(self._targets, index))


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
