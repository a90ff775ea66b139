"""What OPeRA-test's labels alone say: a table of counts that sees no page, and published replies, by our metrics.

The labels (part 1: 7 of the 15 users) hold no pages, so nothing can be prompted or trained on them.
"""

import csv
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pytest

from replay_sessions.schema import Action, Click, Session, Step, Terminate, TypeAndSubmit
from shop_env.metrics import step_metrics
from shop_env.metrics.step_record import StepRecord, record_step
from shop_env.replies import format_reply
from shop_env.reward import reward_preset


class Label(NamedTuple):
    """A logged action, and the published reply of a prompted model; None: its API failed."""

    session: str
    logged: Action
    replied: Action | None

    @property
    def user(self) -> str:
        return self.session.partition("_")[0]


def _action(kind: str, name: str, text: str) -> Action:
    if kind == "terminate":
        return Terminate()
    return Click(name=name) if kind == "click" else TypeAndSubmit(name=name, text=text.replace("␠", " "))


@pytest.fixture(scope="module")
def sessions(shared_data: Path) -> list[list[Label]]:
    with (shared_data / "opera" / "test_actions_part1.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    labels = [
        Label(
            row["session"],
            _action(row["gt_type"], row["gt_name"], row["gt_text"]),
            _action(row["pred_type"], row["pred_name"], row["pred_text"]) if row["pred_type"] else None,
        )
        for row in sorted(rows, key=lambda row: (row["session"], int(row["step"])))
    ]
    return [list(steps) for _, steps in groupby(labels, key=lambda label: label.session)]


def records(sessions: Sequence[Sequence[Label]], replies: dict[tuple[str, int], Action | None]) -> Iterator[StepRecord]:
    """The records of these replies to all steps but the first of each session, which is given."""
    for labels in sessions:
        session = Session(
            session_id=labels[0].session,
            user_id=labels[0].user,
            steps=tuple(Step(page="<html><body></body></html>", action=label.logged) for label in labels),
            source="opera",
        )
        for index in range(1, len(labels)):
            action = replies[session.session_id, index]
            reply = None if action is None else format_reply("", action)
            error = "the API failed" if action is None else None
            yield record_step(session, index, reply, reward_preset("customer_r1"), error=error)


def scored(sessions: Sequence[Sequence[Label]], replies: dict[tuple[str, int], Action | None]) -> dict[str, float]:
    return step_metrics(list(records(sessions, replies)), "opera")


def transitions(sessions: Sequence[Sequence[Label]]) -> Iterator[tuple[tuple[str, int], Label, Label]]:
    for labels in sessions:
        for index in range(1, len(labels)):
            yield (labels[0].session, index), labels[index - 1], labels[index]


def count_next_actions(sessions: Sequence[Sequence[Label]]) -> dict[tuple[str, int], Action | None]:
    """The commonest next action after the last element, or else after the last type; learned from the other users.

    A next action equal to the last one is counted as "the same again", which is also the guess where nothing was seen.
    """
    replies: dict[tuple[str, int], Action | None] = {}
    for user in {labels[0].user for labels in sessions}:
        counts: dict[tuple[str, ...], Counter[Action | None]] = defaultdict(Counter)
        for _, last, following in transitions([labels for labels in sessions if labels[0].user != user]):
            for context in contexts(last.logged):
                counts[context][None if following.logged == last.logged else following.logged] += 1
        for key, last, _ in transitions([labels for labels in sessions if labels[0].user == user]):
            seen = [counts[context] for context in contexts(last.logged) if counts[context].total() >= 2]
            likeliest = seen[0].most_common(1)[0][0] if seen else None
            replies[key] = last.logged if likeliest is None else likeliest
    return replies


def contexts(action: Action) -> tuple[tuple[str, ...], ...]:
    kind = type(action).__name__
    return (kind, getattr(action, "name", "")), (kind,)


def test_floors_that_see_no_page(sessions: list[list[Label]]) -> None:
    repeated = scored(sessions, {key: last.logged for key, last, _ in transitions(sessions)})
    counted = scored(sessions, count_next_actions(sessions))
    assert counted["steps"] == repeated["steps"] == 427
    assert repeated["exact_accuracy"] == pytest.approx(0.1405, abs=0.0001)
    assert counted["exact_accuracy"] == pytest.approx(0.1967, abs=0.01)


def test_failed_calls_of_the_published_replies_are_errors_and_no_misses(sessions: list[list[Label]]) -> None:
    replied = scored(sessions, {key: label.replied for key, _, label in transitions(sessions)})
    answered = [label for _, _, label in transitions(sessions) if label.replied is not None]
    assert replied["steps"] == len(answered)
    assert replied["errors"] == 427 - len(answered) > 0
    exact = sum(label.replied == label.logged for label in answered)
    assert replied["exact_accuracy"] == pytest.approx(exact / len(answered))
