"""A training run and a leaderboard of the same agents write the same log: what reads one reads the other."""

import io
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import msgspec
import pytest

from agents.llm_grpo.train import main as train
from agents.registry import format_spec
from benchmarks.leaderboard.__main__ import main as leaderboard
from benchmarks.leaderboard.ranking import WHOLE_FOLDER as FOLDER
from benchmarks.leaderboard.verify import verify
from benchmarks.report.__main__ import main as report
from replay_sessions.store import SessionStore
from shop_env.evaluation.results_file import read_log
from tests.json_files import edited_json, set_at
from tests.smoke.test_train_command import SFT, SHOP_R1, small_run
from tests.smoke.test_train_command import store as store

pytestmark = pytest.mark.long

KINDS = ("training run", "leaderboard")


@pytest.fixture(scope="module")
def run(store, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("logs") / "run"
    with redirect_stdout(io.StringIO()):
        assert train(small_run(store, out)) == 0
    return out


@pytest.fixture(scope="module")
def board(run, store, tmp_path_factory) -> Path:
    """The agents of the run once more, by their checkpoints."""
    out = tmp_path_factory.mktemp("logs") / "board"
    agents = []
    for entry in read_log(run).entries:
        arguments = "&".join(f"{name}={value}" for name, value in entry.spec.arguments.items())
        agents.append(f"{entry.label.replace(',', '')}={entry.spec.within(run).target}?{arguments}")
    config = read_log(run).config
    assert config.likelihood
    call = f"--likelihood --store {store} --seed {config.seed} --sessions {config.sessions} --out {out}"
    shown = f"--context.goal {config.context.goal} --context.persona {config.context.persona}"
    assert leaderboard(["--agents", *agents, *call.split(), *shown.split()]) == 0
    return out


@pytest.fixture
def folders(run, board) -> dict[str, Path]:
    return dict(zip(KINDS, (run, board), strict=True))


def test_the_same_agents_have_the_same_rows(run, board):
    """A run asks for probabilities only where a row is by the most probable action, a leaderboard everywhere.

    When an agent stops is judged by its probabilities where it gave some, else by its replies.
    """
    rows, others = ([entry.row for entry in read_log(folder).entries] for folder in (run, board))
    for row, other in zip(rows, others, strict=True):
        by_action = row.label.endswith("most probable action")
        likelihood = {"nll", "calibration_error", "top1_calibration_error", "brier"} & row.figures.keys()
        assert len(likelihood) == (4 if by_action else 0), row.label
        compared = [name for name in row.figures if by_action or not name.startswith("stop_")]
        of_run, of_board = ({name: figures[name] for name in compared} for figures in (row.figures, other.figures))
        assert msgspec.structs.replace(row, figures=of_run) == msgspec.structs.replace(
            other, label=row.label, figures=of_board
        )
    assert "| NLL | top-1 | top-3 | ECE | top-1 ECE | Brier |" in (run / "results.md").read_text()
    assert read_log(run).ceilings == read_log(board).ceilings != []


@pytest.mark.parametrize("kind", KINDS)
def test_verify_passes_also_after_a_move(kind, folders, store, tmp_path):
    moved = shutil.copytree(folders[kind], tmp_path / "moved")
    trust = [format_spec(entry.spec.within(moved)) for entry in read_log(moved).entries]
    assert not any(verify(moved, SessionStore.open(store), rerun=3, trust=trust).values())
    assert leaderboard(f"verify {folders[kind]} --store {store}".split()) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_compare_and_report_pass(kind, folders, tmp_path):
    folder = folders[kind]
    first, second = read_log(folder).entries[3].label, read_log(folder).entries[0].label
    assert leaderboard(["compare", str(folder), first, second]) == 0
    assert report(f"{folder} --out {tmp_path}/report.html".split()) == 0


def test_a_run_is_compared_with_a_leaderboard(run, board, capsys):
    assert leaderboard(["compare", str(run), f"{SFT}, greedy", "majority", "--second-folder", str(board)]) == 0
    assert f"{SFT}, greedy minus majority" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("entries.3.spec.arguments.temperature", 0.1, "entries: they are not the agents of the config"),
        ("training.comparisons.0.difference", 0.5, "training.comparisons[0].difference: recorded"),
        ("training.over_best_agent.0.difference", 0.5, "training.over_best_agent[0].difference: recorded"),
        ("config.reward", "binary", "config.reward: recorded 'binary', computed 'shop_r1'"),
        ("entries.4", None, "entries: they are not the agents of the config"),
    ],
)
def test_an_edited_log_of_a_training_run_is_found(path, value, message, run, store, tmp_path):
    copied = shutil.copytree(run, tmp_path / "copied")
    with edited_json(copied / "results.json") as results:
        set_at(results, path, value)
    assert message in "\n".join(verify(copied, SessionStore.open(store))[FOLDER])


def test_a_rerun_finds_a_checkpoint_that_was_exchanged(run, store, tmp_path):
    copied = shutil.copytree(run, tmp_path / "copied")
    shutil.rmtree(copied / "sft")
    shutil.copytree(copied / "shop_r1", copied / "sft")
    trust = [format_spec(entry.spec.within(copied)) for entry in read_log(copied).entries]
    found = verify(copied, SessionStore.open(store), rerun=3, trust=trust)
    assert any("not run again: the agent's source" in line for line in found[f"{SFT}, greedy"])
    assert not any(found[f"{SHOP_R1}, greedy"])
