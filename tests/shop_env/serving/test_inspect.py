"""The task in Inspect's own hands, against its own mock model and against a server."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Click, Session, Step
from shop_env.serving.tasks import StepTasks
from tests.json_files import read_json
from tests.processes import ROOT, with_checkout
from tests.shop_env.serving.contract import HARD_REPLIES, KINDS, paid_by_gym, reply_of_kind
from tests.shop_env.serving.scripted_model import scripted_model
from tests.stores import store_at

inspect_ai = pytest.importorskip("inspect_ai", reason="`make test-serving` brings it")
pytestmark = [
    pytest.mark.serving,
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]


def task_of(store_path: str, **options: Any) -> Any:
    from shop_env.serving.inspect_task import shop_r1  # noqa: PLC0415 - needs Inspect

    return shop_r1(store_path, **options)


def evaluated(task: Any, folder: Path, replies: dict[str, str], **options: Any) -> Any:
    """A log of Inspect's, with these replies by the id of the sample."""
    ids = {json.dumps([message.text for message in sample.input]): sample.id for sample in task.dataset}

    def reply(prompt: list[Any], *_: Any) -> Any:
        text = replies[ids[json.dumps([message.text for message in prompt])]]
        output = inspect_ai.model.ModelOutput.from_content("mockllm/model", text)
        output.usage = inspect_ai.model.ModelUsage()  # else it counts tokens by a file that it downloads
        return output

    model = inspect_ai.model.get_model("mockllm/model", custom_outputs=reply, memoize=False)
    options = {"sample_id": list(replies), "display": "none", **options}
    (log,) = inspect_ai.eval(task, model=model, log_dir=str(folder), **options)
    return log


@pytest.mark.parametrize(("reward", "extraction"), [("shop_r1", "strict"), ("customer_r1", "lenient")])
def test_replies_earn_the_reward_of_the_env(store_path, tmp_path, reward, extraction):
    kinds = KINDS if reward == "shop_r1" else ["logged", "similar", "other_name", "fenced", "thinking"]
    expected = paid_by_gym(store_path, reward=reward, extraction=extraction, kinds=kinds)
    task = task_of(store_path, reward=reward, extraction=extraction)
    ids = list(dict.fromkeys(task_id for task_id, _ in expected))
    for kind in kinds:
        replies = {task_id: reply_of_kind(kind, expected[task_id, kind].logged_action) for task_id in ids}
        log = evaluated(task, tmp_path, replies)
        assert log.status == "success", log.error
        assert len(log.samples) == len(ids)
        for sample in log.samples:
            paid, score = expected[sample.id, kind], sample.scores["shop_reward"]
            assert score.value == paid.reward
            assert score.metadata == {"reward_breakdown": paid.breakdown, "best_reward": paid.best_reward}
            assert (score.reason == "invalid_response_format") == (paid.problem is not None)
            assert json.loads(sample.target) == paid.logged_action


def test_standard_errors_are_clustered_by_person(store_path, tasks, tmp_path):
    steps = list(tasks.tasks("test"))
    logged = {step.task_id: tasks.score("test", step.index, "").logged_action for step in steps}
    replies = {
        one: reply_of_kind("logged" if number % 3 else "terminate", logged[one]) for number, one in enumerate(logged)
    }
    log = evaluated(task_of(store_path), tmp_path, replies)
    values = {step.task_id: tasks.score("test", step.index, replies[step.task_id]) for step in steps}
    for score in log.results.scores:
        found = np.array(
            [values[s.task_id].reward if score.name == "shop_reward" else values[s.task_id].exact_match for s in steps],
            dtype=float,
        )
        off = found - found.mean()
        users = np.array([step.user_id for step in steps])
        groups = [off[users == user].sum() for user in dict.fromkeys(users)]
        count = len(groups)
        assert count > 2
        clustered = np.sqrt(sum(np.square(groups)) * count / (count - 1)) / len(found)
        assert score.metrics["mean"].value == pytest.approx(found.mean())
        assert score.metrics["stderr"].value == pytest.approx(clustered)
        assert clustered != pytest.approx(found.std(ddof=1) / np.sqrt(len(found)), rel=1e-3)


def test_a_sample_shows_the_prompt_of_the_env_and_not_the_answer(store_path, store):
    task = task_of(store_path, context={"persona": "none"}, prompt={"style": "compact"})
    from shop_env import ContextConfig, PromptConfig  # noqa: PLC0415 - beside the import above

    tasks = StepTasks(store, context=ContextConfig(persona="none"), prompt=PromptConfig(style="compact"))
    for sample, step in zip(task.dataset, tasks.tasks("test"), strict=True):
        assert [{"role": message.role, "content": message.text} for message in sample.input] == step.messages
        assert (sample.id, sample.metadata["user_id"]) == (step.task_id, step.user_id)


def test_unlogged_actions_are_unscored_and_counted(tmp_path):
    steps = tuple(Step(page="<p>x</p>", action=Click(name=name)) for name in ("a", "b", ""))
    store_at(tmp_path / "store", [Session(session_id="s", user_id="u", source="test", steps=steps)])
    task = task_of(str(tmp_path / "store"), split="all")
    log = evaluated(
        task, tmp_path, {one: reply_of_kind("logged", {"type": "click", "name": "b"}) for one in ("s#1", "s#2")}
    )
    scores = {score.name: score for score in log.results.scores}
    exact, reward = scores["exact_match"], scores["shop_reward"]
    assert (exact.scored_samples, exact.unscored_samples, exact.metrics["mean"].value) == (1, 1, 1.0)
    assert (reward.scored_samples, reward.unscored_samples) == (2, 0)


def test_a_model_that_fails_is_an_error_and_no_reward_of_0(store_path, tmp_path):
    task = task_of(store_path)
    replies = {sample.id: reply_of_kind("prose", {}) for sample in task.dataset}
    del replies[task.dataset[0].id]  # asking for it fails
    log = evaluated(task, tmp_path, replies, sample_id=None, fail_on_error=False)
    failed = [sample for sample in log.samples if sample.error]
    assert [sample.id for sample in failed] == [task.dataset[0].id]
    assert not failed[0].scores
    assert all(score.scored_samples == len(replies) for score in log.results.scores)


@pytest.mark.parametrize("options", [{"reward": "shop_r2"}, {"extraction": "loose"}, {"context": {"persona": "x"}}])
def test_wrong_options_are_refused_before_the_model_is_called(store_path, options):
    with pytest.raises(BadConfig):
        task_of(store_path, **options)


def test_inspects_own_command_runs_and_rescores_the_task(store_path, tasks, tmp_path):
    inspect = str(Path(sys.executable).parent / "inspect")
    environment = with_checkout(OPENAI_API_KEY="none", INSPECT_DISPLAY="none")

    def run(*words: str) -> None:
        done = subprocess.run([inspect, *words], env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    file = str(ROOT / "shop_env" / "serving" / "inspect_task.py")
    options = ["-T", f"store={store_path}", "--limit", "3", "--log-dir", "logs", "--log-format", "json"]
    with scripted_model(lambda messages: HARD_REPLIES["terminate"]) as model:
        environment["OPENAI_BASE_URL"] = model.url
        run("eval", f"{file}@shop_r1", "--model", "openai-api/openai/scripted", *options)
    (log,) = (tmp_path / "logs").glob("*.json")
    again = tmp_path / "logs" / "again.json"
    run("score", str(log), "--scorer", f"{file}@shop_reward", "--action", "overwrite", "--output-file", str(again))
    for file_ in (log, again):
        samples = read_json(file_)["samples"]
        assert len(samples) == 3
        for index, sample in enumerate(samples):
            expected = tasks.score("test", index, HARD_REPLIES["terminate"]).reward
            assert sample["scores"]["shop_reward"]["value"] == expected
