"""A dry run plans steps, tokens and memory; the docs' command lines fit the GPUs that they are for.

Models are Qwen2.5's shapes; sessions fill the context: 128 of them, with 7 steps each.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from agents.llm_grpo.data import phase_warnings
from agents.llm_grpo.dry_run import dry_run
from agents.llm_grpo.options import MachineOptions, prepare
from agents.llm_grpo.presets import load_preset, preset_names
from agents.llm_grpo.run_plan import GIB, Machine, Work, choose_passes, get_machine, plan_phase
from replay_sessions.demo_shop.visits import write_demo_store
from replay_sessions.foundation.table import Estimate, Table
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit
from replay_sessions.store import SessionStore
from tests.json_files import read_json
from tests.train.qwen_shapes import qwen2_config
from tests.train.test_long_pages import long_store
from train.flops import FlopCounter, estimate_seconds
from train.memory import build_on_meta
from train.tokens import ReplySpan, SessionTokens

DOCS = Path(__file__).parents[3] / "docs"
SESSIONS, STEPS, REPLY = 128, 7, 60
TYPES: list[Action] = [Click(name="a"), TypeAndSubmit(name="a", text="b"), Terminate()]
COMMANDS = re.compile(r"^(?:torchrun|accelerate launch|shop-r1 train) (?:.*\\\n)*.*", re.MULTILINE)
GPUS = {"one_gpu": 32, "opera_one_gpu": 32}  # GiB; the others are for 80
LAUNCHES = ("--nproc-per-node", "--num_processes", "--machine.gpus")
GPU_PRESETS = [name for name in preset_names() if name != "trial" and not name.endswith("_cpu")]


def sessions(length: int, number: int = SESSIONS) -> list[SessionTokens]:
    ends = [length * (step + 1) // STEPS for step in range(STEPS)]
    return [
        SessionTokens(
            str(index),
            [index] + [0] * (length - 1),
            [ReplySpan(step, end - REPLY, end, TYPES[(index + step) % 3]) for step, end in enumerate(ends)],
        )
        for index in range(number)
    ]


def documented() -> Iterator[tuple[str, ...]]:
    """The words of every documented command that trains by a preset for GPUs, its launcher's included."""
    for page in sorted(DOCS.glob("*.md")):
        for call in COMMANDS.findall(page.read_text(encoding="utf-8")):
            words = tuple(shlex.split(call.replace("\\\n", " "), comments=True))
            is_export = any(word.startswith("--for-") for word in words)
            if "--preset" in words and words[words.index("--preset") + 1] in GPU_PRESETS and not is_export:
                yield words


def needed_bytes(words: Sequence[str], machine: Machine) -> list[float]:
    """Of each phase of a run on GPUs."""
    _, _, config = prepare([*words, "--dry-run", "--machine.gpus", str(machine.processes)])
    size = re.search(r"-([\d.]+B)-", str(config.model.path))
    assert size, config.model.path
    model = build_on_meta(qwen2_config(size[1]), config.model.lora)
    needed = []
    for phase in config.phases.values():
        if phase.hyperparameters is not None and phase.same_compute_as is None:
            work = plan_phase(config, phase, sessions(config.model.max_prompt_tokens), share=1.0)
            shape = work.get_largest_pass(phase.hyperparameters.max_batch_tokens)
            needed.append(choose_passes(config, work, shape, model, machine)[1])
    return needed


def plan(*words: str) -> Work:
    """Of GRPO, or another objective in its place, by the preset tiny_cpu."""
    _, _, config = prepare(["--dry-run", "--grpo.steps", "2", "--grpo.sessions-per-batch", "4", *words])
    return plan_phase(config, config.phases["shop_r1"], sessions(490, 8), share=1.0)


def test_objectives_are_planned_by_samples_and_memory():
    grpo, logged, weighted = (
        plan(),
        plan("--grpo.num-generations", "9"),
        plan("--phases.shop-r1.method", "weighted_sft"),
    )
    assert grpo.has_reference and not weighted.has_reference
    assert [work.branch_tokens for work in (grpo, logged, weighted)] == [8 * 32, 9 * 32, 32]
    shape = grpo.get_shape(grpo.batches[0])
    assert shape.targets == 4 * (STEPS - 1) * 8 * 32  # the first step of a session is not scored
    assert shape.tokens == shape.targets + 4 * 490


def test_a_pass_is_cut_to_its_limit_but_for_one_step():
    work = plan()
    assert work.get_largest_pass(10**9).tokens == work.get_shape(work.batches[0]).tokens
    assert work.get_largest_pass(1000).tokens == 1000
    assert work.get_largest_pass(1).tokens == 490 + 8 * 32


def test_epochs_are_counted_in_steps_of_the_whole_split():
    config = load_preset("shop_r1_3b")
    sft = config.phases["sft"]
    few = plan_phase(config, sft, sessions(490, 128), share=0.25)
    assert few.steps == 4 * 4 * 2  # epochs, the share, batches of 64 sessions
    assert plan_phase(config, sft, sessions(490, 20), share=20 / 437).steps == 28  # 7 batches, the last not full
    grpo = load_preset("customer_r1_7b").phases["customer_r1"]
    scored = 20 * (STEPS - 1)
    assert plan_phase(config, grpo, sessions(490, 20), share=20 / 437).steps == round(2 * scored * 437 / 20 / 64)


def test_lengths_of_the_presets_for_opera_are_those_of_customer_r1():
    """437 sessions with 4,427 scored steps in 64 to a batch: 7 sessions with 6 predicted steps each."""
    planned = {}
    for name in ("opera_8_gpus", "opera_one_gpu"):
        config = load_preset(name)
        assert (config.phases["sft"].sft and config.phases["sft"].sft.sessions_per_batch) == 6
        steps = [
            plan_phase(config, config.phases[phase], sessions(490, 437), 1.0).steps for phase in ("sft", "shop_r1")
        ]
        planned[name] = steps
        for phase, count in zip(("sft", "shop_r1"), steps, strict=True):
            assert not any("warm-up" in line for line in phase_warnings(phase, config.phases[phase], count, 1))
    rl = round(2 * 437 * (STEPS - 1) / 64)
    assert planned == {"opera_8_gpus": [2000, rl], "opera_one_gpu": [4 * 73, rl]}


def test_a_warmup_of_most_steps_is_named_with_both_numbers_and_the_remedy(tmp_path):
    store = long_store(tmp_path / "store", 8, median=1000)
    config = load_preset("shop_r1_3b", only=["sft"])
    model = msgspec.structs.replace(config.model, path=None)
    lines = [*dry_run(msgspec.structs.replace(config, model=model), store, get_machine(MachineOptions()))]
    assert [line for line in map(str, lines) if "warm-up" in line] == [
        "warning: sft: 4 of 4 steps are warm-up, more than a tenth. Give --phases.sft.sft.optimizer.warmup-steps 0, or "
        "train for longer (for OPeRA: presets opera_one_gpu, opera_8_gpus)."
    ]


@pytest.mark.parametrize(("times", "sessions", "said"), [(3, 0, "has no sessions"), (0, 5, "times is 0"), (3, 5, "")])
def test_a_phase_without_validation_says_that_it_keeps_its_last_weights(times, sessions, said):
    phase = load_preset("tiny_cpu").phases["sft"]
    phase = msgspec.structs.replace(phase, validation=msgspec.structs.replace(phase.validation, times=times))
    lines = [*phase_warnings("sft", phase, 1800, sessions)]
    assert len(lines) == bool(said) and all(said in line and "last step" in line for line in lines)


def test_vllm_takes_its_share_of_the_memory():
    tiny = load_preset("tiny_cpu")
    rollouts = msgspec.structs.replace(tiny.rollouts, engine="vllm", gpu_memory_utilization=0.25)
    model, machine = build_on_meta(qwen2_config("0.5B", 2), None), Machine(True, 1, 2.0**36)
    work = plan()
    shape = work.get_largest_pass(10**9)
    local, vllm = (
        choose_passes(msgspec.structs.replace(tiny, rollouts=each), work, shape, model, machine)[1]
        for each in (tiny.rollouts, rollouts)
    )
    assert vllm == local + 2.0**34


def test_the_shares_of_steps_with_long_pages_are_in_the_table(tmp_path):
    store = long_store(tmp_path / "store", 40, median=1000)
    tiny = load_preset("tiny_cpu", only=["sft"])
    shares, refused = [], []
    for max_tokens, long_pages in ((100_000, "shorten"), (700, "shorten"), (700, "skip")):
        model = msgspec.structs.replace(tiny.model, max_tokens=max_tokens, long_pages=long_pages)
        table, *lines = dry_run(msgspec.structs.replace(tiny, model=model), store, get_machine(MachineOptions()))
        assert isinstance(table, Table)
        shares.append([cell.value for cell in table.rows[0][6:10] if isinstance(cell, Estimate)])
        refused.append(any("refused" in str(line) for line in lines))
    assert shares[0][0] == shares[0][2] == shares[0][3] == 0
    assert shares[1][3] == 0 == shares[2][0]
    assert shares[2][3] == shares[1][0] > 0.1
    assert 1 > shares[0][1] >= shares[1][1] > shares[2][1] > 0.1  # no page has the input that some type into
    assert refused == [False, False, True]


def test_a_model_from_scratch_is_planned_with_the_tokenizer_of_its_run(tmp_path):
    write_demo_store(tmp_path / "store", 600, 0)
    tiny = load_preset("tiny_cpu", only=["sft"])
    config = msgspec.structs.replace(tiny, model=msgspec.structs.replace(tiny.model, max_tokens=800))
    table, *_ = dry_run(config, SessionStore.open(tmp_path / "store"), get_machine(MachineOptions()))
    assert isinstance(table, Table)
    assert [cell.value for cell in table.rows[0][6:10] if isinstance(cell, Estimate)] == [0, 1, 0, 0]


def test_a_model_that_the_hub_does_not_give_is_planned_by_its_shape(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    preset = load_preset("shop_r1_3b", only=["sft"])
    store = long_store(tmp_path / "store", 8, median=1000)
    table, hours, *lines = dry_run(preset, store, get_machine(MachineOptions(gpus=1)))
    assert isinstance(table, Table) and [row[0] for row in table.rows] == ["sft"]
    steps = [step for session in store.sessions() for step in session.steps]
    tokens = sum(len(step.page) for step in steps) / 2.89  # of one batch, which all sessions make
    assert table.rows[0][4] == pytest.approx(tokens, rel=0.1)
    assert any("2.89 characters each. Pages have 2.5 to 3.7" in str(line) for line in lines)
    assert isinstance(hours, Table) and [column.heading for column in hours.columns][1:] == ["A100", "H100", "H200"]
    a100, h100, h200 = (value for value in hours.rows[0][1:] if isinstance(value, float))
    assert a100 == pytest.approx(h100 * 989 / 312) and h100 == h200 > 0  # without sampling
    machine = get_machine(MachineOptions(gpus=8, gpu="l40s"))
    assert machine.process_bytes == 45 * GIB
    words = ["--preset", "shop_r1_3b", "--dry-run", "--machine.gpus", "8", "--machine.gpu=l40s", "--only", "sft"]
    _, hours, *lines = dry_run(preset, store, machine, words)
    assert isinstance(hours, Table) and [column.heading for column in hours.columns][1:] == ["L40S"]
    assert hours.rows[0][1] == pytest.approx(h100 * 989 / 362 / 8)
    launch = "torchrun --nproc-per-node 8 -m agents.llm_grpo.train --preset shop_r1_3b --only sft"
    assert f"Launch: {launch}" in lines


@pytest.mark.parametrize(
    ("model", "tokens", "figure"), [("3B", 32_768, "qwen3b.32k.tf32"), ("3B", 8192, "qwen3b.8k.all_kept")]
)
def test_hours_of_passes_are_those_that_a_gpu_took(model, tokens, figure):
    (measured,) = recorded("training_pass_gpu", f"training_gpu.{figure}.seconds")
    batch = [(trunk, trunk.replies) for trunk in sessions(tokens, 1)]
    work = Work(1, [batch], branch_tokens=8 * 40)
    estimated = estimate_seconds(*work.count_flops(FlopCounter(build_on_meta(qwen2_config(model), None))))
    assert 1 / 1.5 < estimated / measured < 1.5


@pytest.mark.parametrize(("model", "shape"), [("0.5B", "qwen0.5b"), ("3B", "qwen3b")])
def test_hours_of_sampling_are_those_that_a_gpu_took(model, shape):
    (tokens_per_s,) = recorded("rollouts_gpu", f"rollouts_gpu.{shape}.prompts.tf32.generate")
    reply = ReplySpan(1, 8192, 8192 + REPLY, TYPES[0])
    batch = [(SessionTokens(str(index), [0] * (8192 + REPLY), [reply]), [reply]) for index in range(64)]
    flops = FlopCounter(build_on_meta(qwen2_config(model), None))
    with_sampling, without = (
        estimate_seconds(*Work(1, [batch], branch_tokens=8 * 64, is_sampled=is_sampled).count_flops(flops))
        for is_sampled in (True, False)
    )
    assert 1 / 1.5 < (with_sampling - without) / (64 * 8 * 64 / tokens_per_s) < 1.5


def recorded(record: str, name: str) -> list[float]:
    """The figures of this name that were measured on an H200."""
    figures = read_json(DOCS.parent / f"benchmarks/results/speed/{record}.json")
    return [figure["value"] for figure in figures if figure["name"] == name]


def test_the_docs_have_command_lines_for_one_gpu_and_for_several():
    assert {"torchrun", "shop-r1"} <= {words[0] for words in documented()}


@pytest.mark.parametrize("words", [*documented()], ids=" ".join)
def test_a_documented_command_line_fits(words):
    gpus = next((words[words.index(flag) + 1] for flag in LAUNCHES if flag in words), 1)
    own = words[words.index("--preset") :]
    if "--dry-run" in own:
        own = own[: own.index("--dry-run")]
    machine = get_machine(MachineOptions(gpus=int(gpus), gpu_gib=GPUS.get(own[1], 80)))
    needed = needed_bytes(own, machine)
    print(*(f"{each / GIB:.1f} GiB" for each in needed), sep="; ")
    assert max(needed) <= 0.9 * machine.process_bytes


@pytest.mark.long
@pytest.mark.parametrize("preset", GPU_PRESETS)
def test_every_preset_for_gpus_fits_one_gpu_or_eight(preset):
    machines = [get_machine(MachineOptions(gpus=gpus, gpu_gib=80)) for gpus in (1, 8)]
    shorter = [
        flag
        for key in ("model.max-tokens", "sft.max-batch-tokens", "grpo.max-batch-tokens")
        for flag in (f"--{key}", "49152")
    ]
    flags = shorter if preset == "customer_r1_7b" else []
    needed = [max(needed_bytes(["--preset", preset, *flags], machine)) for machine in machines]
    assert any(each <= 0.9 * machine.process_bytes for each, machine in zip(needed, machines, strict=True))
