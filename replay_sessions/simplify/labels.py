"""Labels that one element of a page holds for another: `aria-labelledby`, `<label for=…>`, `<label>` around a field."""

from collections.abc import Iterable

from selectolax.lexbor import LexborNode

from replay_sessions.simplify.names import Scope
from replay_sessions.simplify.targets import Attributes, Target

__all__ = ["Labels"]


class Labels:
    """What the walk finds of labels, and who asks for them.

    Attributes:
        ids: The ids of elements whose text is the label of others.
        texts: Their texts, as far as they are known.
        by_field: The texts of `<label for=…>`, by the id that they label.
        fields: Those of the targets that a `<label>` around them labels.
        unlabelled: Cards whose title is the text of other elements, with the attributes that name those.
    """

    def __init__(self, ids: frozenset[str] = frozenset()) -> None:
        self.ids = ids
        self.texts: dict[str, str] = {}
        self.by_field: dict[str, str] = {}
        self.fields: list[Target] = []
        self.unlabelled: list[tuple[Scope, Attributes]] = []

    @classmethod
    def of(cls, asking: Iterable[LexborNode]) -> "Labels":
        """The labels of a page that is yet to be walked, given its elements with `aria-labelledby`."""
        return cls(frozenset(word for node in asking for word in (node.attributes["aria-labelledby"] or "").split()))

    def settle(self, targets: list[Target]) -> None:
        """Gives targets and cards the labels that other elements hold. Known after the walk."""
        for target in targets if self.ids or self.by_field else ():
            if not target.label:
                attributes = target.attributes
                if "aria-labelledby" in attributes:
                    target.label = self._text_of(attributes["aria-labelledby"])
                elif self.by_field and (identifier := attributes.get("id")) is not None:
                    target.label = self.by_field.get(identifier, "")
        for scope, attributes in self.unlabelled:
            scope.title = scope.title or self._text_of(attributes["aria-labelledby"])

    def _text_of(self, ids: str | None) -> str:
        return " ".join(filter(None, [self.texts.get(identifier) for identifier in (ids or "").split()]))
