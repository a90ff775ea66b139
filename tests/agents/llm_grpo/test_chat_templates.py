"""A run with a chat template whose generation prompt differs from what stands before past replies, and with a date."""

import copy
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from agents.llm_grpo.train import main, train
from agents.local.policy_agent import PolicyAgent
from agents.registry import make_agent
from replay_sessions.store import SessionStore
from shop_env.observation import observe_session
from tests.demo_stores import demo_store_at
from tests.json_files import read_json
from tests.train.conftest import Tiny
from tests.train.conftest import tiny as tiny
from tests.train.templates import REFUSED, TEMPLATES

PRESET = """
[prompt]
style = "compact"
[model]
max_tokens = 1024
max_new_tokens = 24
[model.template_variables]
enable_thinking = false
[sft]
optimizer = {lr = 1e-3}
stages = [{steps = 2}]
[grpo]
steps = 1
num_generations = 2
sessions_per_batch = 2
max_new_tokens = 24
optimizer = {lr = 1e-4}
[validation]
times = 0
[evaluation]
split = "train"
sessions = 2
agents = []
[phases.sft]
label = "SFT"
method = "sft"
[phases.rl]
label = "RL"
method = "grpo"
start = "sft"
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> SessionStore:
    return demo_store_at(tmp_path_factory.mktemp("store") / "store", 60, seed=4)


def write_model(tiny: Tiny, folder: Path, template: str) -> Path:
    tokenizer = copy.deepcopy(tiny.tokenizer)
    tokenizer.chat_template = template
    tiny.plain_model().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.long
def test_a_run_keeps_its_variables_and_its_date(tiny, store, tmp_path, capsys):
    template = "Today: {{ strftime_now('%Y-%m-%d') }}. " + TEMPLATES["qwen3"]
    (tmp_path / "tiny.toml").write_text(PRESET)
    model = write_model(tiny, tmp_path / "model", template)
    options = {"preset": str(tmp_path / "tiny.toml"), "store": str(store.path), "threads": 1, "watch": []}
    train(**options, model={"path": str(model)}, out=tmp_path / "run")
    run = read_json(tmp_path / "run" / "run.json")
    assert run["template_date"] == run["time"][:10]
    for phase in ("sft", "rl"):
        info = read_json(tmp_path / "run" / phase / "shop_r1_checkpoint.json")
        assert info["template_date"] == run["template_date"]
        assert info["template_variables"] == {"enable_thinking": False}
        agent = make_agent(str(tmp_path / "run" / phase))
        assert isinstance(agent, PolicyAgent)
        prompt = tiny.tokenizer.decode(agent.prompt_tokens(observe_session(tiny.sessions[0])[1]))
        assert prompt.startswith(f"Today: {run['template_date']}.")
        assert prompt.endswith("<|assistant|><think>\n\n</think>\n\n") and prompt.count("<think>") == 1
    log = " ".join("".join(capsys.readouterr()).split())
    assert "each step has a trunk of its own" in log and f"it writes the date, {run['template_date']}" in log


def test_a_run_is_refused_where_prompts_would_differ(tiny, store, tmp_path, capsys):
    model = write_model(tiny, tmp_path / "model", REFUSED["changes replies"])
    words = ["--preset", "trial", "--model.path", str(model), "--store", str(store.path), "--dry-run"]
    assert main(words) == 2
    assert "deed" in capsys.readouterr().err


def test_a_dry_run_says_where_a_refused_system_message_goes(tiny, store, tmp_path, capsys):
    model = write_model(tiny, tmp_path / "model", TEMPLATES["refuses_system"])
    words = ["--preset", "trial", "--model.path", str(model), "--store", str(store.path), "--dry-run"]
    assert main(words) == 0
    assert "head of the first user message" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("trainer", ["trl", "verl"])
def test_other_trainers_get_the_messages_and_the_variables_that_a_template_takes(tiny, store, tmp_path, trainer):
    template = TEMPLATES["refuses_system"] + "{% if mood is defined %}{{ mood }}{% endif %}"
    model = write_model(tiny, tmp_path / "model", template)
    words = ["--preset", "shop_r1_3b", "--store", str(store.path), "--model.path", str(model)]
    words += ["--prompt.style", "compact", f"--for-{trainer}", "shop_r1", "--out", str(tmp_path / "out")]
    words += ["--model.max-tokens", "700", "--model.max-new-tokens", "40", "--grpo.max-new-tokens", "40"]
    words += ["--grpo.steps", "2", "--grpo.steps-per-batch", "6", "--model.template-variables", '{"mood": "calm"}']
    assert main(words) == 0
    prompts = pq.read_table(tmp_path / "out" / "train.parquet")["prompt"].to_pylist()
    assert {message["role"] for prompt in prompts for message in prompt[::2]} == {"user"}
    if trainer == "trl":
        assert read_json(tmp_path / "out" / "trl.json")["template_variables"] == {"mood": "calm"}
    else:
        assert "+data.apply_chat_template_kwargs.mood=calm" in (tmp_path / "out" / "launch.sh").read_text()
