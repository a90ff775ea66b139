"""What a change is: rules in a TOML file, or a function of one's own, from the page of A to the page of B.

    [[rule]]                                  # each rule selects elements of the simplified page, and does one thing
    select = "[name$=add_to_cart]"
    text = "Put it into my basket"

    shop-r1 ab pages --change my_change.toml …
    shop-r1 ab pages --change my_change.py:cheaper …         def cheaper(page: str) -> str

Rules are applied one after another, each to what those before it have made of the page. Names stay those of A unless a
rule changes them: an action is counted by the name it carries, and whether an agent still knows an element by another
name is part of what is asked.
"""

import html
import inspect
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.ab.pages.source_edits import (
    Edit,
    ElementSpan,
    SourcePage,
    attribute_of,
    replaced_in_texts,
    spliced,
    with_attributes,
)
from replay_sessions.foundation.config_errors import what_is_wrong
from replay_sessions.foundation.errors import BadConfig, BadSession, ShopR1Error
from replay_sessions.foundation.plugins import NoSuchName, load_own
from replay_sessions.foundation.records import Config


class Rule(Config, omit_defaults=True):
    """What happens to the elements that `select` selects: one of the others.

    Attributes:
        select: A CSS selector on the simplified page, such as `[name$=add_to_cart]`.
        text: What it says from now on, in place of all that is in it.
        replace: Words in its texts, and what comes in their place.
        set: Attributes and their values.
        name: The last part of its name from now on, as in recipes.
        drop: It goes, with everything inside.
        move_before, move_after: It goes before or after the first element that this selector selects.
        insert_before, insert_after: HTML that comes before or after it.
    """

    select: str
    text: str | None = None
    replace: dict[str, str] | None = None
    set: dict[str, str] | None = None
    name: str | None = None
    drop: bool | None = None
    move_before: str | None = None
    move_after: str | None = None
    insert_before: str | None = None
    insert_after: str | None = None

    @property
    def operation(self) -> dict[str, Any]:
        """The name of the operation and its value."""
        return {name: value for name in OPERATIONS if (value := getattr(self, name)) is not None}


OPERATIONS = tuple(name for name in Rule.__struct_fields__ if name != "select")


class _ChangeFile(Config):
    rule: tuple[Rule, ...] = ()


class Change:
    """A page of A in, the page of B out.

    Attributes:
        source: As the user named it.
        unmatched: What of it has done nothing yet, in words.
    """

    def __init__(self, source: str, function: Callable[[str], str]) -> None:
        self.source = source
        self._function = function

    def __call__(self, page: str) -> str:
        """The page of B.

        Raises:
            BadConfig: The function fails, or gives no page.
        """
        try:
            changed: object = self._function(page)
        except ShopR1Error:
            raise
        except Exception as error:
            raise BadConfig(f"change '{self.source}' failed: {type(error).__name__}: {error}") from error
        if not isinstance(changed, str):
            raise BadConfig(
                f"change '{self.source}' gave {type(changed).__name__}, and the text of a page was expected"
            )
        return changed

    @property
    def unmatched(self) -> list[str]:
        return []


class RuleChange(Change):
    """Rules, and how many pages each has changed."""

    def __init__(self, source: str, rules: tuple[Rule, ...]) -> None:
        super().__init__(source, self._apply)
        self.rules = rules
        self._pages = [0] * len(rules)

    @property
    def unmatched(self) -> list[str]:
        return [
            f"rule {number} of {self.source} (select = {rule.select!r}) changes no page"
            for number, (rule, pages) in enumerate(zip(self.rules, self._pages, strict=True), 1)
            if not pages
        ]

    def _apply(self, page: str) -> str:
        for index, rule in enumerate(self.rules):
            try:
                changed = _apply_rule(page, rule)
            except (BadConfig, BadSession) as error:
                raise BadConfig(f"rule {index + 1} of {self.source}: {error}") from error
            self._pages[index] += changed != page
            page = changed
        return page


def load_change(source: str) -> Change:
    """The change that `FILE.toml`, `FILE.py:FUNCTION` or `MODULE:FUNCTION` names.

    Raises:
        BadConfig: There is none, or it does not read as one.
    """
    if source.endswith(".toml"):
        return RuleChange(source, _read_rules(Path(source)))
    if ":" not in source:
        raise BadConfig(f"--change {source!r}: expected FILE.toml with rules, FILE.py:FUNCTION or MODULE:FUNCTION")
    try:
        function = load_own(source)
        inspect.signature(function).bind("")
    except NoSuchName as error:
        module, _, name = source.rpartition(":")
        raise BadConfig(f"no function '{name}' in '{module}'. {error}") from error
    except (ImportError, FileNotFoundError) as error:
        raise BadConfig(f"change '{source}' cannot be loaded: {error}") from error
    except TypeError as error:
        raise BadConfig(
            f"change '{source}' takes no page alone ({error}): expected def change(page: str) -> str"
        ) from error
    return Change(source, function)


def _read_rules(path: Path) -> tuple[Rule, ...]:
    try:
        rules = msgspec.toml.decode(path.read_bytes(), type=_ChangeFile).rule
    except OSError as error:
        raise BadConfig(f"change '{path}' cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"change '{path}': {what_is_wrong(error, _ChangeFile)}") from None
    if not rules:
        raise BadConfig(f"change '{path}' has no rule: each begins with [[rule]] and has select = \"…\"")
    for number, rule in enumerate(rules, 1):
        if len(rule.operation) != 1 or rule.drop is False or rule.replace in ({}, {"": ""}) or rule.set == {}:
            raise BadConfig(
                f"rule {number} of '{path}' does {', '.join(rule.operation) or 'nothing'}: it must do one thing of "
                f"{', '.join(OPERATIONS)} (one rule may follow another with the same select)"
            )
    return rules


def spaced(page: str) -> str:
    """The placebo: a blank line more at each end of the page and wherever a line ends; what it says stays."""
    return "\n" + page.replace("\n", "\n\n") + "\n"


def _apply_rule(page: str, rule: Rule) -> str:
    source = SourcePage(page)
    spans = source.select(rule.select)
    [(operation, value)] = rule.operation.items()
    if operation not in ("set", "name", "insert_before", "insert_after"):  # these change nothing that is inside
        spans = _outermost(spans)
    if operation not in ("move_before", "move_after"):
        return spliced(page, [_edit(page, span, operation, value) for span in spans])
    targets = source.select(value)
    if not spans or not targets:
        return page
    target = targets[0]
    if any(span.start < target.start < span.end for span in spans):
        raise BadConfig("an element cannot be moved into what it holds")
    at = target.start if operation == "move_before" else target.end
    moved = "".join(page[span.start : span.end] for span in spans)
    return spliced(page, [(at, at, moved), *((span.start, span.end, "") for span in spans)])


def _edit(page: str, span: ElementSpan, operation: str, value: Any) -> Edit:
    start, inner, inner_end, end = span
    tag = page[start:inner]
    match operation:
        case "set":
            return start, inner, with_attributes(tag, value)
        case "name":
            before, dot, _ = (attribute_of(tag, "name") or "").rpartition(".")
            return start, inner, with_attributes(tag, {"name": before + dot + value})
        case "insert_before":
            return start, start, value
        case "insert_after":
            return end, end, value
        case "drop":
            return start, end, ""
        case "replace":
            return inner, inner_end, replaced_in_texts(page[inner:inner_end], value)
    if inner == end:
        raise BadConfig(f"{tag!r:.80} holds no text: set = {{value = …}} changes what a field says")
    return inner, inner_end, html.escape(value, quote=False)


def _outermost(spans: list[ElementSpan]) -> list[ElementSpan]:
    outermost: list[ElementSpan] = []
    for span in spans:
        if not outermost or span.start >= outermost[-1].end:
            outermost.append(span)
    return outermost
