"""The command beside the leaderboard: what it writes follows from the board's records, and what does not is refused."""

import dataclasses
import json
from pathlib import Path

import msgspec
import pytest

from benchmarks.leaderboard.ranking import LeaderboardConfig, run_leaderboard
from benchmarks.people.__main__ import main
from benchmarks.people.measuring import measure
from benchmarks.people.tables import people_table
from benchmarks.report.evidence import read_evidence
from replay_sessions.demo_shop import SOURCE, generate_sessions
from replay_sessions.store import SessionStore, StoreWriter
from shop_env.evaluation.log import AgentFiles
from shop_env.metrics.people import people_figures
from shop_env.observation import ContextConfig

pytestmark = pytest.mark.long

AGENTS = ("oracle", "context_majority", "majority", "certain")
CERTAIN = """\
from replay_sessions.schema import Terminate
from shop_env.replies import format_reply

class Certain:
    def reset(self, *, seed=None):
        pass
    def act(self, observation):
        return format_reply("", {"type": "terminate"})
    def probabilities(self, observations):
        return [{Terminate(): 1.0} for _ in observations]
"""


@pytest.fixture(scope="module")
def board(store_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("boards")
    (folder / "certain.py").write_text(CERTAIN, encoding="utf-8")
    agents = (*AGENTS[:3], f"certain={folder}/certain.py:Certain")
    out = folder / "board"
    run_leaderboard(LeaderboardConfig(agents=agents, store=str(store_path), out=str(out), split="all", likelihood=True))
    return out


@pytest.fixture(scope="module")
def found(board: Path) -> dict:  # type: ignore[type-arg]
    assert main([str(board), "--out", str(board / "people")]) == 0
    record: dict = json.loads((board / "people" / "people.json").read_text())  # type: ignore[type-arg]
    return record | {"agents": {row["label"]: row for row in record["agents"]}}


def test_each_agents_figures_are_those_of_its_records(board: Path, found: dict) -> None:  # type: ignore[type-arg]
    assert set(found["agents"]) == set(AGENTS)
    for label, row in found["agents"].items():
        expected = people_figures(AgentFiles.of(board, label).read())
        assert {name: getattr(expected, name) for name in row["people"]} == row["people"]
        assert row["coverage"] == 1.0
    assert found["log"]["sessions"] == 60
    assert found["log"]["users"] == 15


def test_the_shoppers_own_policy_is_nearer_to_people_than_counting_and_than_one_answer_for_all(found: dict) -> None:  # type: ignore[type-arg]
    rows = found["agents"]
    for base in ("uniform", "train"):
        scores = [rows[label]["distances"][base]["transitions"]["score"] for label in AGENTS]
        assert scores[0] > max(scores[1:3])
    oracle, counting = (rows[label]["skill"] for label in AGENTS[:2])
    assert oracle["bits_saved"] > counting["bits_saved"] > -1
    assert oracle["calibration"]["brier"] < counting["calibration"]["brier"]
    assert oracle["hits"]["hit@1"] > counting["hits"]["hit@1"]
    assert rows["majority"]["skill"] is None
    assert rows["majority"]["people"]["entropy_ratio"] == 0
    assert rows["majority"]["two_sample_auc"] > rows["oracle"]["two_sample_auc"]


def test_naming_one_action_with_certainty_does_not_pay(found: dict) -> None:  # type: ignore[type-arg]
    """It holds all else impossible, and that is judged too."""
    skill = found["agents"]["certain"]["skill"]
    assert skill["calibration"]["brier"] > 1.6  # 2 at each step but those at which the shopper leaves
    assert skill["bits_saved"] < -10
    assert set(skill["hits"].values()) == {0.0}


def test_the_table_shows_people_beside_agents(board: Path, found: dict) -> None:  # type: ignore[type-arg]
    text = (board / "people" / "people.md").read_text()
    headings = [cell.strip() for cell in text.splitlines()[0].strip("|").split("|")]
    assert headings[:3] == ["metric", "good is", "the people"]
    assert set(headings[3:]) == set(AGENTS)
    line = next(line for line in text.splitlines() if "sessions with a filter" in line)
    assert f"| {found['log']['facts']['filter_use']:.2f} |" in line


def test_what_a_persona_is_worth_is_told_beside_runs_with_other_peoples(
    board: Path, store_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, context: ContextConfig, agents: tuple[str, ...] = ("oracle", "context_majority")) -> str:
        run_leaderboard(
            LeaderboardConfig(
                agents=agents,
                store=str(store_path),
                out=str(tmp_path / name),
                split="all",
                likelihood=True,
                context=context,
            )
        )
        return str(tmp_path / name)

    one, two = (run(f"shuffled{seed}", ContextConfig(persona="shuffled", persona_seed=seed)) for seed in (0, 1))
    assert main([str(board), "--shuffled", one, two, "--out", str(tmp_path / "out")]) == 0
    rows = {row["label"]: row for row in json.loads((tmp_path / "out" / "people.json").read_text())["agents"]}
    assert rows["majority"]["persona"] is None  # nobody asked it with others' personas
    picks = rows["oracle"]["persona"]["picks"]
    assert picks["chance"] == pytest.approx(1 / 3)
    assert picks["rate"] > 1 / 3  # the demo shop's policy follows from the persona
    assert rows["oracle"]["persona"]["worth"]["nll"]["difference"] < 0
    assert "own persona picked by likelihood (chance 0.33)" in (tmp_path / "out" / "people.md").read_text()
    capsys.readouterr()
    assert main([str(board), "--shuffled", one, one]) == 2
    assert "same persona seed" in capsys.readouterr().err
    assert main([one, "--shuffled", two]) == 2
    assert "matched and shuffled were expected" in capsys.readouterr().err
    less = run("less", ContextConfig(persona="shuffled", scope="latest_step"), ("majority",))
    assert main([str(board), "--shuffled", less]) == 2
    assert "differ in more than the persona: context" in capsys.readouterr().err


def test_another_store_and_a_folder_that_is_no_run_are_refused(
    board: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with StoreWriter(tmp_path / "other", source=SOURCE) as writer:
        for session in generate_sessions(4, seed=5):
            writer.write(session)
    capsys.readouterr()
    assert main([str(board), "--store", str(tmp_path / "other")]) == 2
    assert "has " in capsys.readouterr().err
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_an_agent_that_kept_silent_has_its_coverage_beside_all_its_metrics(board: Path, store_path: Path) -> None:
    """FINDINGS A10, A17."""
    evidence = read_evidence(board)
    silent = [
        msgspec.structs.replace(record, error="silent") if record.step_index > 1 else record
        for record in evidence.records["majority"]
    ]
    records = {**evidence.records, "majority": silent}
    log, rows = measure(dataclasses.replace(evidence, records=records), [], SessionStore.open(store_path))
    table = people_table(log, rows)
    replied = sum(record.error is None for record in records["majority"]) / len(records["majority"])
    headings = [column.heading for column in table.columns]
    assert f"majority (of {replied:.0%} of the steps)" in headings and "oracle" in headings
    assert all(row.people.user_icc_ratio is None for row in rows)  # and it is said why
    assert any("No ICC ratio and no agreement of users" in note for note in table.notes)
