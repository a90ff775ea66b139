"""The rows of the last table, and what they are compared with."""

from typing import Any

import msgspec
import pytest

from agents.llm_grpo.config import PhaseConfig, TrainConfig
from agents.llm_grpo.evaluation import check_rows, table_rows
from agents.llm_grpo.presets import load_preset
from agents.llm_grpo.training_log import compared_rows, markdown, over_best_agent, read_training
from agents.registry import make_agent
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.table import Estimate
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.evaluated_sessions import Sample
from shop_env.evaluation.results import ResultRow, summarise
from shop_env.evaluation.results_file import Entry, EvaluationLog
from tests.demo_stores import demo_store_at

CONFIG = load_preset("tiny_cpu")
SFT, SHOP_R1 = (CONFIG.phases[name].label for name in ("sft", "shop_r1"))


def test_each_policy_has_a_row_by_its_most_probable_action_and_the_oracle_none():
    rows = {spec.label: spec for _, spec, _ in table_rows(CONFIG, [], oracle=(CONFIG.context, ""))}
    spec = rows[f"{SFT}, most probable action"]
    assert spec.target == "sft" and spec.arguments["decode"] == "most_probable_action"
    assert f"{SHOP_R1}, most probable action" in rows and "oracle, greedy" in rows
    assert "oracle, most probable action" not in rows


def test_runs_on_several_seeds_can_be_tested_on_the_same_sessions_and_temperature_0_is_greedy():
    table = msgspec.structs.replace(CONFIG.evaluation, seed=7, temperature=0.0)
    configs = [msgspec.structs.replace(CONFIG, seed=seed, evaluation=table) for seed in (0, 1)]
    assert {config.evaluation_config.seed for config in configs} == {7}
    assert CONFIG.evaluation_config.seed == CONFIG.seed
    assert [decoding.name for decoding in table.get_decodings()] == ["greedy", "most probable action"]


def test_the_first_row_of_a_policy_that_writes_no_rationale_is_its_most_probable_action():
    silent = msgspec.structs.replace(CONFIG.phases["sft"], teach_rationales=False, temperatures=(1.0,))
    writing = msgspec.structs.replace(CONFIG.phases["shop_r1"], against=())
    for number in (8, None):
        config = with_table({"sft": silent, "shop_r1": writing}, most_probable_action=number)
        rows = [spec for _, spec, _ in table_rows(config, [], oracle=None)]
        assert [spec.label for spec in rows[:4]] == [
            f"{SFT}, {name}" for name in ("most probable action", "T 0.6", "greedy", "T 1")
        ]
        assert rows[0].arguments == {"decode": "most_probable_action", "rationales": 0}
        assert config.evaluation_config.likelihood
        others = [spec.label.removeprefix(f"{SHOP_R1}, ") for spec in rows[4:]]
        assert others == ["T 0.6", "greedy", *(["most probable action"] if number else [])]
    declared = with_table(CONFIG.phases, most_probable_action=0)
    assert declared.get_decodings("sft")[0].name == "most probable action"
    without = msgspec.structs.replace(CONFIG, prompt=msgspec.structs.replace(CONFIG.prompt, rationales=False))
    assert [without.get_decodings(name)[0].rationales for name in without.phases] == [0, 0, 0]


def test_a_pointer_has_no_row_by_the_most_probable_action_because_its_greedy_reply_is_that():
    pointer = load_preset("pointer_cpu").phases["pointer"]
    config = with_table({"pointer": pointer}, most_probable_action=8, temperature=0.0)
    assert [decoding.name for decoding in config.get_decodings("pointer")] == ["greedy"]
    assert not config.evaluation_config.likelihood


def with_table(phases: dict[str, PhaseConfig], **values: Any) -> TrainConfig:
    table = msgspec.structs.replace(CONFIG.evaluation, **values)
    return msgspec.structs.replace(CONFIG, phases=phases, evaluation=table)


def test_phases_are_compared_by_the_decodings_that_both_have():
    silent = msgspec.structs.replace(CONFIG.phases["sft"], teach_rationales=False)
    phase = msgspec.structs.replace(CONFIG.phases["shop_r1"], against=("sft",))
    config = with_table({"sft": silent, "shop_r1": phase}, most_probable_action=None)
    assert list(compared_rows(config)) == [(f"{SHOP_R1}, {name}", f"{SFT}, {name}") for name in ("T 0.6", "greedy")]


def test_only_rows_by_the_most_probable_action_are_asked_for_probabilities():
    assert CONFIG.evaluation_config.likelihood
    without = msgspec.structs.replace(
        CONFIG, evaluation=msgspec.structs.replace(CONFIG.evaluation, most_probable_action=None)
    )
    assert without.evaluation_config == msgspec.structs.replace(CONFIG.evaluation_config, likelihood=False)
    rows, fewer = (
        {label.label: label for _, label, _ in table_rows(config, [], oracle=(CONFIG.context, ""))}
        for config in (CONFIG, without)
    )
    assert fewer == {label: spec for label, spec in rows.items() if "decode" not in spec.arguments}


@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        ("validation", {"sessions": 0}, "--validation.sessions is 0"),
        ("evaluation", {"most_probable_action": -1}, "--evaluation.most-probable-action is -1"),
        ("evaluation", {"temperature": float("nan")}, "--temperature is nan"),
        ("evaluation", {"agents": ("A=random", "A=majority")}, "two rows .* name 'A'"),
        ("evaluation", {"agents": (f"{SFT}, greedy=random",)}, f"two rows .* name '{SFT}, greedy'"),
        ("evaluation", {"agents": ("sft-T0.6=random",)}, "two rows .* name 'agents/sft-T0.6/"),
    ],
)
def test_rows_that_would_spoil_the_table_are_refused_before_training(table, change, message):
    with pytest.raises(BadConfig, match=message):
        changed = msgspec.structs.replace(getattr(CONFIG, table), **change)
        check_rows(msgspec.structs.replace(CONFIG, **{table: changed}))


@pytest.fixture
def demo_store(tmp_path) -> SessionStore:
    return demo_store_at(tmp_path / "demo", 40, seed=3)


def test_policies_are_held_against_the_best_agent_that_is_none(demo_store):
    records = {
        name: evaluate(make_agent(name, store=demo_store), demo_store, "all")
        for name in ("random", "majority", "copy_match")
    }
    config = msgspec.structs.replace(CONFIG, phases={"sft": CONFIG.phases["sft"]})
    records |= {f"{SFT}, T 0.6": records["majority"], f"{SFT}, greedy": records["copy_match"]}
    records[f"{SFT}, most probable action"] = records["random"]
    rows = [summarise(found, label=label) for label, found in records.items()]
    sampled, greedy, by_action = over_best_agent(records, rows[:3], config)
    assert [one.second for one in (sampled, greedy, by_action)] == ["copy_match"] * 3
    exact = {row.label: row.figures["exact_accuracy"].value for row in rows}
    assert sampled.difference == pytest.approx(exact["majority"] - exact["copy_match"]) and sampled.difference < 0
    assert greedy.difference == 0 and not greedy.significant
    assert over_best_agent(records, [], config) == []


def test_a_policy_of_empty_rationales_is_named():
    silent = msgspec.structs.replace(CONFIG.phases["sft"], teach_rationales=False)
    config = msgspec.structs.replace(CONFIG, phases=CONFIG.phases | {"sft": silent})
    entries = []
    for _, spec, context in table_rows(config, [], oracle=None):
        row = ResultRow(label=spec.label, figures={"empty_rationale_rate": Estimate(1.0)}, steps=9, sessions=3)
        entries.append(
            Entry(
                spec=spec,
                context=context,
                row=row,
                steps="agents/x/steps.jsonl",
                sha256="0" * 64,
                identity={},
                time_s=0.0,
                new_steps=0,
            )
        )
    log = EvaluationLog(
        provenance={"config": msgspec.to_builtins(config)},
        config=config.evaluation_config,
        sample=Sample(sessions=3, longest=0.4, inferred=0.0),
        entries=entries,
        training={
            "phases": {
                name: {"steps": 5, "seconds": 1.0, "best_step": 5, "best_exact": 0.1, "is_converged": is_converged}
                for name, is_converged in (("sft", False), ("shop_r1", None), ("sft_longer", True))
            },
            "comparisons": [],
            "over_best_agent": [],
            "users_held_out": True,
        },
    )
    label = config.phases["sft"].label
    unconverged = [line for line in markdown(log).splitlines() if "not converged" in line]
    assert unconverged == [f"- {label}: not converged: by NLL on validation sessions the best step is the last."]
    named = {
        line[2:].partition(": all its rationales are empty")[0]
        for line in markdown(log).splitlines()
        if "are empty" in line
    }
    assert named == {entry.label for entry in entries if entry.spec.target != "sft"}


def test_a_log_without_a_training_field_is_refused():
    log = EvaluationLog(
        provenance={},
        config=CONFIG.evaluation_config,
        sample=Sample(sessions=3, longest=0.4),
        entries=[],
        training={"phases": {}, "comparisons": [], "users_held_out": True},
    )
    with pytest.raises(BadConfig, match=r"`training` .*`over_best_agent`"):
        read_training(log)
