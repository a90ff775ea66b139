"""OPeRA's user table -> personas: the survey's answers, then the interview, as text; short answers also as traits.

`survey` is JSON in sections (Demographic Information, Self Description, Shopping Preference, Personality), whose
answers are text, numbers, lists or further sections. Interviews are optional. A user may stand in both splits' tables.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from replay_sessions.schema import Persona

USER_COLUMNS = ["user_id", "survey", "interview_transcript", "interview_transcript_processed"]
_NOT_WORD = re.compile(r"[^\w]+")
_LONGEST_TRAIT = 80  # characters; longer answers are in the shopper's own words and group nobody
_FREE_TEXT_SECTIONS = ("self_description",)


def personas(users: Iterable[dict[str, str | None]], *, interviews: bool = True) -> dict[str, Persona]:
    """A persona for each user who answered anything.

    Args:
        users: Rows with USER_COLUMNS.
        interviews: Whether the interview is part of the persona.
    """
    merged: dict[str, dict[str, str]] = {}
    for user in users:
        answers = {key: value for key, value in user.items() if value and value.strip()}
        if user_id := user["user_id"]:
            merged[user_id] = {**answers, **merged.get(user_id, {})}
    texts = {user_id: _persona(answers, interviews=interviews) for user_id, answers in merged.items()}
    return {user_id: persona for user_id, persona in texts.items() if persona is not None}


def _persona(answers: dict[str, str], *, interviews: bool) -> Persona | None:
    survey, traits = _survey(answers.get("survey", ""))
    parts = [survey]
    if interviews and (
        transcript := answers.get("interview_transcript_processed") or answers.get("interview_transcript")
    ):
        parts.append(f"Interview\n{transcript.strip()}")
    text = "\n\n".join(part for part in parts if part)
    return Persona(text=text, traits=traits) if text else None


def _survey(content: str) -> tuple[str, dict[str, str]]:
    """The survey as text and traits; as it stands, without traits, where it is no JSON object of a sane depth."""
    try:
        decoded = msgspec.json.decode(content)
        if isinstance(decoded, dict):
            return "\n\n".join(_sections(decoded)), _traits(decoded)
    except (ValueError, RecursionError):
        pass
    return content.strip(), {}


def _sections(survey: dict[str, Any]) -> Iterator[str]:
    """
    >>> print(*_sections({"Personality": {"MBTI": "INTJ", "Big Five Scores": {"Openness": 4}, "Note": None}}))
    Personality
    - MBTI: INTJ
    - Big Five Scores, Openness: 4
    """
    for title, content in survey.items():
        lines = [f"- {', '.join(path)}: {answer}" if path else answer for path, answer in _answers(content)]
        if lines:
            yield "\n".join([title, *lines])


def _traits(survey: dict[str, Any]) -> dict[str, str]:
    """
    >>> _traits({"Demographic Information": {"Age": 31}, "Personality": {"Big Five Scores": {"Openness": 4}}})
    {'age': '31', 'big_five_scores_openness': '4'}
    """
    traits: dict[str, str] = {}
    for title, content in survey.items():
        if _word(title) in _FREE_TEXT_SECTIONS:
            continue
        for path, answer in _answers(content):
            name = "_".join(map(_word, path)) or _word(title)
            if name in traits:
                name = f"{_word(title)}_{name}"
            if len(answer) <= _LONGEST_TRAIT:
                traits.setdefault(name, answer)
    return traits


def _answers(content: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every answer below a section with the keys that lead to it; unanswered ones are left out."""
    if isinstance(content, dict):
        for key, below in content.items():
            yield from _answers(below, (*path, key))
        return
    values = content if isinstance(content, list) else [content]
    answer = ", ".join(_plain(value) for value in values if value is not None)
    if answer.strip():
        yield path, answer.strip()


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | int | float):
        return str(value)
    return msgspec.json.encode(value).decode()


def _word(text: str) -> str:
    return _NOT_WORD.sub("_", text).strip("_").lower()
