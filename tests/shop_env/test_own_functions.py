"""A reward and a metric of the user's own: the same points everywhere, and errors that name the file and the line."""

import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import pytest

from benchmarks.leaderboard.__main__ import main
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import load_measure
from shop_env.env import ReplayEnv
from shop_env.evaluation.results_file import read_log, read_records
from shop_env.metrics import metric_preset, step_metrics
from shop_env.replies import format_reply
from shop_env.reward import RewardConfig, reward_preset, score_reply
from shop_env.versions import SCORING_VERSION
from tests.demo_stores import demo_store_at
from tests.shop_env.memory_store import MemoryStore

OWN = """\
from shop_env.reward.matching import exact_match; limit = 3

def right(reply, logged):
    return 3 if exact_match(reply.action, logged) else 0.5

def fails(reply, logged):
    return 1 / 0

def nothing(reply, logged):
    return None

def text(reply, logged):
    return "much"

def words(step):
    return len(step.predicted_rationale.split()) if step.predicted_rationale else None
"""


@pytest.fixture
def own(tmp_path) -> Path:
    file = tmp_path / "own.py"
    file.write_text(OWN, encoding="utf-8")
    return file


def test_env_trainer_adapters_and_evaluation_pay_the_same(own, kettle_session):
    steps = pytest.importorskip("train.adapters.steps", reason="needs the extra train")
    reward = reward_preset(f"{own}:right")
    store: Any = MemoryStore([kettle_session], "kettle")
    env = ReplayEnv(store, "all", reward=f"{own}:right", first_action=True)
    env.reset(seed=0)
    replies = [format_reply("Why not.", step.action) for step in kettle_session.steps]
    replies[1], replies[2] = format_reply("Out.", {"type": "terminate"}), "no reply"
    encoded = msgspec.json.encode(steps.Scoring(reward=reward, version=SCORING_VERSION)).decode()
    paid = []
    for step, reply in zip(kettle_session.steps, replies, strict=True):
        _, points, *_, info = env.step(reply)
        action = msgspec.json.encode(step.action).decode()
        in_training = steps.score_completion(reply, action, encoded)[0]
        assert points == score_reply(reply, step.action, reward).total == in_training.total
        assert info["best_reward"] == 3
        paid.append(points)
    assert paid == [3.0, 0.5, 0.0, 3.0]
    of_version_2 = encoded.replace(f',"version":{SCORING_VERSION}', "")
    with pytest.raises(BadConfig, match=r"earlier rules \(scoring version 2; .*write them again by --for-verl"):
        steps.score_completion(replies[0], action, of_version_2)


def test_terms_of_the_papers_can_be_added_to_ones_own(own, kettle_session):
    config = RewardConfig(kind=f"{own}:right", format=0.5, self_certainty_weight=0.01)
    step = kettle_session.steps[0]
    assert score_reply(format_reply("", step.action), step.action, config, self_certainty=20.0).total == pytest.approx(
        3.7
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fails", r"reward '.*own\.py:fails' failed: ZeroDivisionError: division by zero \(.*own\.py:7\)"),
        ("nothing", r"reward '.*' returned None; a finite number was expected"),
        ("text", r"reward '.*' returned 'much'; a finite number was expected \(.*own\.py:12\)"),
        ("limit", "reward '.*' cannot be loaded: TypeError: 3 is no function"),
        ("rihgt", r"reward '.*' cannot be loaded: no such name: Did you mean 'right'\?$"),
        ("words", r"reward '.*' failed: TypeError: words\(\) takes 1 positional .* given \(.*own\.py:\d+\)$"),
    ],
)
def test_a_mistake_names_the_file_and_the_line(name, message, own, kettle_session):
    step = kettle_session.steps[0]
    with pytest.raises(BadConfig, match=message):
        score_reply(format_reply("", step.action), step.action, reward_preset(f"{own}:{name}"))


def test_a_file_that_is_not_there_or_no_python_is_named(tmp_path):
    with pytest.raises(
        BadConfig, match=r"metrics 'none\.py:f' cannot be loaded: FileNotFoundError: no file 'none\.py'$"
    ):
        load_measure("metrics", "none.py:f")
    (tmp_path / "broken.py").write_text("x = 1\ndef f(:\n")
    with pytest.raises(BadConfig, match=r"SyntaxError: .*\(broken\.py, line 2\)$"):
        load_measure("metrics", f"{tmp_path / 'broken.py'}:f")


def test_a_module_of_the_current_folder_counts(own, monkeypatch):
    own.with_name("own_of_the_folder.py").write_text(OWN)
    monkeypatch.chdir(own.parent)
    monkeypatch.setattr("sys.path", [entry for entry in sys.path if entry])
    assert reward_preset("own_of_the_folder:right").kind == "own_of_the_folder:right"
    assert load_measure("metrics", "own_of_the_folder:words").__name__ == "measure"


def test_metrics_of_ones_own_stand_beside_a_papers(own):
    assert metric_preset(f"opera,{own}:words").f1 == "macro"
    assert metric_preset(f"{own}:words").f1 == "weighted"
    with pytest.raises(BadConfig, match=r"Unknown metrics preset 'oprea,.*'\. Did you mean 'opera'\?"):
        metric_preset(f"oprea,{own}:words")


def test_a_leaderboard_pays_and_measures_by_them_and_others_ask_before_they_call_them(own, tmp_path, capsys):
    demo_store_at(tmp_path / "store", 60, seed=1)
    out, reward, metric = str(tmp_path / "out"), f"{own}:right", f"{own}:words"
    words = ["--agents", "oracle,random", "--store", str(tmp_path / "store"), "--split", "all", "--out", out]
    assert main([*words, "--reward", reward, "--metrics", f"opera,{metric}"]) == 0
    assert " words " in capsys.readouterr().out
    trust = ["--trust", reward, metric]
    for given in ((), (reward,), (metric,)):
        with pytest.raises(BadConfig, match="add --trust"):
            read_log(Path(out), trust=given)
    log = read_log(Path(out), trust=(reward, metric))
    [oracle] = [entry for entry in log.entries if entry.label == "oracle"]
    records = read_records(Path(out), log, oracle)
    points = [3.0 if record.predicted == record.logged else 0.5 for record in records]
    assert oracle.row.figures["mean_reward"].value == pytest.approx(fmean(points))
    assert set(points) == {0.5, 3.0}
    assert oracle.row.figures[metric].value == step_metrics(records, f"opera,{metric}")[metric]
    assert oracle.row.figures[metric].low is not None
    assert main(["verify", out, "--store", str(tmp_path / "store"), *trust]) == 0
    assert main(["verify", out, "--store", str(tmp_path / "store")]) == 2
    assert main(["compare", out, "oracle", "random", "--metrics", metric, *trust]) == 0
    assert main(["compare", out, "oracle", "random", "--metrics", metric]) == 2
    assert main([*words, "--reward", f"{own}:fails"]) == 2
    assert "own.py:7)" in capsys.readouterr().err
