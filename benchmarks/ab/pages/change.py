"""What a change is: rules in a TOML file, or a function of one's own, from the page of A to the page of B.

    [[rule]]                                  # each rule selects elements of the simplified page, and does one thing
    select = "[name$=add_to_cart]"
    text = "Put it into my basket"

    python -m benchmarks.ab.pages --change my_change.toml …
    python -m benchmarks.ab.pages --change my_change.py:cheaper …         def cheaper(page: str) -> str

Rules are applied one after another, each to what those before it have made of the page. Names stay those of A unless a
rule changes them: an action is counted by the name it carries, and whether an agent still knows an element by another
name is part of what is asked.
"""

import html
import importlib
import inspect
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.ab.pages.source_edits import (
    Edit,
    Place,
    SourcePage,
    attribute_of,
    replaced_in_texts,
    spliced,
    with_attribute,
)
from replay_sessions.config_errors import what_is_wrong
from replay_sessions.errors import BadConfig, BadSession, ShopR1Error, did_you_mean
from replay_sessions.plugins import load_file

__all__ = ["Change", "Rule", "RuleChange", "load_change", "spaced"]


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
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
    def said(self) -> dict[str, Any]:
        """What it does, and how."""
        return {name: value for name in DOES if (value := getattr(self, name)) is not None}


DOES = tuple(name for name in Rule.__struct_fields__ if name != "select")


class _ChangeFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
                changed = _ruled(page, rule)
            except (BadConfig, BadSession) as error:
                raise BadConfig(f"rule {index + 1} of {self.source}: {error}") from error
            self._pages[index] += changed != page
            page = changed
        return page


def load_change(given: str) -> Change:
    """The change that `FILE.toml`, `FILE.py:FUNCTION` or `MODULE:FUNCTION` names.

    Raises:
        BadConfig: There is none, or it does not read as one.
    """
    if given.endswith(".toml"):
        return RuleChange(given, _read_rules(Path(given)))
    if ":" not in given:
        raise BadConfig(f"--change {given!r}: expected FILE.toml with rules, FILE.py:FUNCTION or MODULE:FUNCTION")
    function = _load_function(given)
    try:
        inspect.signature(function).bind("")
    except TypeError as error:
        raise BadConfig(
            f"change '{given}' takes no page alone ({error}): expected def change(page: str) -> str"
        ) from error
    return Change(given, function)


def _load_function(given: str) -> Callable[[str], str]:
    place, _, name = given.rpartition(":")
    try:
        if place.endswith(".py"):
            module = load_file(Path(place))
        else:
            if str(Path.cwd()) not in sys.path:  # an installed command starts without it
                sys.path.append(str(Path.cwd()))
            module = importlib.import_module(place)
    except (ImportError, FileNotFoundError) as error:
        raise BadConfig(f"change '{given}' cannot be loaded: {error}") from error
    functions = {key: value for key, value in vars(module).items() if inspect.isfunction(value)}
    if name not in functions:
        raise BadConfig(f"no function '{name}' in '{place}'. {did_you_mean(name, functions)}")
    return functions[name]


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
        if len(rule.said) != 1 or rule.drop is False or rule.replace in ({}, {"": ""}) or rule.set == {}:
            raise BadConfig(
                f"rule {number} of '{path}' does {', '.join(rule.said) or 'nothing'}: it must do one thing of "
                f"{', '.join(DOES)} (one rule may follow another with the same select)"
            )
    return rules


def spaced(page: str) -> str:
    """The placebo: a blank line more at each end of the page and wherever a line ends; what it says stays."""
    return "\n" + page.replace("\n", "\n\n") + "\n"


def _ruled(page: str, rule: Rule) -> str:
    source = SourcePage(page)
    places = source.select(rule.select)
    match rule.said:
        case {"set": values}:
            return spliced(page, [_in_tag(page, place, values) for place in places])
        case {"name": last}:
            return spliced(page, [_in_tag(page, place, {"name": _renamed(page, place, last)}) for place in places])
        case {"insert_before": new}:
            return spliced(page, [(place.start, place.start, new) for place in places])
        case {"insert_after": new}:
            return spliced(page, [(place.end, place.end, new) for place in places])
    places = _outermost(places)
    match rule.said:
        case {"drop": _}:
            return spliced(page, [(place.start, place.end, "") for place in places])
        case {"replace": words}:
            return spliced(page, [_between(place, replaced_in_texts(_inner(page, place), words)) for place in places])
        case {"text": text}:
            for place in places:
                if place.inner == place.end:
                    tag = page[place.start : place.inner]
                    raise BadConfig(f"{tag!r:.80} holds no text: set = {{value = …}} changes what a field says")
            return spliced(page, [_between(place, html.escape(text, quote=False)) for place in places])
    [(does, selector)] = rule.said.items()
    targets = source.select(selector)
    return _moved(page, places, targets[0], before=does == "move_before") if places and targets else page


def _outermost(places: list[Place]) -> list[Place]:
    found: list[Place] = []
    for place in places:
        if not found or place.start >= found[-1].end:
            found.append(place)
    return found


def _inner(page: str, place: Place) -> str:
    return page[place.inner : place.inner_end]


def _between(place: Place, new: str) -> Edit:
    return place.inner, place.inner_end, new


def _in_tag(page: str, place: Place, values: dict[str, str]) -> Edit:
    tag = page[place.start : place.inner]
    for name, value in values.items():
        tag = with_attribute(tag, name, value)
    return place.start, place.inner, tag


def _renamed(page: str, place: Place, last: str) -> str:
    before, dot, _ = (attribute_of(page[place.start : place.inner], "name") or "").rpartition(".")
    return before + dot + last


def _moved(page: str, places: list[Place], target: Place, *, before: bool) -> str:
    if any(place.start < target.start < place.end for place in places):
        raise BadConfig("an element cannot be moved into what it holds")
    at = target.start if before else target.end
    moved = "".join(page[place.start : place.end] for place in places)
    return spliced(page, [(at, at, moved), *((place.start, place.end, "") for place in places)])
