"""Packs the data of the session viewer: pages, the shopper's actions, and every agent's answer to each step.

    store, judged records ─► chapters (some sessions, and the pages that are new in them) ─► packed blocks
    each page ─► page_document, which removes all that could act
                          └► the index (for lists and filters) ─► one packed block

A page that many steps show is stored once. If the file would become too large, the last chapters are left out, and the
page says how many sessions these are.

A block is JSON ─► deflate ─► base64. Base64 has no `<`, so no page, reply or persona can end the script element that
holds it. The browser inflates a block when it first needs it (templates/blocks.js), so a page of a thousand sessions
opens as fast as a page of ten.
"""

import base64
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

from benchmarks.report.evidence import OUTCOMES, Evidence, Judged, JudgedStep
from replay_sessions.demo_shop.web.dressing import write_named_page
from replay_sessions.elements import find_elements
from replay_sessions.foundation.progress import track
from replay_sessions.schema import Action, Click, Session, reply_action
from replay_sessions.simplify.page_view import page_document
from shop_env.evaluation.ceiling import is_demo_store
from shop_env.evaluation.scored_steps import StepKey
from shop_env.metrics import checked_distribution
from shop_env.metrics.presets import MIX_TYPES
from shop_env.metrics.step_table import ACTION_TYPES
from shop_env.reward.score import TERM_NAMES, best_breakdown

CHAPTER_CHARACTERS = 400_000  # pages and replies, before deflating, that the browser inflates at once
FOR_NAMES = 8_000  # characters of the index without its sessions
LIKELIEST = 5
# The demo shop's style on the web, without the bar above the pages and without the title.
SHOP_STYLE = (files("replay_sessions.demo_shop.web") / "shop.css").read_text(encoding="utf-8") + (
    'body { padding-top: 1rem; } [data-part="title"] { display: none; }'
)
Answers = Mapping[StepKey, Mapping[str, JudgedStep]]  # by step, then by the agent's label


class Block(NamedTuple):
    """A packed value, and the id of its HTML element."""

    name: str
    text: str


def pack(name: str, value: Any) -> Block:
    """Encodes a value as deflated JSON in base64."""
    deflated = zlib.compress(msgspec.json.encode(value), level=9)
    return Block(name, base64.b64encode(deflated).decode("ascii"))


class SessionData(NamedTuple):
    """The packed blocks, with their counts.

    Attributes:
        sessions: Number of sessions in the blocks.
        left_out: Number of sessions that were left out.
        pages: Number of pages that the sessions show.
        distinct_pages: Number of distinct pages among these.
    """

    blocks: list[Block]
    sessions: int
    left_out: int
    pages: int
    distinct_pages: int


@dataclass
class _Chapter:
    sessions: list[list[dict[str, Any]]] = field(default_factory=list)
    list_entries: list[dict[str, Any]] = field(default_factory=list)
    people: dict[str, dict[str, Any]] = field(default_factory=dict)
    pages: list[str] = field(default_factory=list)
    characters: int = 0


def page_view(page: str, *, demo_shop: bool) -> str:
    """Renders the document of a page: a page of the demo shop as on the web, every other page as plain cards."""
    if demo_shop and _acting_names(dressed := write_named_page(page)) == _acting_names(page):
        return page_document(dressed, style=SHOP_STYLE)
    return page_document(page)


def _acting_names(page: str) -> set[str]:
    return {element.name for element in find_elements(page)}


def session_data(evidence: Evidence, judged: Judged, *, max_characters: int) -> SessionData:
    """Builds the data of the viewer.

    Args:
        evidence: The evaluation.
        judged: Each agent's judged steps, by its label.
        max_characters: The maximum number of characters of all blocks.
    """
    answers: dict[StepKey, dict[str, JudgedStep]] = {}
    for label, steps in judged.items():
        for step in steps:
            answers.setdefault(step.record.key, {})[label] = step
    session_ids = list(dict.fromkeys(session_id for session_id, _ in answers))
    # The viewer reads these first: the index of all sessions, and the personas of the shoppers.
    people: dict[str, dict[str, Any]] = {}
    index: dict[str, Any] = {
        "agents": [{"label": label, "baseline": label in evidence.baselines} for label in judged],
        "outcomes": [{"code": code, "words": words} for code, words in OUTCOMES.items()],
        "terms": TERM_NAMES,
        "types": ACTION_TYPES if evidence.store.scrolls else MIX_TYPES,
        "personas_shown": evidence.personas_shown,
        "sessions": [],
        "first_pages": [],
    }
    blocks: list[Block] = []
    characters = FOR_NAMES  # an upper bound for all blocks: packed whole, the index and the people take less
    pages = distinct_pages = 0
    for number, chapter in enumerate(_chapters(evidence, list(judged), answers, session_ids)):
        entries = [{**session, "chapter": number, "place": index} for index, session in enumerate(chapter.list_entries)]
        packed = [pack(f"sessions-{number}", chapter.sessions), pack(f"pages-{number}", chapter.pages)]
        ahead = [pack("", entries), pack("", chapter.people)]
        characters += sum(len(block.text) for block in packed + ahead)
        if characters > max_characters:
            break
        blocks += packed
        index["sessions"] += entries
        index["first_pages"].append(distinct_pages)
        people |= chapter.people
        distinct_pages += len(chapter.pages)
        pages += sum(map(len, chapter.sessions))
    return SessionData(
        blocks=[pack("index", index), pack("people", people), *blocks],
        sessions=len(index["sessions"]),
        left_out=len(session_ids) - len(index["sessions"]),
        pages=pages,
        distinct_pages=distinct_pages,
    )


def _chapters(
    evidence: Evidence, labels: Sequence[str], answers: Answers, session_ids: Sequence[str]
) -> Iterator[_Chapter]:
    page_numbers: dict[str, int] = {}
    chapter, demo_shop = _Chapter(), is_demo_store(evidence.store)
    for session_id in track(session_ids, "sessions"):
        if chapter.characters > CHAPTER_CHARACTERS:
            yield chapter
            chapter = _Chapter()
        _add(chapter, evidence.store.session(session_id), evidence, labels, answers, page_numbers, demo_shop=demo_shop)
    if chapter.sessions:
        yield chapter


def _add(
    chapter: _Chapter,
    session: Session,
    evidence: Evidence,
    labels: Sequence[str],
    answers: Answers,
    page_numbers: dict[str, int],
    *,
    demo_shop: bool,
) -> None:
    steps, list_entries = [], []
    for index, step in enumerate(session.steps):
        if step.page not in page_numbers:
            page_numbers[step.page] = len(page_numbers)
            chapter.pages.append(page_view(step.page, demo_shop=demo_shop))
            chapter.characters += len(step.page)
        judged = answers.get((session.session_id, index), {})
        viewed = {
            "page": page_numbers[step.page],
            "logged": reply_action(step.action),
            "click_type": step.action.click_type if isinstance(step.action, Click) else None,
            "most": best_breakdown(step.action, evidence.config.reward_config).total,
            "rationale": step.rationale,
            "url": step.url,
            "gap": step.gap or None,
            "answers": [_answer(judged.get(label), evidence, label) for label in labels if judged],
        }
        steps.append(_without_none(viewed))
        list_entries.append(_describe_step(step.action, [judged.get(label) for label in labels if judged]))
        chapter.characters += sum(len(answer.record.reply or "") for answer in judged.values())
    chapter.sessions.append(steps)
    chapter.list_entries.append(
        _without_none({"id": session.session_id, "user": session.user_id, "goal": session.goal, "steps": list_entries})
    )
    if session.persona is not None:
        chapter.people[session.user_id] = {"text": session.persona.text, "traits": session.persona.traits}


def _describe_step(logged: Action, judged: Sequence[JudgedStep | None]) -> list[Any]:
    """Returns a step's data for lists and filters: the logged type, each agent's outcome and number of its action."""
    codes = list(OUTCOMES)
    outcomes = [codes.index("no_reply" if answer is None else answer.outcome) for answer in judged]
    actions = [tuple((answer.record.predicted or {}).items()) if answer else None for answer in judged]
    return [ACTION_TYPES.index(reply_action(logged)["type"]), outcomes, list(map(actions.index, actions))]


def _answer(step: JudgedStep | None, evidence: Evidence, label: str) -> dict[str, Any]:
    if step is None:
        return {"error": "not asked"}
    record, likeliest = step.record, None
    probabilities = evidence.probabilities.get(label, {}).get(record.key)
    if probabilities is not None and record.error is None:
        ordered = sorted(checked_distribution(probabilities).items(), key=lambda item: -item[1])
        likeliest = [[action, _rounded(probability)] for action, probability in ordered[:LIKELIEST] if probability > 0]
    return _without_none(
        {
            "reply": record.reply,
            "action": record.predicted,
            "rationale": record.predicted_rationale,
            "problem": record.problem,
            "error": record.error,
            "terms": step.terms,
            "reward": record.reward,
            "probability": _rounded(record.logged_probability),
            "rank": record.logged_rank,
            "likeliest": likeliest,
        }
    )


def _rounded(probability: float | None) -> float | None:
    return None if probability is None else float(f"{probability:.4g}")


def _without_none(table: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if value is not None}
