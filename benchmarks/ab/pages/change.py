"""Loads a change, which turns the page of A into the page of B: rules in a TOML file, or a user's function.

    [[rule]]                                  # each rule selects elements of the simplified page and changes them
    select = "[name$=add_to_cart]"
    replace = { "Add to cart" = "Add to basket" }

    shop-r1 ab pages --change my_change.toml …
    shop-r1 ab pages --change my_change.py:cheaper …         def cheaper(page: str) -> str

Rules are applied in order, each to the result of the rules before it. They keep the names of elements, because actions
are counted by name. The same parser serializes both pages, so that they differ in the change alone.
"""

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from replay_sessions.foundation.config_errors import load_toml
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import error_with_line, load_own
from replay_sessions.foundation.records import Config
from shop_env.choices.offers import MONEY, amount, amounts, ancestors

PageChange = Callable[[str], str]


class Rule(Config, omit_defaults=True):
    """One change of the elements that `select` selects.

    Attributes:
        select: A CSS selector on the simplified page, such as `[name$=add_to_cart]`.
        hide: Removes the elements with all that they contain.
        first: Moves each element to the front of its parent.
        replace: Words in the texts of the elements, and their replacements.
        scale_prices: The factor that multiplies the prices in the texts of the elements: with 1.1, $1,234.50 becomes
            $1,357.95, and 12,90 € becomes 14,19 €. A whole price below 100 gets cents if it needs them.
    """

    select: str
    hide: bool = False
    first: bool = False
    replace: dict[str, str] = {}
    scale_prices: float | None = None

    def __post_init__(self) -> None:
        if [self.hide, self.first, bool(self.replace), self.scale_prices is not None].count(True) != 1:
            raise BadConfig(f"the rule for {self.select!r} must do one thing: hide, first, replace or scale_prices")

    def apply(self, document: LexborHTMLParser) -> None:
        """Applies the rule to the document, in place.

        Raises:
            BadConfig: `select` is no valid CSS selector.
        """
        try:
            elements = _outermost(document.css(self.select))
        except SelectolaxError as error:
            raise BadConfig(f"{self.select!r} is no CSS selector that is understood") from error
        for element in reversed(elements) if self.first else ():  # so that they keep their order at the front
            _move_to_front(element)
        for element in elements if self.hide else ():
            element.decompose()
        for element in () if self.first or self.hide else elements:
            for text in [node for node in element.traverse(include_text=True) if node.tag == "-text"]:
                before = text.text_content or ""
                if (after := self._reworded(before)) != before:
                    text.replace_with(after)

    def _reworded(self, text: str) -> str:
        if self.scale_prices is not None:
            return MONEY.sub(self._scaled, text)
        words = re.compile("|".join(re.escape(old) for old in sorted(self.replace, key=len, reverse=True)))
        return words.sub(lambda match: self.replace[match[0]], text)

    def _scaled(self, price: re.Match[str]) -> str:
        number = price[1] or price[2]
        assert self.scale_prices is not None
        value = amount(number) * self.scale_prices
        integer, point, cents, *_ = [*re.split(r"([.,])(?=\d\d?$)", number), "", ""]
        thousands = re.sub(r"\d", "", integer)[:1]
        point = point or ("," if thousands == "." or price[2] else ".")
        digits = len(cents) or 2 * (value < 100 and round(value, 2) % 1 > 0)
        written = f"{value:,.{digits}f}".translate(str.maketrans({",": thousands, ".": point}))
        return price[0].replace(number, written)


class _ChangeFile(Config):
    rule: tuple[Rule, ...]


def load_change(source: str) -> PageChange:
    """Loads the change that `FILE.toml`, `FILE.py:FUNCTION` or `MODULE:FUNCTION` names.

    The returned change raises BadConfig if the function fails or does not return the text of a page.

    Raises:
        BadConfig: The file or function does not exist or cannot be loaded.
    """
    if source.endswith(".toml"):
        return partial(_apply_rules, load_toml(_ChangeFile, "change", source, Path()).rule)
    try:
        function = load_own(source)
    except (ImportError, AttributeError, FileNotFoundError, ValueError) as error:
        raise BadConfig(
            f"change '{source}' cannot be loaded ({error}): expected FILE.toml with rules, FILE.py:FUNCTION or "
            "MODULE:FUNCTION"
        ) from error

    def change(page: str) -> str:
        try:
            changed: object = function(page)
        except Exception as error:
            raise BadConfig(f"change '{source}' failed: {error_with_line(error)}") from error
        if not isinstance(changed, str):
            raise BadConfig(f"change '{source}' gave {type(changed).__name__}; the text of a page was expected")
        return changed

    return change


def written_out(page: str) -> str:
    """Returns the page as the parser serializes it, so that unchanged parts of A and B are equal byte by byte."""
    return LexborHTMLParser(page).html or ""


def count_prices(page: str) -> Counter[float]:
    """Counts the prices on a page, parsed as the agent `choice` parses them."""
    body = LexborHTMLParser(page).body
    return Counter(amounts(body.text(separator=" ")) if body else ())


def spaced(page: str) -> str:
    """Returns the page of the placebo: blank lines at both ends and between all lines, with the same content."""
    return "\n" + page.replace("\n", "\n\n") + "\n"


def _apply_rules(rules: tuple[Rule, ...], page: str) -> str:
    document = LexborHTMLParser(page)
    for rule in rules:
        rule.apply(document)
    return document.html or ""


def _move_to_front(element: LexborNode) -> None:
    first = element.parent.first_child if element.parent else None
    if first is not None and first.mem_id != element.mem_id:
        first.insert_before(element)  # inserts a copy
        element.decompose()


def _outermost(elements: list[LexborNode]) -> list[LexborNode]:
    """Returns the elements that are not inside another of these elements."""
    selected = {element.mem_id for element in elements}
    return [element for element in elements if selected.isdisjoint(around.mem_id for around in ancestors(element))]
