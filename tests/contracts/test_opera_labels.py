"""Metrics of OPeRA-test's labels: a table of counts that sees no page, and published replies.

The labels (part 1: 7 of the 15 users) hold no pages, so nothing can be prompted or trained on them.
"""

import csv
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from replay_sessions.schema import Action, Click, Session, Step, Terminate, TypeAndSubmit
from shop_env.metrics import METRIC_PRESETS, step_metrics
from shop_env.metrics.all_metrics import find_metric
from shop_env.metrics.clustered_errors import t_interval
from shop_env.metrics.intervals import metric_error, user_sums
from shop_env.metrics.step_record import StepRecord, record_step
from shop_env.metrics.step_table import StepTable
from shop_env.replies import Reply, format_reply
from shop_env.reward import RewardConfig, reward_preset, score_reply
from shop_env.reward.score import click_terms


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
def sessions(shared_data) -> list[list[Label]]:
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


def test_accuracies_and_intervals_in_the_docs(sessions):
    """Two users have 84% of the steps, so that an interval over users excludes nothing."""
    found = {}
    for name, replies in {
        "again": {key: last.logged for key, last, _ in transitions(sessions)},
        "counts": count_next_actions(sessions),
        "replies": {key: label.replied for key, _, label in transitions(sessions)},
    }.items():
        table = StepTable(list(records(sessions, replies)), "opera")
        metric = find_metric("exact_accuracy", table.choices)
        sums = user_sums(metric, table)
        error = metric_error(metric, sums, table)
        assert error is not None
        found[name] = [round(100 * share, 1) for share in (metric.total(sums), *t_interval(metric.total(sums), error))]
    assert found == {"again": [14.1, -26.4, 54.5], "counts": [19.7, -1.0, 40.4], "replies": [20.7, -6.9, 48.4]}


def test_the_published_replies_by_each_preset(sessions):
    replied = list(records(sessions, {key: label.replied for key, _, label in transitions(sessions)}))
    figures = {preset: step_metrics(replied, preset) for preset in METRIC_PRESETS}
    percent = {
        preset: [round(100 * own[name], 1) for name in ("exact_accuracy", "type_accuracy", "type_f1")]
        for preset, own in figures.items()
    }
    assert percent == {
        "shop_r1": [20.7, 90.3, 88.3],
        "customer_r1": [20.7, 90.3, 50.7],
        "opera": [20.7, 90.3, 50.7],
        "lu_2025": [16.4, 83.7, 44.8],
    }


def test_table_of_dars_and_threshold_in_the_docs(sessions):
    """Of all constant replies that occur as a label, the one that earns most; pairs of names clicked in one session."""
    errata = (Path(__file__).parents[2] / "docs" / "errata.md").read_text(encoding="utf-8")
    labels = Counter(following.logged for _, _, following in transitions(sessions))
    clicked = [[label.logged for label in steps if isinstance(label.logged, Click)] for steps in sessions]
    pairs = [(logged, other) for clicks in clicked for logged in clicks for other in set(clicks) - {logged}]
    thresholds = {"none": RewardConfig(threshold=0.0), "0.5": RewardConfig(threshold=0.5)}
    thresholds["0.75, reached"] = RewardConfig(threshold_rule="reaches")
    thresholds |= {"0.75": RewardConfig(), "0.9": RewardConfig(threshold=0.9)}
    for threshold, reward in thresholds.items():
        cells = []
        paid = sum(click_terms(other, logged, reward)[1] > 0 for logged, other in pairs)
        for dars in (1.0, 10.0, 100.0, 1000.0):
            config = msgspec.structs.replace(reward, dars=dars)
            earned = {
                constant: sum(
                    n * score_reply(Reply("", constant), logged, config).total for logged, n in labels.items()
                )
                for constant in labels
            }
            best = max(earned, key=lambda constant: earned[constant])
            assert isinstance(best, Click)
            cells.append((f"`{best.name}` | {labels[best] / labels.total():.1%}", earned[best] / labels.total()))
        (constant,) = {reply for reply, _ in cells}  # the same at every DARS
        points = " | ".join(f"{points:.3g}" for _, points in cells)
        line = f"| {threshold} | {paid / len(pairs):.1%} | {constant} | {points} |"
        assert line.replace("%", "") in errata
