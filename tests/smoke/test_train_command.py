"""The training command as a user calls it: real files, a very small model, and a process where one is stopped.

tests/benchmarks/sweep/test_trainings.py has a run that is a process from its beginning to its end.
"""

import io
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import redirect_stdout
from importlib import resources
from pathlib import Path
from statistics import fmean

import msgspec
import pytest
from safetensors.torch import load_file
from selectolax.lexbor import LexborHTMLParser

from agents.baselines.rules import RepeatLastAgent
from agents.llm_grpo.presets import load_preset, rows_names
from agents.llm_grpo.train import main
from agents.llm_grpo.training_log import read_training
from agents.registry import make_agent
from benchmarks.docs_site.hook import on_page_markdown
from benchmarks.report.__main__ import main as report
from benchmarks.report.evidence import read_evidence
from benchmarks.report.step_tables import differences
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.locks import TRAINING_LOCK, working_alone_in
from replay_sessions.store import SessionStore, StoreWriter
from shop_env.evaluation.results_file import folder_name, read_log
from shop_env.metrics import paired_test
from shop_env.metrics.step_table import ACTION_TYPES
from shop_env.observation import Observation
from shop_env.reward.score import TERM_NAMES
from tests.demo_stores import demo_store_at
from tests.json_files import edited_json, read_json, read_json_lines
from tests.scored_steps import first_seen
from tests.train.small_run import SMALL, SMALL_FLAGS
from tests.train.tiny_gguf import write_gguf

SFT, SHOP_R1 = (load_preset("tiny_cpu").phases[name].label for name in ("sft", "shop_r1"))
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    return demo_store_at(tmp_path_factory.mktemp("stores") / "demo", 60, seed=5).path


def rows_of(run: Path) -> list[object]:
    return [entry["row"] for entry in read_json(run / "results.json")["entries"]]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "agents.llm_grpo.train", *arguments]


def small_run(store: Path, out: Path) -> list[str]:
    return ["--store", str(store), "--out", str(out), "--seed", "7", *SMALL_FLAGS]


@pytest.fixture(scope="module")
def straight_run(store, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "straight"
    with redirect_stdout(io.StringIO()) as told:
        assert main(small_run(store, out)) == 0
    training = read_training(read_log(out))
    tested = sum(test.holm_p_value is not None for test in training.comparisons)
    assert f"differences between phases {tested} could be tested" in told.getvalue()
    assert "results.md lists them" in told.getvalue() and f"against {SFT}, T 0.6" in (out / "results.md").read_text()
    return out


def test_a_run_leaves_its_configuration_figures_and_checkpoints(straight_run, store):
    record = read_json(straight_run / "run.json")
    assert record["config"]["grpo"]["steps"] == 4
    results = read_json(straight_run / "results.json")
    labels = [entry["spec"]["label"] for entry in results["entries"]]
    by_action = f"{SHOP_R1}, most probable action"
    for label in ("random", "majority", "copy_match", f"{SFT}, T 0.6", f"{SFT}, greedy", by_action, "oracle, greedy"):
        assert label in labels
    assert results["training"]["users_held_out"]
    steps = read_json_lines(straight_run / "metrics.jsonl")
    phases = [step["phase"] for step in steps]
    flops = {phase: [step["flops"] for step in steps if step["phase"] == phase] for phase in phases}
    longer = round(sum(flops["shop_r1"]) / fmean(flops["sft"][-3:]))  # those on whole sessions
    assert {phase: phases.count(phase) for phase in phases} == {"sft": 9, "shop_r1": 4, "sft_longer": longer}
    told = (straight_run / "results.md").read_text()
    for entry in results["entries"]:
        assert all(f"- {entry['spec']['label']}: {remark}." in told for remark in entry["remarks"])
    rows = [line for line in told.splitlines() if line.startswith("| ")]
    assert rows[-1].split("|")[1].strip() == "page_counts"  # the best of the baselines stands last
    assert any((straight_run / "tensorboard").iterdir())
    agent = make_agent(str(straight_run / "shop_r1"), store=SessionStore.open(store))
    agent.reset(seed=0)
    assert isinstance(agent.act(first_seen("<a name='x'>x</a>")), str)


def test_every_metric_of_a_step_is_on_the_site_s_page(straight_run):
    page = on_page_markdown((Path(__file__).parents[2] / "docs" / "hyperparameters.md").read_text(encoding="utf-8"))
    steps = page.partition("## Results")[0]
    written = set().union(*read_json_lines(straight_run / "metrics.jsonl"))
    assert not written - names_in(steps)


def names_in(page: str) -> set[str]:
    """The names in code on a page, those of a type or term for each of them."""
    names = set(re.findall(r"`([\w<>]+)`", page))
    for placeholder, kinds in (("TERM", TERM_NAMES), ("TYPE", ACTION_TYPES), ("<type>", ACTION_TYPES)):
        names |= {name.replace(placeholder, kind) for name in names for kind in kinds}
    return names


@pytest.mark.parametrize("stopping", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM])
def test_a_stopped_and_resumed_run_equals_a_straight_run_bit_for_bit(stopping, straight_run, store, tmp_path):
    out = tmp_path / "stopped"
    process = subprocess.Popen(command(*small_run(store, out)), stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    for line in process.stderr:  # the first steps are logged as they are taken
        if "sft" in line and "step" in line:
            process.send_signal(stopping)
            break
        assert time.monotonic() < deadline
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert said.endswith(f"stopped: `shop-r1 train --resume {out}` continues this run\n")
    assert not (out / "results.json").exists()
    assert main(["--resume", str(out)]) == 0
    for name in ("sft", "shop_r1", "sft_longer"):
        ours, theirs = (load_file(folder / name / "model.safetensors") for folder in (out, straight_run))
        assert ours.keys() == theirs.keys()
        assert all((ours[key] == theirs[key]).all() for key in ours), name
    assert rows_of(out) == rows_of(straight_run)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--preset tiny_cpo", "Did you mean 'tiny_cpu'?"),
        ("--store nowhere/at/all", "nowhere/at/all"),
        ("--grpo.step 4", "--grpo.steps {None}|INT"),
        ("--sft.sessions_per_bach 4", "Perhaps you meant: --sft.sessions-per-batch INT"),
        ("--grpo.num-generations 1", "--grpo.num-generations is 1"),
        ("--evaluation.agents random copy_mtach", "Did you mean 'copy_match'?"),
        ("--reward binery", "Did you mean 'binary'?"),
        ("--resume no/such/run", "it has no run.json"),
        ("--sed 1", "--sed"),
    ],
)
def test_a_wrong_call_gives_a_clear_message_and_exit_code_2(arguments, message, tmp_path, capsys):
    out = [] if "--resume" in arguments else ["--out", str(tmp_path / "run")]
    assert main([*arguments.split(), *out]) == 2
    error = capsys.readouterr().err
    assert message in " ".join(error.replace("│", " ").split())


@pytest.mark.parametrize("rows", rows_names())
def test_a_pointer_has_no_phases_of_language_models(rows):
    with pytest.raises(BadConfig, match=r"there is no \[(sft|grpo)\]"):
        load_preset("pointer_cpu", rows)


def test_a_preset_lists_differences_from_its_base():
    base, adapters, smaller = (load_preset(name) for name in ("shop_r1_3b", "one_gpu", "shop_r1_0_5b"))
    assert msgspec.structs.replace(smaller, model=base.model) == base
    assert smaller.model == msgspec.structs.replace(base.model, path="Qwen/Qwen2.5-0.5B-Instruct")
    assert adapters.model.lora is not None
    assert (adapters.sft.optimizer.lr, adapters.sft.optimizer.warmup_steps) == (2e-4, base.sft.optimizer.warmup_steps)
    assert adapters.sft.stages == base.sft.stages


def test_a_base_may_lie_beside_its_preset_and_none_may_be_its_own(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('base = "tiny_cpu"\nseed = 7\n')
    (tmp_path / "other.toml").write_text('base = "mine.toml"\n[validation]\ntimes = 1\n')
    other = load_preset(str(tmp_path / "other.toml"))
    tiny = load_preset("tiny_cpu")
    assert (other.seed, {phase.validation.times for phase in other.phases.values()}) == (7, {1})
    assert [phase.hyperparameters for phase in other.phases.values()] == [
        phase.hyperparameters for phase in tiny.phases.values()
    ]
    mine.write_text('base = "mine.toml"\n')
    with pytest.raises(BadConfig, match="are each other's base"):
        load_preset(str(mine))
    mine.write_text("base = 3\n")
    with pytest.raises(BadConfig, match="base is 3; give the name of a preset"):
        load_preset(str(mine))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('[phases.a]\nlabel = "A"\nmethod = "sft"\nstart = "b"\n', "phases.a.start: 'b' is none of model"),
        ('[phases.a]\nlabel = "A"\nmethod = "none"\nagainst = ["b"]\n', "phases.a.against: 'b' is none of a"),
        ('[phases.a]\nlabel = "A"\nmethod = "none"\n[phases.b]\nlabel = "A"\nmethod = "none"\n', "labelled 'A'"),
        ('[phases."../a"]\nlabel = "A"\nmethod = "none"\n', "a phase's name is a folder's"),
        ('[phases.tokens]\nlabel = "A"\nmethod = "none"\n', "a phase's name is a folder's"),
        ('[phases.a]\nlabel = "A"\nmethod = "sft"\nreward = "binary"\n', "its method is 'sft', not 'grpo'"),
        ('[phases.a]\nlabel = "A"\nmethod = "grpo"\nreward = "binery"\n', "Did you mean 'binary'?"),
        ("", "at least one phase"),
    ],
)
def test_rows_that_make_no_sense_are_refused_with_their_place(table, message, tmp_path):
    rows = tmp_path / "rows.toml"
    rows.write_text(table)
    with pytest.raises(BadConfig) as refused:
        load_preset("tiny_cpu", str(rows))
    assert message in str(refused.value)


LORA = """
[model]
path = "{path}"
precision = "bfloat16_autocast"
gradient_checkpointing = true
max_tokens = 1500
max_new_tokens = 8

[model.lora]
rank = 2
"""


def test_a_language_model_from_a_file_trains_by_lora_in_bfloat16(store, tmp_path, capsys):
    write_gguf(tmp_path / "model.gguf")
    preset = (resources.files("agents.llm_grpo") / "presets" / "tiny_cpu.toml").read_text()
    before, _, after = preset.partition("[model]")
    after = after[after.index("[sft]") :]
    (tmp_path / "lora.toml").write_text(before + LORA.format(path=tmp_path / "model.gguf") + after)
    fewer = {key: 1 for key in SMALL if key.endswith("steps")} | {"validation.sessions": 1, "evaluation.sessions": 1}
    smaller = SMALL | fewer | {"grpo.steps": 2, "sft.sessions-per-batch": 2}
    flags = [word for key, value in smaller.items() if not key.startswith("model") for word in (f"--{key}", str(value))]
    out = tmp_path / "run"
    assert main(["--preset", str(tmp_path / "lora.toml"), "--store", str(store), "--out", str(out), *flags]) == 0
    assert capsys.readouterr().err.count("sampling: plain layers, attention by torch\n") == 3, (
        "once for each phase's model"
    )
    for phase in ("sft", "shop_r1", "sft_longer"):
        assert (out / phase / "adapter_model.safetensors").exists()
        assert not (out / phase / "model.safetensors").exists()
    agent = make_agent(str(out / "shop_r1"))
    agent.reset(seed=0)
    assert isinstance(agent.act(first_seen("<a name='x'>x</a>")), str)


@pytest.fixture
def run(straight_run, tmp_path) -> Path:
    """A copy of a finished run, for tests that change it."""
    return shutil.copytree(straight_run, tmp_path / "run")


def written_at(files: Iterable[Path]) -> dict[Path, int]:
    return {file: file.stat().st_mtime_ns for file in files}


def test_a_run_that_was_stopped_within_a_row_of_its_table_asks_no_step_twice(run, store, monkeypatch):
    asked = []
    act = RepeatLastAgent.act

    def stopped_once(agent: RepeatLastAgent, observation: Observation) -> str:
        asked.append(observation)
        if len(asked) == 5:
            raise KeyboardInterrupt
        return act(agent, observation)

    monkeypatch.setattr(RepeatLastAgent, "act", stopped_once)
    agent = "repeat_last"
    assert main([*small_run(store, run), "--extend", "--evaluation.agents", agent]) == 130
    steps = run / "agents" / folder_name(agent) / "steps.jsonl"
    assert len(steps.read_text().splitlines()) == 1 + 4
    assert main(["--resume", str(run)]) == 0
    assert len(asked) == len(steps.read_text().splitlines()), "only the step it was stopped at"


def test_a_finished_run_takes_further_agents_and_asks_only_them(run, store, capsys):
    written = written_at(run.glob("agents/*/steps.jsonl"))
    asked = ["--extend", "--evaluation.agents", "always=majority", "ngram"]
    assert main([*small_run(store, run), *asked]) == 0
    now = written_at(run.glob("agents/*/steps.jsonl"))
    assert now.items() >= written.items()
    assert {file.parent.name for file in now.keys() - written.keys()} == {"always", "ngram"}
    results = read_json(run / "results.json")
    assert {"copy_match", "always", "ngram"} <= {entry["spec"]["label"] for entry in results["entries"]}
    assert (
        f"over {results['training']['over_best_agent'][0]['second']}, the best other agent" in capsys.readouterr().out
    )
    assert read_json(run / "run.json")["extended"][0]["agents"] == ["always=majority", "ngram"]


def test_a_run_in_which_another_process_trains_is_left_alone(run, capsys):
    before = written_at(file for file in run.rglob("*") if file.name != TRAINING_LOCK)
    with working_alone_in(run, TRAINING_LOCK):
        assert main(["--resume", str(run)]) == 2
        assert f"another process is at work in '{run}'" in capsys.readouterr().err
        assert written_at(before) == before
    assert main(["--resume", str(run)]) == 0


def test_a_run_does_not_go_on_with_another_store(run, capsys):
    with edited_json(run / "run.json") as record:
        record["store"]["fingerprint"] = "another"
    assert main(["--resume", str(run)]) == 2
    assert "began with store another" in capsys.readouterr().err


def test_the_report_of_a_run_shows_its_table_its_comparisons_and_its_curves(straight_run, tmp_path):
    evidence = read_evidence(straight_run)
    results = read_json(straight_run / "results.json")
    assert {entry["spec"]["label"] for entry in results["entries"]} == set(evidence.records)
    found = {(one.first, one.second, one.metric): one for one in differences(evidence)}
    for said in results["training"]["comparisons"]:
        one = found[said["first"], said["second"], said["metric"]]
        assert (one.difference, one.low, one.high) == (said["difference"], said["low"], said["high"])
        records = [evidence.records[said[side]] for side in ("first", "second")]
        assert paired_test(*records, said["metric"]).estimate == one.estimate
    out = tmp_path / "report.html"
    assert report(f"{straight_run} --out {out} --tables {tmp_path}/tables".split()) == 0
    document = LexborHTMLParser(out.read_text(encoding="utf-8"))
    shown = {line.css_first("th").text(deep=False).strip() for line in document.css("table.ranked")[0].css("tbody tr")}
    assert shown == {*evidence.records, "ceiling", "ceiling at T = 0.6"}
    (curves,) = document.css("#training img.curves")
    assert (curves.attributes["src"] or "").startswith("data:image/png;base64,")
    assert document.css("script#block-index")


def test_a_run_with_results_of_an_earlier_version_names_the_remedy(run, capsys):
    with edited_json(run / "results.json") as results:
        del results["versions"]["results"]  # as before training runs wrote an evaluation log
    assert report([str(run)]) == 2
    said = capsys.readouterr().err
    assert "was made under other versions" in said and f"--resume {run}` makes the table anew without training" in said
    assert said.count("\n") == 1
    (run / "results.json").unlink()
    assert report([str(run)]) == 2
    assert "is a training run that is not finished" in capsys.readouterr().err


def test_a_dry_run_tells_steps_tokens_and_memory_and_writes_nothing(store, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = f"--store {store} --model.tiny.layers 1 --grpo.steps 3".split()
    assert main([*words, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"^shop_r1 +grpo +all kept +3 +[\d,]+ +[\d,]+ +0.0 +100.0 +0.0 +0.0 +[\d.]+$", told, re.MULTILINE)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def store_without_rationales(store, tmp_path) -> Path:
    """Two of five steps keep theirs."""
    logged, path = SessionStore.open(store), tmp_path / "without"
    number = 0
    with StoreWriter(path, source="others", splits=logged.manifest.split_plan) as writer:
        for session in logged.sessions("all"):
            steps = []
            for step in session.steps:
                steps.append(step if number % 5 < 2 else msgspec.structs.replace(step, rationale=None))
                number += 1
            writer.write(msgspec.structs.replace(session, steps=tuple(steps)))
    return path


def test_a_reward_of_rationales_on_a_store_without_them_is_refused_unless_it_is_wanted(
    store_without_rationales, tmp_path, capsys
):
    words = small_run(store_without_rationales, tmp_path / "run")
    assert main(words) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert re.search(r"rationales: \d+ of \d+ training steps have one \((39|40|41)%\), and the reward scores", said)
    assert "shop-r1 rationales --store" in said and "--missing-rationales empty" in said
    assert not (tmp_path / "run" / "run.json").exists()

    assert main([*words, "--dry-run"]) == 0
    assert "training steps have one (" in capsys.readouterr().out
    assert main([*words, "--missing-rationales", "empty"]) == 0
    record = read_json(tmp_path / "run" / "run.json")["rationales"]
    assert 0.38 < record["present"] / record["steps"] < 0.42
