"""What `shop-r1 train` does with its options (options.py): training ─► evaluation, or an export.

`--for-trl|--for-verl PHASE` write what another trainer needs to train a phase of GRPO:

store ─► the phase's steps in its context ─► train.parquet, its order ─┬─► trl.json ─► accelerate launch
                                                                       └─► validation.parquet, launch.sh ─► verl
"""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import msgspec
import torch
from rich.console import Console, RenderableType

from agents.llm_grpo.config import PhaseConfig, TrainConfig
from agents.llm_grpo.data import RationaleCoverage, TrainingData, rationale_coverage
from agents.llm_grpo.dry_run import dry_run, get_machine
from agents.llm_grpo.evaluation import evaluate_run, find_agent
from agents.llm_grpo.options import PROGRAM, RunOptions, without_dry_run
from agents.llm_grpo.presets import check_store, has_begun, record_extension
from agents.llm_grpo.training_run import TrainingRun
from replay_sessions.foundation.durable_files import replace_file, replace_json
from replay_sessions.foundation.errors import BadConfig, did_you_mean
from replay_sessions.foundation.locks import TRAINING_LOCK, working_alone_in
from replay_sessions.foundation.provenance import provenance
from replay_sessions.schema import Terminate
from replay_sessions.store import SessionStore
from shop_env.observation import persona_texts
from shop_env.reward import best_breakdown
from shop_env.reward.score import LOG_LIKELIHOOD
from train.adapters.steps import step_rows, write_order, write_rows
from train.adapters.trl import RUN_FILE, trl_run
from train.adapters.verl import overrides
from train.grpo.config import GrpoConfig
from train.grpo.trainer import scored_trunks
from train.models import load_tokenizer
from train.objectives import load_objective
from train.process_group import process_group
from train.run_log import NoLog, RunLog, load_trackers
from train.tokens import tokenize_session

LAUNCH = """\
#!/bin/sh
# {title}
# Further arguments override these, for example trainer.nnodes=4. By Megatron: --config-name=ppo_megatron_trainer
# actor_rollout_ref.actor.strategy=megatron, and its own sizes (docs/your_gpu.md).
exec python -m verl.trainer.main_ppo \\
{words} \\
  "$@"
"""


def export_phase(
    config: TrainConfig, store: SessionStore, trainer: Literal["trl", "verl"], name: str, folder: Path
) -> Iterator[str]:
    """Writes a phase for another trainer into `folder`, and yields a line for each file.

    Raises:
        BadConfig: No such phase of GRPO, a tiny model, or numbers that the trainer has no counterpart of.
    """
    phase, model = config.phases.get(name), config.model
    if phase is None or phase.method != "grpo" or phase.grpo is None:
        names = [other for other, one in config.phases.items() if one.method == "grpo"]
        raise BadConfig(f"--for-{trainer} {name}: there is no such phase of GRPO. {did_you_mean(name, names)}")
    if model.path is None:
        raise BadConfig(f"--for-{trainer} needs a model that others can load; give --model.path.")
    grpo, seed = phase.grpo, config.seed + phase.seed
    if trainer == "trl":
        run = trl_run(grpo, model, folder, seed=seed)
        yield from _write_steps(config, store, phase, grpo, folder)
        replace_json(folder / RUN_FILE, run)
        yield f"{folder / RUN_FILE}: the phase's numbers by TRL's names"
        yield f"To train, with TRL installed: accelerate launch -m train.adapters.trl_trainer {folder}"
    else:
        folder = folder.resolve()  # Ray's workers run in another folder
        words = overrides(grpo, model, folder, seed=seed)
        yield from _write_steps(config, store, phase, grpo, folder, validation=True)
        title = f"{phase.label} of {config.store} in verl 0.9, as `shop-r1 train` would train it."
        launch = folder / "launch.sh"
        lines = " \\\n".join(f"  {_word(*each)}" for each in words.items())
        replace_file(launch, LAUNCH.format(title=title, words=lines))
        launch.chmod(0o755)
        yield f"{launch}: starts it, with verl installed and a Ray cluster or one machine's GPUs"
    if phase.start != "model":
        yield (
            f"'{name}' starts from '{phase.start}', and --model.path is what it begins with here: give a checkpoint "
            f"of '{phase.start}' there."
        )


def _word(key: str, value: Any) -> str:
    return shlex.quote(f"{key}={str(value).lower() if isinstance(value, bool) else value}")


def _write_steps(
    config: TrainConfig,
    store: SessionStore,
    phase: PhaseConfig,
    grpo: GrpoConfig,
    folder: Path,
    *,
    validation: bool = False,
) -> Iterator[str]:
    """Writes the steps of a phase as rows.

    Raises:
        BadConfig: Nothing to learn from or to validate on, or batches of whole sessions.
    """
    tokenizer = load_tokenizer(str(config.model.path))
    context, limit = phase.context, config.model.max_prompt_tokens
    lines: list[str] = []
    data = TrainingData(config, store, folder / "tokens", lines.append)
    splits = {"train": scored_trunks(data.trunks(phase, tokenizer))}
    yield from lines
    write_order(folder / "train.parquet", splits["train"], grpo, config.seed + phase.seed)
    personas = persona_texts(store, context)
    if validation:
        rule = phase.validation
        sessions = [store.session(session_id) for session_id in store.session_ids("validation")[: rule.sessions]]
        if all(len(session.steps) < 2 for session in sessions):
            raise BadConfig(
                f"'{store.path}' has no validation session to predict, and the trainer asks for some; split it anew."
            )
        splits["validation"] = scored_trunks(
            [
                trunk
                for session in sessions
                for trunk in tokenize_session(tokenizer, session, context, config.prompt, limit, personas)
            ]
        )
    for split, trunks in splits.items():
        rows = step_rows(
            store.session,
            tokenizer,
            trunks,
            context,
            config.prompt,
            phase.get_reward(config.reward_config),
            split=split,
            max_prompt_tokens=limit,
            personas=personas,
        )
        count = sum(len(trunk.replies) for trunk in trunks)
        write_rows(folder / f"{split}.parquet", rows, count)
        yield f"{folder / f'{split}.parquet'}: {count:,} steps"


def run(words: Sequence[str], parse: Callable[[], tuple[RunOptions, Path, TrainConfig]]) -> int:
    """Runs the command with the words after its name, which `parse` turns into options and configuration."""
    with process_group() as (ranks, advise), ExitStack() as open_while_training:
        options, folder, config = parse()
        for name in config.evaluation.agents:
            find_agent(name)  # a misspelt or missing agent is reported before hours of work, not after
        config.evaluation_config.check_functions()
        for phase in config.phases.values():
            reward = phase.get_reward(config.reward_config)
            if isinstance(phase.numbers, GrpoConfig):
                load_objective(phase.method, reward.kind)
            if reward != LOG_LIKELIHOOD:  # which no text is scored by
                best_breakdown(Terminate(), reward)
        if config.threads:
            torch.set_num_threads(config.threads)
        store = SessionStore.open(config.store)
        if options.dry_run:
            return _print(_dry_run(config, store, options, words)) if ranks.is_main else 0
        if options.for_verl is not None:
            return _print(export_phase(config, store, "verl", options.for_verl, folder))
        if options.for_trl is not None:
            return _print(export_phase(config, store, "trl", options.for_trl, folder))
        trackers = load_trackers(config.watch)
        advise(f"To go on from the last saved state, launch any number of processes with --resume {folder}")
        ranks.barrier()  # from here on no other looks whether there is a run
        log: RunLog = NoLog()
        coverage: RationaleCoverage | None = None
        if ranks.is_main:
            open_while_training.enter_context(working_alone_in(folder, TRAINING_LOCK))
            coverage = begin_run(folder, config, store)
            log = RunLog(folder, trackers)
        with log:  # its bars end before the table
            if coverage is not None:
                log.info(str(coverage))
            training = TrainingRun(config, store, folder, log, ranks)
            training.train()
        evaluate_run(config, store, folder, ranks, training.results)
        return 0


def _dry_run(
    config: TrainConfig, store: SessionStore, options: RunOptions, words: Sequence[str]
) -> Iterator[RenderableType]:
    rationales = rationale_coverage(store)
    yield from dry_run(config, store, get_machine(options.machine))
    yield ""
    yield rationales.problem(config) or str(rationales)
    yield f"To train: {PROGRAM} {shlex.join(without_dry_run(words))}"


def _print(lines: Iterable[RenderableType]) -> int:
    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(line, markup=False)
    return 0


def begin_run(folder: Path, config: TrainConfig, store: SessionStore) -> RationaleCoverage | None:
    """Writes run.json of a new or extended run; of a new one, returns how many training steps have a rationale.

    Raises:
        BadConfig: They are too few for its reward.
    """
    if has_begun(folder):
        check_store(folder, store)
        record_extension(folder, config, store)
        return None
    coverage = rationale_coverage(store)
    if problem := coverage.problem(config):
        raise BadConfig(problem)
    folder.mkdir(parents=True, exist_ok=True)
    record = provenance(msgspec.to_builtins(config), store=store, seed=config.seed)
    replace_json(folder / "run.json", record | {"rationales": coverage._asdict()})
    return coverage
