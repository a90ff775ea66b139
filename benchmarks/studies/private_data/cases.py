"""Private data of invented people on pages as shops write them: what must go, what must stay, and whether it did.

The cases stand in cases_development.toml, beside which rules may be written, cases_validation.toml, which was written
before the rules of version 0.2.0 were read, and cases_held_out.toml, which is not read while rules are written. Each
template is in one of them. Everything planted is on the simplified
page where nothing is redacted, except values of fields whose type says what they hold: those are always masked.
"""

import html
import json
import re
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote_plus

from replay_sessions import SessionStore
from replay_sessions.importers.raw.importer import RawImporter, RawOptions
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.private_data import remove_from_text, remove_from_url
from replay_sessions.simplify import simplify

Half = Literal["development", "validation", "held_out"]
STAY = "stay"
REFERENCE = "reference"
_MARK = re.compile(r"\[\[(\w+):([^\[\]]*)\]\]")


class Planted(NamedTuple):
    """A text that must go, by the kind of private data that it is, or must stay."""

    kind: str
    text: str

    def parts(self) -> list[str]:
        """What must not be left.

        Of a name each word but small ones and initials, of a street its longest word, of a town the words that hold a
        digit, of a number each group of four digits, of credentials each part of eight characters; else the whole.
        """
        words = [word for word in re.split(r"[\s.,・'’&]+", self.text) if len(word) > 1]
        parts: list[str] = []
        match self.kind:
            case "name":
                parts = [word for word in words if not word.islower()] or words
            case "street":
                parts = [max(re.findall(r"[^\W\d_]+", self.text), key=len)]
            case "town":
                parts = [word for word in words if re.search(r"\d", word)]
            case "credential":
                parts = re.findall(r"[^.:]{8,}", self.text)
            case "phone" | "card" | "iban" | "order" | "id" | "reference":
                parts = [word for word in self.text.split() if re.search(r"(\d\D*){4}", word)]
        return parts or [self.text]


class Case(NamedTuple):
    """A page, an address of a page or a text with private data in it.

    Attributes:
        medium: "page", "url", "text" or, where there is a page before, "session".
        first: The page before.
        text: The page, address or text, without marks.
        planted: The marked texts, which must go or stay.
    """

    template: str
    language: str
    medium: str
    first: str
    text: str
    planted: list[Planted]


class Outcome(NamedTuple):
    """What became of a planted text."""

    case: Case
    planted: Planted
    is_left: bool


def load_cases(half: Half) -> list[Case]:
    """The cases of a half, in the order of its file."""
    text = Path(__file__).with_name(f"cases_{half}.toml").read_text("utf-8")
    templates: dict[str, dict[str, Any]] = tomllib.loads(text)
    cases = []
    for template, entries in templates.items():
        key = next(key for key in ("page", "url", "text") if key in entries)
        medium, first = ("session", entries["first"]) if "first" in entries else (key, "")
        readable = unquote_plus if medium == "url" else html.unescape
        for name, values in entries.items():
            if isinstance(values, list):
                marked = entries[key].format(*values)
                planted = [Planted(kind, readable(text)) for kind, text in _MARK.findall(marked)]
                text = _MARK.sub(r"\2", marked)
                cases.append(Case(template, name[:2], medium, first.format(*values), text, planted))
    return cases


def outcomes(cases: Sequence[Case]) -> list[Outcome]:
    """What became of each planted text, once a case."""
    later_pages = _redact_sessions([case for case in cases if case.medium == "session"])
    results = []
    for case in cases:
        redacted = later_pages.pop(0) if case.medium == "session" else redact(case)
        results += [Outcome(case, planted, is_left(planted, redacted)) for planted in dict.fromkeys(case.planted)]
    return results


def redact(case: Case, *, private_data: bool = True) -> str:
    """A case by itself as the importers leave it, without HTML's and addresses' escapes; False leaves all in."""
    match case.medium:
        case "url":
            return unquote_plus(remove_from_url(case.text) if private_data else case.text)
        case "text":
            return remove_from_text(case.text) if private_data else case.text
        case _:
            return html.unescape(simplify(case.text, private_data=private_data).html)


def is_left(planted: Planted, text: str) -> bool:
    """Whether any of what must go, or all of what must stay, is in a text; the names of a page's elements count."""
    if planted.kind == STAY:
        return planted.text in text
    # As whole words, in whatever case: names of elements are made of words in lower case.
    parts = "|".join(map(re.escape, planted.parts()))
    return re.search(rf"(?<![A-Za-z])({parts})(?![A-Za-z])", text, re.IGNORECASE) is not None


def _redact_sessions(cases: Sequence[Case]) -> list[str]:
    """The last page of each session of two pages, as the importer of raw logs leaves it."""
    with tempfile.TemporaryDirectory() as temporary:
        visits, store = Path(temporary, "visits"), Path(temporary, "store")
        visits.mkdir()
        rows = []
        for number, case in enumerate(cases):
            for page, text in (("first", case.first), ("last", case.text)):
                (visits / f"{page}{number}.html").write_text(f'<meta charset="utf-8">{text}', "utf-8")
            click = {"session_id": str(number), "page": f"first{number}.html", "type": "click", "selector": "main a"}
            rows += [click, {**click, "page": f"last{number}.html", "type": "terminate"}]
        (visits / "actions.jsonl").write_text("\n".join(map(json.dumps, rows)))
        run_import(RawImporter(visits, RawOptions()), store)
        sessions = SessionStore.open(store)
        return [html.unescape(sessions.session(str(number)).steps[-1].page) for number in range(len(cases))]
