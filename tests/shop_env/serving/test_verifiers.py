"""The taskset in verifiers' own hands: scored one by one, and run by its command against a scripted model."""

import asyncio
import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from replay_sessions.foundation.errors import BadConfig, StoreNotFound
from shop_env.serving.tasks import StepTasks
from tests.processes import ROOT
from tests.shop_env.serving.contract import paid_by_gym, reply_of_kind
from tests.shop_env.serving.scripted_model import scripted_model

vf = pytest.importorskip("verifiers.v1", reason="`make test-serving` brings it")
pytestmark = [pytest.mark.serving, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

TASKSET = """\
from shop_env.serving.verifiers_taskset import ShopTaskset
__all__ = ["ShopTaskset"]
"""


def steps_of(store_path: str, **options: Any) -> dict[str, Any]:
    from shop_env.serving.verifiers_taskset import ShopTaskset, ShopTasksetConfig  # noqa: PLC0415 - needs verifiers

    return {step.data.id: step for step in ShopTaskset(ShopTasksetConfig(store=store_path, **options))}


def trace_of(step: Any, *replies: str | None) -> Any:
    """A trace as a rollout leaves it: the prompt, and the model's replies."""
    given = [vf.SystemMessage(content=step.data.system_prompt), *step.data.prompt]
    messages = [(message, False) for message in given]
    messages += [(vf.AssistantMessage(content=reply), True) for reply in replies]
    nodes = [
        vf.MessageNode(parent=number - 1 if number else None, message=message, sampled=sampled)
        for number, (message, sampled) in enumerate(messages)
    ]
    return vf.WireTrace.model_construct(
        task=vf.TraceTask.model_construct(type="ShopStep", data=step.data), nodes=nodes, rewards={}, metrics={}
    )


def scored(step: Any, *replies: str | None) -> Any:
    trace = trace_of(step, *replies)
    asyncio.run(step.score(trace))
    return trace


@pytest.mark.parametrize(("reward", "extraction"), [("shop_r1", "strict"), ("customer_r1", "lenient")])
def test_replies_earn_the_reward_of_the_env(store_path, tasks, reward, extraction):
    expected = paid_by_gym(store_path, reward=reward, extraction=extraction)
    steps = steps_of(store_path, task={"reward": reward, "extraction": extraction})
    assert list(steps) == [task.task_id for task in tasks.tasks("test")]
    for (task_id, kind), paid in expected.items():
        trace = scored(steps[task_id], reply_of_kind(kind, paid.logged_action))
        assert trace.reward == paid.reward
        parts = {name: value for name, value in paid.breakdown.items() if value is not None}
        assert parts.items() <= trace.metrics.items()
        assert trace.metrics["best_reward"] == paid.best_reward
        assert trace.metrics["readable"] == (paid.problem is None)
        assert "self_certainty" not in trace.metrics  # nobody measured it


def test_a_step_shows_the_prompt_of_the_env(store_path, store):
    context = {"persona": "shuffled", "scope": "latest_step"}
    steps = steps_of(store_path, context=context, prompt_style="compact")
    from shop_env import ContextConfig, PromptConfig  # noqa: PLC0415 - beside the import above

    tasks = StepTasks(store, context=ContextConfig(**context), prompt=PromptConfig(style="compact"))
    for task in tasks.tasks("test"):
        data = steps[task.task_id].data
        given = [{"role": "system", "content": data.system_prompt}]
        given += [{"role": message.role, "content": message.content} for message in data.prompt]
        assert given == task.messages
        assert data.user_id == task.user_id


def test_a_rollout_without_a_reply_is_an_error_and_no_reward_of_0(store_path):
    step = next(iter(steps_of(store_path).values()))
    with pytest.raises(vf.TaskError, match="no reply"):
        scored(step)
    trace = trace_of(step)
    with pytest.raises(vf.TaskError):
        asyncio.run(step.score(trace))
    assert trace.rewards == {"shop_reward": None}
    assert scored(step, None).reward == 0.0  # it replied, with nothing


def test_a_step_can_be_copied_and_made_again_from_its_data(store_path):
    step = next(iter(steps_of(store_path).values()))
    logged = reply_of_kind("logged", {key: step.data.answer[key] for key in step.data.answer if key != "click_type"})
    again = type(step)(type(step.data).model_validate_json(step.data.model_dump_json()), step.config)
    for one in (copy.deepcopy(step), step.with_data(idx=5), again):
        assert scored(one, logged).metrics["exact_match"] == 1.0


def test_wrong_options_are_refused_before_the_model_is_called(store_path):
    with pytest.raises(BadConfig, match="Did you mean 'shop_r1'"):
        steps_of(store_path, task={"reward": "shop_r2"})
    with pytest.raises(BadConfig, match="context"):
        steps_of(store_path, context={"persona": "mine"})
    with pytest.raises(StoreNotFound):
        steps_of("no/such/store")


def evaluate(folder: Path, url: str, store_path: str, *flags: str) -> list[dict[str, Any]]:
    """Runs verifiers' own command, its chat program included; the traces that it wrote."""
    (folder / "shop_r1_steps.py").write_text(TASKSET, encoding="utf-8")
    program = Path(sys.executable).parent / "vf-eval"
    words = [program, "shop_r1_steps", "--env.agent.harness.id", "null", "--env.agent.runtime.type", "subprocess"]
    words += ["--env.taskset.store", store_path, "--client.base-url", url, "-m", "scripted"]
    words += ["--no-push", "--no-rich", "-o", str(folder / "out"), *flags]
    search = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": search, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [
        line
        for file in (folder / "out").glob("*/traces.jsonl")
        for line in file.read_text(encoding="utf-8").strip().split("\n")
    ]
    return [trace for line in lines for trace in json.loads(line)["traces"]]


def test_verifiers_own_command_runs_the_steps(store_path, tasks, tmp_path):
    first = list(tasks.tasks("test"))[:4]
    prompts = {json.dumps(task.messages): task for task in first}
    expected = paid_by_gym(store_path)
    kinds = dict(zip((task.task_id for task in first), ["logged", "prose", "similar", "no_break_space"], strict=True))

    def reply(messages: list[dict[str, Any]]) -> str:
        task = prompts[json.dumps([{"role": one["role"], "content": one["content"]} for one in messages])]
        kind = kinds[task.task_id]
        return reply_of_kind(kind, expected[task.task_id, kind].logged_action)

    with scripted_model(reply) as model:
        traces = evaluate(tmp_path, model.url, store_path, "-n", "4")
    assert len(traces) == 4
    for trace in traces:
        task_id = trace["task"]["data"]["id"]
        assert trace["ok"], trace["errors"]
        paid = expected[task_id, kinds[task_id]]
        assert trace["rewards"]["shop_reward"]["score"] == paid.reward
        assert trace["metrics"]["exact_match"] == (kinds[task_id] == "logged")
    for asked in model.asked:
        assert json.dumps([{"role": one["role"], "content": one["content"]} for one in asked]) in prompts


def test_a_model_that_is_down_leaves_errors_and_no_rewards(store_path, tmp_path):
    with scripted_model(lambda messages: None) as model:
        traces = evaluate(tmp_path, model.url, store_path, "-n", "2")
    assert len(traces) == 2
    for trace in traces:
        assert trace["errors"]
        assert not any(trace["rewards"].values())
