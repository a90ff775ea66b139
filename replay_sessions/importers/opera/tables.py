"""Reads OPeRA's tables: the files of a version, the rows that make up a session, and the personas of the users.

    OPeRA_filtered/action/train-00000-of-00002.parquet    one row per action, pages included; also test-*
    OPeRA_filtered/session/train/train.parquet            session_id, user_id, action_count
    OPeRA_filtered/user/train/train.parquet               user_id, survey, interview

This is the layout on the data set card; OPeRA_full has the same. Only the small columns are read here, and pages part
by part.

A persona is the survey's answers and the interview, as text; short answers are traits, too. `survey` is JSON in
sections (Demographic Information, Self Description, Shopping Preference, Personality). Their answers are text, numbers,
lists or further sections. Interviews are optional. A user may be in the tables of both splits.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from replay_sessions.foundation.durable_files import check_name
from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.foundation.records import Record
from replay_sessions.importers.importer import Read
from replay_sessions.importers.sources.record_files import ParquetSource
from replay_sessions.schema import Persona

OperaVersion = Literal["filtered", "full"]
OperaSplit = Literal["train", "test"]
_SPLITS: tuple[OperaSplit, ...] = ("train", "test")
_SHARD = re.compile(r"-(\d+)-of-(\d+)\.parquet$")
# {user_id}_{start}_{end}
_SESSION_ID = re.compile(r"(?P<user>.+)_\d{4}-\d\d-\d\d[T ][^_]*_\d{4}-\d\d-\d\d[T ][^_]*")

_MISSING = ("nan", "NaN", "NAN", "null", "NULL", "None", "<NA>", "NaT")  # as texts, by way of CSV and pandas

RowGroup = tuple[Path, int]  # rows of a file that are read together: the file, and the number of the row group
OperaTables = dict[str, dict[OperaSplit, list[Path]]]  # files of "action", "session" and "user" by split


class OperaSession(Record):
    """A session whose actions are not read yet."""

    session_id: str
    user_id: str
    split: OperaSplit
    rows: int
    row_groups: list[RowGroup]
    persona: Persona | None


def find_tables(folder: Path, version: OperaVersion) -> OperaTables:
    """Returns the files of a version below the data set's folder (or the version's own folder).

    Raises:
        ImportFailed: The version has no actions, or some of their files are missing.
    """
    root = folder / f"OPeRA_{version}"
    if not root.is_dir() and (folder / "action").is_dir():
        root = folder
    tables = {table: _files_by_split(root / table) for table in ("action", "session", "user")}
    if not tables["action"]:
        raise ImportFailed(
            f"'{folder}' holds no OPeRA actions: 'OPeRA_{version}/action/train-*.parquet' was expected in it; "
            "`import opera --help-all` says how to fetch them"
        )
    return tables


def read_table(files: dict[OperaSplit, list[Path]], columns: list[str]) -> Iterator[dict[str, str | None]]:
    """Yields the rows of a small table, of both splits; columns that a file lacks are None."""
    for path in (path for paths in files.values() for path in paths):
        yield from ParquetSource(path).texts(columns)


def missing_columns(row: dict[str, str | None], columns: Iterable[str]) -> dict[str, str]:
    """Returns, for each column whose text only says that the value is missing, a line about it.

    Tables of pandas that were CSV files have such texts.

    >>> missing_columns({"url": "nan", "rationale": "None of them fits."}, ["url", "rationale"])
    {'url': "'nan' under url, read as missing"}
    """
    return {
        column: f"{text!r} under {column}, read as missing"
        for column in columns
        if (text := row[column]) is not None and text.strip() in _MISSING
    }


def find_sessions(tables: OperaTables) -> tuple[list[OperaSession], Read]:
    """Returns all sessions in file order, and what belongs to none.

    That is as rejected the rows without an id and the sessions without actions, and the users' missing answers.
    """
    users_rows: list[dict[str, str | None]] = []
    others = Read()
    for row in read_table(tables["user"], _USER_COLUMNS):
        missing = missing_columns(row, _USER_COLUMNS[1:])
        users_rows.append(row | dict.fromkeys(missing))
        others.changed_values += missing.values()
    shoppers = personas(users_rows)
    users = {
        row["session_id"]: row["user_id"]
        for row in read_table(tables["session"], ["session_id", "user_id"])
        if row["session_id"]
    }
    entries: list[OperaSession] = []
    for split, paths in tables["action"].items():
        groups: defaultdict[str, Counter[RowGroup]] = defaultdict(Counter)
        for session_id, group, location in _read_session_ids(paths):
            if session_id:
                groups[session_id][group] += 1
            else:
                others.reject(location, "the action names no session")
        for session_id, rows in groups.items():
            match = _SESSION_ID.fullmatch(session_id)
            user_id = users.get(session_id) or (match["user"] if match else session_id)
            entries.append(
                OperaSession(
                    session_id=session_id,
                    user_id=user_id,
                    split=split,
                    rows=rows.total(),
                    row_groups=list(rows),
                    persona=shoppers.get(user_id),
                )
            )
    logged = {entry.session_id for entry in entries}
    for name in users:
        if name and name not in logged:
            others.reject(name, "the session table lists it and no action belongs to it")
    return entries, others


def _read_session_ids(paths: list[Path]) -> Iterator[tuple[str, RowGroup, str]]:
    """Yields for each action its session's id, its row group, and its position for messages."""
    for path in paths:
        source = ParquetSource(path)
        for column in ("session_id", "action_type"):
            if column not in source.columns:
                raise ImportFailed(f"'{path}' has no column {column}: is it a file of OPeRA's action table?")
        number = 0
        for group in range(source.row_groups):
            for row in source.texts(["session_id"], [group]):
                number += 1
                yield row["session_id"] or "", (path, group), f"{path.name}, row {number}"


def _files_by_split(folder: Path) -> dict[OperaSplit, list[Path]]:
    files: dict[OperaSplit, list[Path]] = {}
    for split in _SPLITS:
        paths = sorted([*folder.glob(f"{split}-*.parquet"), *folder.glob(f"{split}/*.parquet")])
        for path in paths:
            check_name(path)
        _check_complete(paths)
        if paths:
            files[split] = paths
    return files


def _check_complete(paths: list[Path]) -> None:
    """Raises ImportFailed if a numbered file of the hub is missing."""
    numbered = [match for path in paths if (match := _SHARD.search(path.name))]
    total = int(numbered[0][2]) if numbered else 0
    missing = set(range(total)) - {int(match[1]) for match in numbered}
    if missing:
        name = _SHARD.sub(f"-{min(missing):05}-of-{total:05}.parquet", paths[0].name)
        raise ImportFailed(
            f"'{paths[0].parent}' holds {len(numbered)} of {total} files, '{name}' is missing: fetch the others too"
        )


_USER_COLUMNS = ["user_id", "survey", "interview_transcript", "interview_transcript_processed"]
_NOT_WORD = re.compile(r"[^\w]+")
_LONGEST_TRAIT = 80  # characters; longer answers are in the shopper's own words, so nobody can be grouped by them
_FREE_TEXT_SECTIONS = ("self_description",)


def personas(users: Iterable[dict[str, str | None]]) -> dict[str, Persona]:
    """Returns a persona for each user who answered a question.

    Args:
        users: Rows with _USER_COLUMNS.
    """
    merged: dict[str, dict[str, str]] = {}
    for user in users:
        answers = {key: value for key, value in user.items() if value and value.strip()}
        if user_id := user["user_id"]:
            merged[user_id] = {**answers, **merged.get(user_id, {})}
    texts = {user_id: _persona(answers) for user_id, answers in merged.items()}
    return {user_id: persona for user_id, persona in texts.items() if persona is not None}


def _persona(answers: dict[str, str]) -> Persona | None:
    survey, traits = _survey(answers.get("survey", ""))
    parts = [survey]
    if transcript := answers.get("interview_transcript_processed") or answers.get("interview_transcript"):
        parts.append(f"Interview\n{transcript.strip()}")
    text = "\n\n".join(part for part in parts if part)
    return Persona(text=text, traits=traits) if text else None


def _survey(content: str) -> tuple[str, dict[str, str]]:
    """Returns a survey as text and traits; content that is no JSON object of sane depth has no traits."""
    try:
        decoded = msgspec.json.decode(content)
        if isinstance(decoded, dict):
            return "\n\n".join(_sections(decoded)), _traits(decoded)
    except (ValueError, RecursionError):
        pass
    return content.strip(), {}


def _sections(survey: dict[str, Any]) -> Iterator[str]:
    """Yields each section of a survey as text.

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
    """Returns the short answers of a survey by name.

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
    """Yields all answers below a section with the keys that lead to them, without unanswered questions."""
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
