"""The free-running report: figures by hand, what it writes, and that it stays apart from the leaderboard."""

import json
from pathlib import Path

import pytest

from benchmarks.leaderboard.__main__ import main as leaderboard
from benchmarks.live.__main__ import main
from benchmarks.live.figures import compare_visits, shoppers_row
from replay_sessions.demo_shop import generate_sessions
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Session, reply_action
from shop_env.evaluation.free_run import LiveStep, LiveVisit

pytestmark = pytest.mark.long


def copied(session: Session) -> LiveVisit:
    """A visit in which the agent did what the shopper did."""
    steps = tuple(LiveStep(reply="", action=reply_action(step.action)) for step in session.steps)
    left = steps[-1].action == {"type": "terminate"}
    ending = "terminate" if left else "purchase"
    return LiveVisit(session_id=session.session_id, user_id=session.user_id, steps=steps, ending=ending)  # type: ignore[arg-type]


SESSIONS = list(generate_sessions(40, seed=1))


def test_a_copy_of_the_shoppers_does_not_differ_from_them() -> None:
    row = compare_visits(SESSIONS, [copied(session) for session in SESSIONS], label="copy")
    shoppers = shoppers_row(SESSIONS, "shoppers")
    for name in ("action_mix_divergence", "transition_divergence", "length_distance", "purchase_rate_difference"):
        figure = row.figures[name]
        assert (figure.value, figure.low, figure.high) == (0, None, None)  # for every user alike
    for name in ("length", "purchase_rate"):
        assert row.figures[name].value == shoppers.figures[name].value
    assert row.action_mix == shoppers.action_mix
    assert row.groups and all(group.action_mix_divergence == 0 for group in row.groups)
    assert sum(group.visits for group in row.groups) == row.visits == 40


def test_planted_visits_have_the_figures_counted_by_hand() -> None:
    """One reply that cannot be read, one for nothing, a full cart at the limit: nothing is bought."""
    steps = (
        LiveStep(reply="?", problem="not_json"),
        LiveStep(reply="", problem="no_such_element"),
        LiveStep(reply="", action={"type": "type_and_submit", "name": "search_input", "text": "tent"}),
        LiveStep(reply="", action={"type": "click", "name": "product.add_to_cart"}),
    )
    visits = [LiveVisit(session_id=s.session_id, user_id=s.user_id, steps=steps, ending="limit") for s in SESSIONS]
    row = compare_visits(SESSIONS, visits, label="planted")
    value = {name: figure.value for name, figure in row.figures.items()}
    assert value["length"] == 4
    assert value["purchase_rate"] == 0
    assert value["limit_rate"] == 1
    assert value["unreadable_rate"] == value["impossible_rate"] == 0.25
    assert value["purchase_rate_difference"] == -shoppers_row(SESSIONS, "").figures["purchase_rate"].value
    assert row.action_mix == {"invalid": 0.5, "type_and_submit": 0.25, "purchase": 0.25}


def test_failed_visits_are_left_out_on_both_sides() -> None:
    visits = [copied(session) for session in SESSIONS]
    visits[0] = LiveVisit(session_id="x", user_id="y", steps=(), ending="error", error="AgentFailed: down")
    row = compare_visits(SESSIONS, visits, label="copy")
    assert (row.visits, row.errors, row.first_error) == (39, 1, "AgentFailed: down")
    assert row.figures["length_distance"].value == 0


def test_visits_of_other_sessions_are_refused() -> None:
    with pytest.raises(BadConfig, match="1 visits of 'a' are to be compared with 40 sessions"):
        compare_visits(SESSIONS, [copied(SESSIONS[0])], label="a")


def test_the_command_writes_a_report_that_is_told_from_a_leaderboard(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "live"
    asked = ["--agents", "copy_match,a|b=random", "--sessions", "24", "--out", str(out)]
    assert main(asked) == 0
    assert "free running" in capsys.readouterr().out
    found = json.loads((out / "live.json").read_text(encoding="utf-8"))
    assert found["mode"] == "free_running"
    assert [row["label"] for row in found["rows"]] == [
        "the shoppers",
        "the shoppers, drawn anew",
        "copy_match",
        "a|b",
    ]
    assert found["provenance"]["seed"] == 0
    assert len((out / "agents" / "copy_match" / "visits.jsonl").read_text().splitlines()) == 24
    text = (out / "live.md").read_text(encoding="utf-8")
    assert "Not comparable with metrics on logged pages" in text and "a\\|b" in text
    assert leaderboard(["verify", str(out)]) == 2  # it is none


def test_the_shoppers_drawn_anew_are_nearer_than_another_policy(tmp_path: Path) -> None:
    assert main(["--agents", "copy_match", "--sessions", "200", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "live.json").read_text(encoding="utf-8"))["rows"]
    _, anew, other = (row["figures"] for row in rows)
    for name in ("action_mix_divergence", "transition_divergence", "length_distance"):
        assert anew[name]["high"] < other[name]["low"]
    for name in ("action_mix", "transitions", "length"):
        _, of_anew, of_other = (row["scores"].get(name) for row in rows)
        assert of_anew == pytest.approx(1, abs=0.15) and of_other < of_anew
    assert "other shoppers are 1" in (tmp_path / "live.md").read_text(encoding="utf-8")


def test_a_bad_call_is_exit_code_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--agents", "radnom", "--out", str(tmp_path)]) == 2
    assert "Did you mean 'random'?" in capsys.readouterr().err


def test_each_interval_holds_its_value() -> None:
    """FINDINGS A13: a divergence of 0.048 had the interval (0.000 to 0.040)."""
    visits = [copied(session) for session in SESSIONS[1:] + SESSIONS[:1]]
    visits = [
        LiveVisit(session_id=s.session_id, user_id=s.user_id, steps=v.steps, ending=v.ending)
        for s, v in zip(SESSIONS, visits, strict=True)
    ]
    figures = compare_visits(SESSIONS, visits, label="others").figures
    intervals = [(f.low, f.value, f.high) for f in figures.values() if f.low is not None and f.high is not None]
    assert len(intervals) > 3
    assert all(low <= value <= high for low, value, high in intervals)


def test_an_agent_that_fails_in_all_visits_is_no_success(tmp_path: Path) -> None:
    """FINDINGS A16."""
    file = tmp_path / "fails.py"
    file.write_text(
        "class F:\n    def reset(self, *, seed): pass\n    def act(self, observation): raise SystemExit(0)\n"
    )
    assert main(["--agents", f"F={file}:F", "--sessions", "4", "--out", str(tmp_path / "out")]) == 1
    assert "SystemExit: 0" in (tmp_path / "out" / "live.json").read_text(encoding="utf-8")
