"""The command lines of the docs fit the GPUs that they are for, with a tenth to spare; what phases take by the plan.

Models are Qwen2.5's shapes; sessions fill the context: 512 of them, with 7 steps each.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from agents.llm_grpo.dry_run import GIB, counter_for, get_machine
from agents.llm_grpo.options import MachineOptions, prepare
from agents.llm_grpo.plan import Machine, PhasePlan, Planner
from agents.llm_grpo.presets import preset_names
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit
from tests.train.conftest import make_tiny
from tests.train.flight import qwen2_config
from train.flops import ModelSize
from train.memory import MemoryParts
from train.session_tree import SessionTree, pack
from train.tokens import ReplySpan, SessionTokens

DOCS = Path(__file__).parents[3] / "docs"
SESSIONS, STEPS, REPLY = 512, 7, 60
TYPES: list[Action] = [Click(name="a"), TypeAndSubmit(name="a", text="b"), Terminate()]
COMMANDS = re.compile(r"^(?:torchrun|accelerate launch|shop-r1 train) (?:.*\\\n)*.*", re.MULTILINE)
GPUS = {"one_gpu": 24}  # GiB; the others are for 80
MACHINES = ((1, 24), (1, 80), (4, 80), (8, 80))
GPU_PRESETS = [name for name in preset_names() if name != "trial" and not name.endswith("_cpu")]
SHARDED = ("customer_r1_7b",)
OF_SHARDED = ("--model.sharded", "--model.autocast-residual")  # as in docs/your_gpu.md


def sessions(length: int) -> list[SessionTokens]:
    ends = [length * (step + 1) // STEPS for step in range(STEPS)]
    return [
        SessionTokens(
            str(number),
            [number] + [0] * (length - 1),
            [ReplySpan(step, end - REPLY, end, TYPES[(number + step) % 3]) for step, end in enumerate(ends)],
        )
        for number in range(SESSIONS)
    ]


@pytest.fixture(scope="module")
def count() -> Iterator[Callable[..., MemoryParts]]:
    """Counts memory, once for passes of the same size."""
    counted: dict[str, MemoryParts] = {}
    with counter_for(get_machine(MachineOptions(gpus=1))) as count_anew:

        def count(config: Any, packs: Any, options: Any, rollouts: Any) -> MemoryParts:
            (pack,) = packs
            key = repr((config.hidden_size, pack.input_ids.shape, len(pack.reply_lengths), options, rollouts))
            if key not in counted:
                counted[key] = count_anew(config, packs, options, rollouts)
            return counted[key]

        yield count


def plan(count: Callable[..., MemoryParts], words: Sequence[str], gpus: int, gib: int) -> tuple[bool, list[PhasePlan]]:
    """Whether a run fits, and the plans of its phases of SFT and GRPO."""
    machine = get_machine(MachineOptions(gpus=gpus, gpu_gib=gib))
    _, _, config = prepare([*words, "--dry-run", "--machine.gpus", str(gpus)])
    size = re.search(r"-([\d.]+B)-", str(config.model.path))
    assert size, config.model.path
    planner = Planner(config, qwen2_config(size[1]), make_tiny().tokenizer, machine, count)
    names = [name for name, phase in config.phases.items() if phase.same_time_as is None]
    plans = [planner.plan(name, sessions(config.prompt_tokens_of(name))) for name in names]
    return all(each.fits(machine) for each in plans), plans


def documented() -> Iterator[tuple[str, ...]]:
    """The words of every documented command that trains by a preset for GPUs, its launcher's included."""
    for page in sorted(DOCS.glob("*.md")):
        for call in COMMANDS.findall(page.read_text(encoding="utf-8")):
            words = tuple(shlex.split(call.replace("\\\n", " "), comments=True))
            is_export = any(word.startswith("--for-") for word in words)
            if "--preset" in words and words[words.index("--preset") + 1] in GPU_PRESETS and not is_export:
                yield words


def small(*words: str, processes: int = 1) -> PhasePlan:
    """Of GRPO, or another objective in its place, by the preset tiny_cpu on hypothetical processors."""
    machine = Machine("", "cpu", processes, 2**33, MachineOptions())
    tiny = make_tiny()
    _, _, config = prepare(["--dry-run", "--grpo.steps", "2", "--grpo.sessions-per-batch", "4", *words])
    return Planner(config, tiny.model.config, tiny.tokenizer, machine).plan("shop_r1", sessions(490)[:8])


def test_objectives_take_what_they_hold_and_pass() -> None:
    grpo = small()
    assert min(grpo.memory.reference, grpo.memory.reading, grpo.memory.sampling) > 0
    logged = small("--phases.shop-r1.method", "grpo_with_logged")
    assert logged.batch_tokens == grpo.batch_tokens + 4 * (STEPS - 1) * REPLY  # a reply more to each scored step
    weighted = small("--phases.shop-r1.method", "weighted_sft")
    assert weighted.memory.reference == weighted.memory.reading == weighted.memory.sampling == 0
    assert 0 < (weighted.step_s or 0) < (grpo.step_s or 0) / 2


def test_vllm_takes_its_share_of_the_memory_and_the_local_engine_then_takes_none() -> None:
    plan = small("--rollouts.engine", "vllm", "--rollouts.gpu-memory-utilization", "0.25")
    assert plan.reserved == 2**31 and plan.needed == plan.memory.most + 2**31
    assert plan.memory.reading == plan.memory.sampling == 0 < plan.memory.reference


def test_a_sleeping_vllm_takes_its_share_in_turns_with_the_passes() -> None:
    words = ("--rollouts.engine", "vllm", "--rollouts.gpu-memory-utilization")
    small_share, large_share = (small(*words, share, "--rollouts.vllm-sleeps") for share in ("0.001", "0.5"))
    assert small_share.needed == small_share.memory.most
    assert large_share.needed == large_share.memory.permanent + 2**32


def test_two_processes_take_half_the_time_of_passes_on_alike_sessions() -> None:
    one, two = small("--grpo.steps", "1"), small("--grpo.steps", "1", processes=2)
    assert one.batch_tokens == two.batch_tokens
    assert 0.5 * (one.step_s or 0) <= (two.step_s or 0) < (one.step_s or 0)


def test_flops_of_a_forward_pass_are_those_that_torch_counts() -> None:
    """But for attention to later tokens, which torch's plain attention computes and masks."""
    tiny, tokens = make_tiny(), 96
    size = ModelSize.of(tiny.model.config)
    model = tiny.plain_model()
    model.set_attn_implementation("eager")
    with FlopCounterMode(display=False) as counter:
        model(input_ids=torch.zeros(1, tokens, dtype=torch.long))
    masked = 4 * size.attention * tokens * (tokens - 1) / 2
    found = size.prefill_flops([tokens]) + 2 * size.head * (tokens - 1)  # the model predicts behind every token
    assert counter.get_total_flops() - masked == pytest.approx(found, rel=0.01)
    unpacked = size.forward_flops(pack([SessionTree([0] * tokens, [tokens], [[[0]]])]))
    assert unpacked == pytest.approx(size.prefill_flops([tokens + 1]), rel=0.001)


def test_the_docs_have_command_lines_for_one_gpu_and_for_several() -> None:
    launchers = [words[0] for words in documented()]
    assert {"torchrun", "accelerate", "shop-r1"} <= set(launchers)


@pytest.mark.long
@pytest.mark.parametrize("words", [*documented()], ids=" ".join)
def test_a_documented_command_line_fits(words: tuple[str, ...], count: Callable[..., MemoryParts]) -> None:
    gpus = next((words[words.index(flag) + 1] for flag in ("--nproc-per-node", "--num_processes") if flag in words), 1)
    own = words[words.index("--preset") :]
    if "--dry-run" in own:
        own = own[: own.index("--dry-run")]
    does_fit, plans = plan(count, own, int(gpus), GPUS.get(own[1], 80))
    print(*(f"{each.needed / GIB:.1f} GiB, {each.passes}" for each in plans), sep="; ")
    assert does_fit


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("preset", GPU_PRESETS)
def test_every_preset_for_gpus_fits_one_of_the_machines(preset: str, count: Callable[..., MemoryParts]) -> None:
    """`-s` prints the GiB that a GPU needs and the hours of SFT and GRPO; a dash where they do not fit."""
    cells = row(count, preset)
    print(f"| `{preset}` | {' | '.join(cells)} |")
    assert set(cells) != {"—"}


def row(count: Callable[..., MemoryParts], preset: str) -> list[str]:
    cells = []
    for gpus, gib in MACHINES:
        more = OF_SHARDED if preset in SHARDED and gpus > 1 else ()
        does_fit, plans = plan(count, ("--preset", preset, *more), gpus, gib)
        hours = [each.steps * (each.step_s or 0) / 3600 for each in plans]
        numbers = " + ".join(f"{number:.2g}" if number < 10 else f"{number:.0f}" for number in hours)
        needed = max(each.needed for each in plans) / GIB
        cells.append(f"{needed:.0f} GiB, {numbers} h" if does_fit else "—")
    return cells
