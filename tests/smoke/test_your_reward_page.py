"""The examples of docs/your_reward.md run as they stand there."""

import re
import shlex
from functools import reduce
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents.llm_grpo.presets import load_preset
from agents.llm_grpo.train import train
from benchmarks.console import main
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Click, Terminate
from shop_env.replies import format_reply
from shop_env.reward import reward_preset, score_reply
from tests.demo_stores import demo_store_at
from tests.processes import ROOT
from tests.smoke.test_train_command import SMALL

PAGE = (ROOT / "docs" / "your_reward.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, flags=re.DOTALL))
CALLS = re.findall(r"^shop-r1 (.*)$", PAGE, flags=re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    for file, code in BLOCKS.items():
        (tmp_path / file).write_text(code, encoding="utf-8")
    (tmp_path / "my_prompt.txt").write_text("Say as JSON what comes next.", encoding="utf-8")
    (tmp_path / "visits.jsonl").write_text('{"visit": "v", "user": "u", "steps": [{"page": "<p>Hi"}]}\n')
    demo_store_at(tmp_path / "stores" / "demo", 60, seed=5)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
def test_every_call_of_the_page_runs(folder):
    assert main(["new", "importer"]) == 0
    assert {call.split()[0] for call in CALLS} == {"train", "rank", "compare", "report", "import"}
    for number, call in enumerate(CALLS):
        words = re.findall(r'"[^"]*"|\S+', call)
        further = []
        if words[0] == "rank":
            further = ["--store", "stores/demo"]
        if words[0] == "train":
            further = ["--store", "stores/demo", *([] if "--out" in words else ["--out", f"runs/{number}"])]
            keys = [key for key in SMALL if not ("trial" in words and "sft.stages" in key)]  # it has stages of its own
            further += [word for key in keys for word in (f"--{key}", str(SMALL[key]))]
        assert main([word.strip('"') for word in words] + further) == 0, call


@pytest.mark.long
def test_the_study_of_the_page_runs(folder, capsys):
    """On a smaller model and with fewer steps than the preset's."""
    tables: Any = msgspec.to_builtins(load_preset("tiny_cpu"))
    for key, value in SMALL.items():
        *path, name = key.replace("-", "_").split(".")
        table = reduce(lambda inner, part: inner[int(part) if part.isdigit() else part], path, tables)
        table[name] = None if value == "None" else value  # as a flag says it
    del tables["store"], tables["reward"]
    (folder / "stores" / "demo").rename(folder / "stores" / "mine")
    assert BLOCKS["my_study.py"].count('grpo={"steps": 2}') == 1
    exec(BLOCKS["my_study.py"].replace('grpo={"steps": 2}', "**TABLES"), {"TABLES": tables})
    printed = capsys.readouterr().out
    assert "60 Session('" in printed
    assert "copy_match" in printed and "Shop-R1" in printed
    assert (folder / "runs" / "mine" / "sft").is_dir()
    assert main(shlex.split(printed.partition("step by step: shop-r1 ")[2].splitlines()[0])) == 0


def test_the_reward_of_the_page_gives_the_documented_values(folder):
    reward = reward_preset("my_reward.py:reward")
    paid = [
        score_reply(format_reply("", predicted), logged, reward).total
        for predicted, logged in [
            (Click(name="a.b"), Click(name="a.b")),
            (Click(name="c"), Click(name="a.b")),
            (Terminate(), Terminate()),
            (Terminate(), Click(name="a.b")),
        ]
    ]
    assert paid == pytest.approx([1.0, 0.2, 1.0, 0.5])


def test_options_of_train_in_python_are_checked_as_the_command_checks_them():
    with pytest.raises(BadConfig, match=r"grpo\.step'\. Did you mean 'steps'\?"):
        train(grpo={"step": 2})
