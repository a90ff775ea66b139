"""A run takes more phases, and nothing else: what it has stays as it is, and what differs is refused with its name."""

import json
from pathlib import Path

import msgspec
import pytest

from agents.agent_identity import reply_identity
from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.presets import load_preset
from agents.llm_grpo.run_folder import begin_run, extend_config, read_config, record_extension
from agents.registry import parse_spec
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.provenance import provenance
from replay_sessions.store import SessionStore
from shop_env.evaluation.results_file import steps_file
from shop_env.evaluation.steps_file import Identity
from shop_env.observation import ContextConfig
from tests.demo_stores import demo_store_at
from tests.json_files import edited_json, read_json

FOLDER = Path("runs/mine")
TABLE_2, TABLE_4 = (load_preset("tiny_cpu", rows) for rows in ("shop_r1_table2", "shop_r1_table4"))


def changed(config: TrainConfig, phase: str, **values: object) -> TrainConfig:
    other = msgspec.structs.replace(config.phases[phase], **values)
    return msgspec.structs.replace(config, phases=config.phases | {phase: other})


def test_the_phases_that_a_run_lacks_come_at_its_end():
    both = extend_config(TABLE_2, TABLE_4, FOLDER)
    assert list(both.phases)[: len(TABLE_2.phases)] == list(TABLE_2.phases)
    assert set(both.phases) == TABLE_2.phases.keys() | TABLE_4.phases.keys()
    assert list(both.phases).count("sft") == 1
    assert extend_config(both, TABLE_2, FOLDER) == both


def test_shared_phases_take_comparisons_and_temperatures_of_both():
    both = extend_config(TABLE_2, TABLE_4, FOLDER)
    assert set(both.phases["shop_r1"].against) == {"sft_no_rationales_shown", "sft_rl_binary", "sft_longer", "sft"}
    assert both.phases["shop_r1"].label == TABLE_2.phases["shop_r1"].label
    more = extend_config(both, load_preset("tiny_cpu", "shop_r1_figure2"), FOLDER)
    decodings = {name: more.evaluation.get_decodings(phase.temperatures) for name, phase in more.phases.items()}
    assert [one.name for one in decodings["shop_r1"]] == [
        "T 0.6", "greedy", "most probable action", "T 0.7", "T 0.8", "T 0.9", "T 1", "T 1.1", "T 1.2",
    ]  # fmt: skip
    assert [one.name for one in decodings["sft"]] == ["T 0.6", "greedy", "most probable action"]
    name = decodings["shop_r1"][3].file_name("shop_r1")
    assert steps_file(name) == "agents/shop_r1-T0.7/steps.jsonl"


def with_agents(config: TrainConfig, *agents: str, **values: object) -> TrainConfig:
    agents = agents or config.evaluation.agents
    evaluation = msgspec.structs.replace(config.evaluation, agents=agents, **values)
    return msgspec.structs.replace(config, evaluation=evaluation)


def test_agents_that_a_run_lacks_stand_beside_those_that_it_has():
    begun, asked = with_agents(TABLE_2, "random", "majority"), with_agents(TABLE_2, "boosting", "random")
    assert extend_config(begun, asked, FOLDER).evaluation.agents == ("random", "majority", "boosting")


def test_a_run_without_rows_by_the_most_probable_action_is_given_them():
    begun = with_agents(TABLE_2, most_probable_action=None)
    assert extend_config(begun, TABLE_2, FOLDER) == TABLE_2


def test_an_agent_that_was_edited_or_is_given_other_arguments_is_another_row(tmp_path):
    def identity(*, edited: bool = False, arguments: str = "") -> Identity:
        text = "class Bot:\n    def act(self, observation): ...\n" + "    # edited\n" * edited
        (tmp_path / "bot.py").write_text(text, encoding="utf-8")
        spec = parse_spec(f"mine={tmp_path}/bot.py:Bot{arguments}")
        return reply_identity(spec, ContextConfig(), store, 0)

    store = demo_store_at(tmp_path / "store", 8, seed=0)
    assert identity() == identity()
    assert identity() not in (identity(edited=True), identity(arguments="?depth=2"))


def test_a_run_that_goes_on_names_its_files_that_changed(tmp_path):
    run, file, store = tmp_path / "run", tmp_path / "mine.py", demo_store_at(tmp_path / "store", 8, seed=0)
    config = msgspec.structs.replace(TABLE_2, reward=f"{file}:reward")
    file.write_text("def reward(reply, logged): return 1.0", encoding="utf-8")
    assert "rationales" in str(begin_run(run, config, store))
    assert begin_run(run, config, store) is None
    file.write_text("def reward(reply, logged): return 2.0", encoding="utf-8")
    assert begin_run(run, config, store) == f"warning: changed since this run began: {file}"
    file.write_text("def reward(reply, logged): return 1.0", encoding="utf-8")
    with edited_json(run / "run.json") as record:
        del record["scoring"]  # as before version 3
    assert "began: the rules of scoring (version 2, now " in str(begin_run(run, config, store))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (with_agents(TABLE_4, "boosting", sessions=7), "evaluation.sessions: 400, now 7"),
        (msgspec.structs.replace(TABLE_4, seed=3), "seed: 0, now 3"),
        (msgspec.structs.replace(TABLE_4, threads=1), "threads: 2, now 1"),
        (
            msgspec.structs.replace(TABLE_4, grpo=msgspec.structs.replace(TABLE_4.grpo, steps=5)),
            "grpo.steps: 70, now 5",
        ),
        (changed(TABLE_4, "shop_r1", reward="binary"), 'phases.shop_r1.reward: "shop_r1", now "binary"'),
        (changed(TABLE_4, "sft", teach_rationales=False), "phases.sft.teach_rationales: true, now false"),
    ],
)
def test_a_run_of_another_configuration_is_refused_with_the_difference(other, said):
    with pytest.raises(BadConfig) as refused:
        extend_config(TABLE_2, other, FOLDER)
    assert f"'runs/mine' holds a run of another configuration ({said})" in str(refused.value)


def test_names_comparisons_and_places_are_no_difference():
    elsewhere = msgspec.structs.replace(TABLE_2, store="moved/there", save_every_s=1.0, watch=())
    assert extend_config(TABLE_2, elsewhere, FOLDER) == elsewhere
    called_otherwise = changed(TABLE_2, "shop_r1", label="Another name")
    assert extend_config(TABLE_2, called_otherwise, FOLDER).phases == TABLE_2.phases


@pytest.fixture
def store(tmp_path) -> SessionStore:
    return demo_store_at(tmp_path / "store", 8, seed=1)


def test_additions_and_their_times_are_noted_beside_the_runs_beginning(tmp_path, store):
    begun = provenance(msgspec.to_builtins(TABLE_2), store=store, seed=0)
    (tmp_path / "run.json").write_text(json.dumps(begun))
    both = extend_config(read_config(tmp_path), with_agents(TABLE_4, "boosting"), tmp_path)
    record_extension(tmp_path, both, store)
    noted = read_json(tmp_path / "run.json")
    assert read_config(tmp_path) == both
    assert {key: noted[key] for key in begun if key != "config"} == {k: v for k, v in begun.items() if k != "config"}
    (added,) = noted["extended"]
    assert added["phases"] == [name for name in TABLE_4.phases if name not in TABLE_2.phases]
    assert added["agents"] == ["boosting"]
    written = (tmp_path / "run.json").read_bytes()
    record_extension(tmp_path, both, store)
    assert (tmp_path / "run.json").read_bytes() == written


def test_a_folder_without_a_run_is_told():
    with pytest.raises(BadConfig, match=r"it has no run\.json"):
        read_config(FOLDER)


def test_only_some_phases_come_with_those_that_they_need():
    def phases(*only: str) -> list[str]:
        return list(load_preset("tiny_cpu", "shop_r1_table2", only).phases)

    assert phases("shop_r1") == ["sft", "shop_r1"]
    assert phases("sft_longer", "zero_shot") == ["zero_shot", "sft", "shop_r1", "sft_longer"]
    assert phases("sft_no_rationales_shown") == ["sft", "sft_no_rationales_shown"]
    assert phases() == list(TABLE_2.phases)
    assert load_preset("tiny_cpu", "shop_r1_table2", ["shop_r1"]).phases["shop_r1"].against == ()
    with pytest.raises(BadConfig, match=r"has no phase 'shop_r2'\. Did you mean 'shop_r1'\?"):
        phases("shop_r2")
