"""Loads site recipes, TOML files with rules for the names on a shop's pages; docs/recipes.md explains how to write one.

Each rule selects elements (`select`) and sets properties of theirs. If several rules match an element, the first rule
that sets a property decides it, so a recipe's own rules come before those of the recipe that it extends.
"""

import functools
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec
from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from replay_sessions.foundation.config_errors import load_toml, toml_names
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Config
from replay_sessions.simplify.names import slug

_FOLDER = resources.files("replay_sessions.simplify.recipes")
PrivateKind = Literal["name", "email", "phone", "card", "order", "address"]


class Rule(Config):
    """A rule for the elements that `select` selects.

    Attributes:
        select: CSS selector of the elements.
        scope: A word that begins the names of everything inside: `refinements` gives `refinements.color.red`.
            "" prevents that a later rule sets one.
        card: Makes the element a scope named by its title (a `title` rule inside it, or the element's own label);
            without a title it adds nothing to the names. The value is the last part of the name of links that repeat
            the title; "" says that the element is no card, although the page repeats it.
        title: Whether the text of this element is the title of the nearest card around it.
        badge: Whether the text of this element (`New`, a count) is left out of the names of elements around it.
        name: The last part of the element's name. It also makes the element clickable if it is not by itself.
        role: The role to show instead of the page's own.
        drop: Whether the element is left out, with everything inside.
        keep: Whether the element is shown even if it is hidden.
        private: Kind of private data that the content is; it is removed.
    """

    select: str = ""
    scope: str | None = None
    card: str | None = None
    title: bool | None = None
    badge: bool | None = None
    name: str | None = None
    role: str | None = None
    drop: bool | None = None
    keep: bool | None = None
    private: PrivateKind | None = None


NO_RULE = Rule()


class _RecipeFile(Config):
    """The content of a recipe's TOML file.

    Attributes:
        rule: Rules of the recipe, in order of precedence.
        extends: Name of a recipe with rules that follow those of this one; "" for none.
        detect: Strings that all occur in the source of the site's pages; if empty, the recipe is only used by name.
    """

    rule: tuple[Rule, ...] = ()
    extends: str = "generic"
    detect: tuple[str, ...] = ()


def _merge(rules: Iterable[Rule]) -> Rule:
    """Merges rules into one; the first rule that sets a property decides it."""
    settings: dict[str, str | bool] = {}
    for rule in rules:
        for field, value in msgspec.structs.asdict(rule).items():
            if field != "select" and value is not None:
                settings.setdefault(field, value)
    settings = {field: value for field, value in settings.items() if value or field == "card"}
    return msgspec.convert(settings, Rule) if settings else NO_RULE


class Recipe:
    """A recipe with checked rules.

    Raises:
        BadConfig: A selector is not valid.
    """

    def __init__(self, name: str, rules: tuple[Rule, ...], detect: tuple[str, ...] = ()) -> None:
        self.name = name
        self.rules = rules
        self.detect = tuple(text.encode() for text in detect)
        self._merged = functools.cache(lambda indices: _merge(rules[index] for index in indices))
        document = LexborHTMLParser("")
        for number, rule in enumerate(rules, 1):
            try:
                document.css(rule.select)
            except SelectolaxError as error:
                raise BadConfig(f"selector {rule.select!r} in rule {number} of recipe {name!r} is no CSS") from error

    def rules_on(self, document: LexborHTMLParser) -> dict[int, Rule]:
        """Returns the merged rule of each element of a page that rules match, by the element's `mem_id`."""
        fitting: dict[int, tuple[int, ...]] = {}
        for index, rule in enumerate(self.rules):
            for node in document.css(rule.select):
                fitting[node.mem_id] = (*fitting.get(node.mem_id, ()), index)
        return {node: self._merged(indices) for node, indices in fitting.items()}


def load_recipe(name_or_file: str | Path) -> Recipe:
    """Returns the built-in recipe of a name ("amazon", "generic"), or reads a TOML file.

    Raises:
        BadConfig: The recipe does not exist or is not valid.
    """
    return _built_in().get(str(name_or_file)) or _read(str(name_or_file))


def find_recipe(raw_html: bytes) -> Recipe:
    """Returns the built-in recipe of the site that a page comes from, or else the generic one."""
    recipes = _built_in()
    likely = (
        recipe for recipe in recipes.values() if recipe.detect and all(text in raw_html for text in recipe.detect)
    )
    return next(likely, recipes["generic"])


@functools.cache
def _built_in() -> dict[str, Recipe]:
    return {name: _read(name) for name in toml_names(_FOLDER)}


def _read(name_or_file: str) -> Recipe:
    content = load_toml(_RecipeFile, "recipe", name_or_file, _FOLDER)
    name, where = Path(name_or_file).stem, f"recipe '{name_or_file}'"
    rules = content.rule
    for number, rule in enumerate(rules, 1):
        for field, word in (("scope", rule.scope), ("card", rule.card), ("name", rule.name)):
            if word and word != slug(word):
                raise BadConfig(
                    f"{where}: {field} = {word!r} in rule {number} cannot be a part of a name; "
                    f"write {slug(word) or 'a word'!r} (lower case, letters and digits, _ between words)"
                )
    if content.extends and content.extends != name:
        rules += _read(content.extends).rules
    return Recipe(name, rules, content.detect)
