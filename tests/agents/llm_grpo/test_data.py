"""Training sessions that are longer than a prompt may be."""

import re

import msgspec

from agents.llm_grpo.data import RationaleCoverage, TrainingData
from agents.llm_grpo.presets import load_preset
from tests.demo_stores import demo_store_at


def test_sessions_over_the_limit_lose_their_earliest_pages_and_are_counted(tiny, tmp_path):
    store = demo_store_at(tmp_path / "store", 24, seed=3)
    config = load_preset("tiny_cpu")
    logged: list[str] = []
    whole = TrainingData(config, store, tmp_path / "tokens", logged.append).trunks(config.phases["sft"], tiny.tokenizer)
    assert re.findall(r"\d+\.\d%", logged[-1]) == ["0.0%", "100.0%", "0.0%", "0.0%"]
    longest = sorted(reply.start for trunk in whole for reply in trunk.replies)[-5] - 1
    model = msgspec.structs.replace(config.model, max_tokens=longest + config.model.max_new_tokens)
    limited = msgspec.structs.replace(config, model=model)
    assert limited.model.max_prompt_tokens == longest
    cut, again = (
        TrainingData(limited, store, tmp_path / "tokens", logged.append).trunks(config.phases["sft"], tiny.tokenizer)
        for _ in range(2)
    )
    assert max(reply.start for trunk in cut for reply in trunk.replies) <= longest
    assert sum(len(trunk.replies) for trunk in cut) == sum(len(trunk.replies) for trunk in whole)
    sessions = {trunk.session_id for trunk in whole if any(reply.start > longest for reply in trunk.replies)}
    assert {trunk.session_id for trunk in cut if trunk.pages_left_out} == sessions
    lost = sum(len(trunk.replies) for trunk in cut if trunk.pages_left_out)
    assert f" {100 * lost / 132:.1f}% lost earlier pages" in logged[-1]
    assert [trunk.pages_left_out for trunk in again] == [trunk.pages_left_out for trunk in cut]


def test_a_log_without_rationales_names_the_flag_for_prompts_that_ask_for_none():
    config = load_preset("tiny_cpu")
    unasked = msgspec.structs.replace(config, prompt=msgspec.structs.replace(config.prompt, rationales=False))
    flag = "--prompt.no-rationales"
    assert flag in RationaleCoverage(0, 10).describe(config)
    assert flag not in RationaleCoverage(1, 10).describe(config) + RationaleCoverage(0, 10).describe(unasked)
