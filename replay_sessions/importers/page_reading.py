"""How a log's pages become pages of a store: simplified if they are raw, without private data if that is asked for.

Importers of mapped logs and of OPeRA put each session through `as_stored`; `raw` does it row by row (raw/steps.py).
A target that is not found on its simplified page is left out, counted and listed, and the next step's `gap` says so.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from replay_sessions.errors import BadSession
from replay_sessions.importers.importer import Imported, LeftOut
from replay_sessions.importers.raw.targets import RawPage, Target, Unresolved
from replay_sessions.schema import Session, Step, Terminate, TypeAndSubmit
from replay_sessions.simplify import load_recipe
from replay_sessions.simplify.private_data import Removal, remove_from_text
from replay_sessions.simplify.private_data.sessions import without_private_data, without_private_words
from replay_sessions.simplify.recipes import Rule
from replay_sessions.store.manifest import SetAside

__all__ = ["AS_LOGGED", "NOT_FOUND", "PageReading", "as_stored", "reading_of"]

NOT_FOUND = "{} not found on its page"  # how an action is counted whose page or element is not found
_KEPT_PAGES = 4  # consecutive actions are often on one page


class PageReading(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a log's pages are, and what is to be done to them.

    Attributes:
        pages: Raw pages are simplified, and what was acted on is looked up in them.
        recipe: How raw pages are simplified, a NAME or a FILE; None: it is found by the site.
        private_data: Whether it is taken out; None: out of raw pages it is, simplified ones stay as they are.
    """

    pages: Literal["simplified", "raw"] = "simplified"
    recipe: str | None = None
    private_data: Literal["remove", "keep"] | None = None

    @property
    def removes(self) -> bool:
        return self.private_data == "remove" or (self.private_data is None and self.pages == "raw")

    def told(self) -> dict[str, str]:
        """What of it differs from pages that are stored as they were logged, for the manifest."""
        told = {"pages": "raw", "recipe": self.recipe or "by site"} if self.pages == "raw" else {}
        return {**told, "private_data": "removed" if self.removes else "kept"} if self != AS_LOGGED else {}

    def rules(self) -> tuple[Rule, ...] | None:
        """The content of the recipe that is named.

        Raises:
            BadConfig: There is none of that name.
        """
        return load_recipe(self.recipe).rules if self.recipe is not None else None


AS_LOGGED = PageReading()


def reading_of(options: PageReading) -> PageReading:
    """What an importer's options, which hold those of PageReading, say of its pages."""
    return PageReading(pages=options.pages, recipe=options.recipe, private_data=options.private_data)


def as_stored(
    session: Session, reading: PageReading, where: str, targets: Sequence[Target | None] | None = None
) -> Iterator[Imported]:
    """A logged session as it is stored, what is left out of it, and why.

    Args:
        where: Where it stands in the log.
        targets: What each step acts on; by default that the name that is logged is a name, or else a text.
    """
    if reading.pages == "simplified":
        yield without_private_data(session) if reading.removes else session
        return
    steps: list[Step] = []
    removed: list[Removal] = []
    gap = 0
    for number, step in enumerate(session.steps, start=1):
        kind = str(step.action.__struct_config__.tag)
        try:
            target = targets[number - 1] if targets else None
            if step.page.strip():
                raw = _raw_page(step.page, reading)
                removed += raw.page.removed
                step = _simplified(step, raw, target)
            steps.append(msgspec.structs.replace(step, gap=step.gap + gap))
        except (Unresolved, BadSession) as error:
            yield LeftOut(action_type=NOT_FOUND.format(kind))
            reason = remove_from_text(str(error), removed) if reading.removes else str(error)
            yield SetAside(where=f"{where}, step {number}", reason=reason)
            gap += 1 + step.gap
        else:
            gap = 0
    if not steps:
        yield SetAside(where=where, reason="none of its actions could be taken in")
    elif reading.removes:
        yield without_private_words(msgspec.structs.replace(session, steps=tuple(steps)), tuple(dict.fromkeys(removed)))
    else:
        yield msgspec.structs.replace(session, steps=tuple(steps))


@lru_cache(_KEPT_PAGES)
def _raw_page(page: str, reading: PageReading) -> RawPage:
    recipe = load_recipe(reading.recipe) if reading.recipe else None
    return RawPage(page.encode("utf-8", "replace"), recipe, private_data=reading.removes)


def _simplified(step: Step, raw: RawPage, target: Target | None) -> Step:
    if isinstance(step.action, Terminate):
        return msgspec.structs.replace(step, page=raw.page.html)
    sought = target or {"name": step.action.name, "element_text": step.action.name}
    name = raw.find(sought, typed=isinstance(step.action, TypeAndSubmit))
    return msgspec.structs.replace(step, page=raw.page.html, action=msgspec.structs.replace(step.action, name=name))
