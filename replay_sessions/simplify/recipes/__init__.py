"""Site recipes: what a shop's pages call things, as data. docs/recipes.md says how to write one in ten minutes.

A recipe is a TOML file of rules; each rule says which elements it is about (`select`) and what holds for them. Where
several rules fit one element, the first that says something about a point decides it, so a recipe's own rules come
before those of the recipe that it extends.
"""

import functools
import tomllib
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec
from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from replay_sessions.foundation.config_errors import what_is_wrong
from replay_sessions.foundation.errors import BadConfig, did_you_mean
from replay_sessions.simplify.names import slug

PrivateKind = Literal["name", "email", "phone", "card", "order", "address"]


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule for the elements that `select` selects.

    Attributes:
        select: Which elements, in CSS.
        scope: A word that begins the names of everything inside: `refinements` gives `refinements.color.red`.
            "" keeps a rule that follows from giving one.
        card: A scope named by its title (a `title` rule inside it, or the element's own label); until a title is found
            it adds nothing to the names. Its value is the last part of the name of links that repeat the title; ""
            says that it is none, though the page repeats it.
        title: The text of this element is the title of the nearest card around it.
        badge: The text of this element (`New`, a count) is no part of the names of what it is in.
        name: The last part of the element's name. It also makes an element clickable that is none by itself.
        role: The role to show, in place of the page's own.
        drop: Leave the element out, with everything inside.
        keep: Show the element though it is hidden.
        private: What kind of private data the text inside is; it is taken out.
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


class _RecipeFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recipe as its TOML file says it.

    Attributes:
        extends: The recipe whose rules follow this one's; "" for none.
        detect: Strings that all occur in the source of the site's pages; with none it is only used by name.
    """

    rule: tuple[Rule, ...] = ()
    extends: str = "generic"
    detect: tuple[str, ...] = ()


def _merge(rules: Iterable[Rule]) -> Rule:
    """Returns one rule out of several, of which the first that says something about a point decides it."""
    settings: dict[str, str | bool] = {}
    for rule in rules:
        for field, value in msgspec.structs.asdict(rule).items():
            if field != "select" and value is not None:
                settings.setdefault(field, value)
    settings = {field: value for field, value in settings.items() if value or field == "card"}
    return msgspec.convert(settings, Rule) if settings else NO_RULE


class Recipe:
    """Rules ready to be matched.

    Raises:
        BadConfig: A selector is not understood.
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
        """Returns the rule that holds for each element (`mem_id`) of a page about which the recipe says something."""
        fitting: dict[int, tuple[int, ...]] = {}
        for index, rule in enumerate(self.rules):
            for node in document.css(rule.select):
                fitting[node.mem_id] = (*fitting.get(node.mem_id, ()), index)
        return {node: self._merged(indices) for node, indices in fitting.items()}


def load_recipe(name_or_file: str | Path) -> Recipe:
    """The recipe of a given name ("amazon", "generic"), or of a TOML file.

    Raises:
        BadConfig: there is no such recipe, or it does not read as one.
    """
    if isinstance(name_or_file, str) and name_or_file in _built_in():
        return _load_built_in(name_or_file)
    path = Path(name_or_file)
    if not path.is_file():
        raise BadConfig(
            f"no recipe named {str(name_or_file)!r} and no such file. {did_you_mean(str(name_or_file), _built_in())}"
        )
    return _read(path.stem, path.read_bytes(), str(path))


def find_recipe(raw_html: bytes) -> Recipe:
    """The built-in recipe of the site that a page comes from, or the generic one."""
    recipes = map(_load_built_in, _built_in())
    likely = (recipe for recipe in recipes if recipe.detect and all(text in raw_html for text in recipe.detect))
    return next(likely, _load_built_in("generic"))


@functools.cache
def _built_in() -> tuple[str, ...]:
    folder = resources.files("replay_sessions.simplify.recipes")
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


@functools.cache
def _load_built_in(name: str) -> Recipe:
    file = resources.files("replay_sessions.simplify.recipes") / f"{name}.toml"
    return _read(name, file.read_bytes(), f"recipe {name!r}")


def _read(name: str, content: bytes, where: str) -> Recipe:
    try:
        written = msgspec.toml.decode(content, type=_RecipeFile)
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(
            f"{where}: {what_is_wrong(error, _RecipeFile)} (docs/recipes.md lists what a recipe may say)"
        ) from None
    rules = written.rule
    for number, rule in enumerate(rules, 1):
        for field, word in (("scope", rule.scope), ("card", rule.card), ("name", rule.name)):
            if word and word != slug(word):
                raise BadConfig(
                    f"{where}: {field} = {word!r} in rule {number} cannot be a part of a name; "
                    f"write {slug(word) or 'a word'!r} (lower case, letters and digits, _ between words)"
                )
    if written.extends and written.extends != name:
        rules += load_recipe(written.extends).rules
    return Recipe(name, rules, written.detect)
