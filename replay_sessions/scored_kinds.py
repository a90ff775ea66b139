"""Counts the steps of each kind that are scored and that are not, because the import inferred them.

An import prints the counts, and tables have them in a note: a shop whose log has no product clicks scores none.
"""

from collections import Counter

from replay_sessions.schema import Click, Step, action_type

PRODUCTS = "product clicks"
_KINDS = {
    "view_product": PRODUCTS,
    "quickview": PRODUCTS,
    "add_to_cart": "adds to the cart",
    "remove": "removals",
    "remove_from_cart": "removals",
}
_TYPES = {"purchase": "purchases", "type_and_submit": "typed texts", "terminate": "terminates", "scroll": "scrolls"}


class ScoredKinds:
    """Counts of steps, by kind and by whether the import inferred them."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, bool]] = Counter()

    def add(self, kind: str, name: str | None, *, is_inferred: bool, count: int = 1) -> None:
        """Counts steps of a type of action, or of type "purchase", on the element called `name`."""
        end = (name or "").rpartition(".")[2]
        self._counts[_TYPES.get(kind) or _KINDS.get(end, "other clicks"), is_inferred] += count

    def add_step(self, step: Step) -> None:
        """Counts a step of a store."""
        is_purchase = isinstance(step.action, Click) and step.action.click_type == "purchase"
        kind = "purchase" if is_purchase else action_type(step.action)
        self.add(kind, getattr(step.action, "name", None), is_inferred=step.is_inferred)

    def describe(self) -> str:
        """Says how many steps of each kind are scored.

        >>> kinds = ScoredKinds()
        >>> kinds.add("click", "results.red_mug.view_product", is_inferred=True)
        >>> kinds.add("click", "product.add_to_cart", is_inferred=False)
        >>> kinds.describe()
        'product clicks: none, all 1 inferred; adds to the cart: 1'
        """
        kinds = dict.fromkeys([PRODUCTS, *_KINDS.values(), *_TYPES.values(), "other clicks"])
        return "; ".join(self._describe(kind) for kind in kinds if kind == PRODUCTS or self._total(kind))

    def _total(self, kind: str) -> int:
        return self._counts[kind, False] + self._counts[kind, True]

    def _describe(self, kind: str) -> str:
        scored, inferred = self._counts[kind, False], self._counts[kind, True]
        if not scored:
            return f"{kind}: none, all {inferred:,} inferred" if inferred else f"{kind}: none"
        return f"{kind}: {scored:,}" + (f" ({inferred:,} more inferred)" if inferred else "")
