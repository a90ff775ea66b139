"""TRL's GRPOTrainer against the served env, by the very code of docs/serving.md."""

import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replay_sessions.store import SessionStore
from shop_env.replies import format_reply
from shop_env.serving.tasks import StepTasks
from tests.demo_stores import demo_store_at
from tests.processes import ROOT
from tests.train.conftest import COMPACT, Tiny

pytestmark = [pytest.mark.trl, pytest.mark.filterwarnings("ignore")]

STEPS, REPLIES, PROMPTS = 2, 4, 6


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> SessionStore:
    path = tmp_path_factory.mktemp("served") / "store"
    return demo_store_at(path, 24, seed=3)


@pytest.fixture(scope="module")
def url(store) -> Iterator[str]:
    """Where a server listens."""
    words = [sys.executable, "-m", "shop_env.serving", "openenv", "--port", "0"]
    words += ["--store", str(store.path), "--prompt.style", "compact"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    yield server.stdout.readline().split(" at ")[1].split()[0]
    server.terminate()
    server.communicate()


def documented(url: str, model: Any, tiny: Tiny, folder: Path, **options: Any) -> dict[str, Any]:
    """Runs the code of the page up to its trainer, on a tiny model; returns its names."""
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL) if "GRPOTrainer" in block]
    code, calls = re.subn(r"http://127.0.0.1:8000", url, code)
    code, sizes = re.subn(r"range\(\d+\)", f"range({PROMPTS})", code)
    code, models = re.subn(r'model="[^"]+"', "model=model, processing_class=tokenizer, **options", code)
    code, settings = re.subn(r"GRPOConfig\(.*?\)", "arguments", code)
    code, starts = re.subn(r"\ntrainer.train\(\)\n", "\n", code)
    assert (calls, sizes, models, settings, starts) == (1, 1, 1, 1, 1)
    from trl import GRPOConfig  # noqa: PLC0415 - of the extra trl

    arguments = GRPOConfig(
        output_dir=str(folder),
        max_steps=STEPS,
        per_device_train_batch_size=2 * REPLIES,
        num_generations=REPLIES,
        max_completion_length=24,
        learning_rate=1e-2,
        use_cpu=True,
        bf16=False,
        report_to=[],
        save_strategy="no",
        logging_steps=1,
    )
    names: dict[str, Any] = {"model": model, "tokenizer": tiny.tokenizer, "arguments": arguments, "options": options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(code, names)
    return names


def train_watched(names: dict[str, Any]) -> list[tuple[int, str, float]]:
    """Trains; what the reward function was asked and said: the task's index, the reply, the reward."""
    seen: list[tuple[int, str, float]] = []
    (reward_function,) = names["trainer"].reward_funcs

    def watching(completions: list[Any], index: list[int], **rest: Any) -> list[float]:
        rewards = reward_function(completions=completions, index=index, **rest)
        replies = [completion[0]["content"] for completion in completions]
        seen.extend(zip(index, replies, rewards, strict=True))
        return list(rewards)

    names["trainer"].reward_funcs = [watching]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names["trainer"].train()
    names["shop"].close()
    return seen


def test_trl_learns_from_the_rewards_of_the_server(url, store, tiny, tmp_path):
    tasks = StepTasks(store, prompt=COMPACT)
    logged = {
        json.dumps(task.messages): tasks.score("train", task.index, "").logged_action for task in tasks.tasks("train")
    }

    def replies(prompts: list[Any], trainer: Any) -> dict[str, Any]:
        """For each prompt, which comes once for each reply, one logged reply and else some that cannot be read."""
        prompt_ids, reply_ids = [], []
        for number, prompt in enumerate(prompts):
            prompt_ids.append(tiny.tokenizer.apply_chat_template(prompt, add_generation_prompt=True, return_dict=False))
            text = "I leave." if number % REPLIES else format_reply("", logged[json.dumps(prompt)])
            reply_ids.append(tiny.tokenizer(text, add_special_tokens=False)["input_ids"])
        return {"prompt_ids": prompt_ids, "completion_ids": reply_ids, "logprobs": None}

    model = tiny.plain_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    names = documented(url, model, tiny, tmp_path, rollout_func=replies)
    seen = train_watched(names)
    assert names["trainer"].state.global_step == STEPS and len(seen) == STEPS * 2 * REPLIES
    assert {reward for _, _, reward in seen} > {0.0}
    for index, reply, reward in seen:
        assert reward == tasks.score("train", index, reply).reward
    assert any(not before[name].equal(value) for name, value in model.state_dict().items())
