"""The rows of a run's last table: baselines, each phase's policy, the oracle where it is known, all on the same steps.

checkpoint ─► agent ─► evaluate ─► records, kept in RUN/steps/ROW.jsonl

A step is asked about once: a run that was stopped here goes on within the row, by the answers that each process kept as
they came (ROW.jsonl.asked0of1, gone once all rows are whole). Reports read the records.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from agents.kept_replies import KeptReplies
from agents.llm_grpo.agent import PolicyAgent
from agents.llm_grpo.row_names import agent_file_name, decodings, decodings_of, record_file
from agents.llm_grpo.shared_evaluation import evaluate_shared
from agents.llm_grpo.training_run import TrainingRun
from agents.protocol import Agent
from agents.registry import make_agent, parse_spec
from agents.scripted.oracle import OracleAgent, is_demo_store
from replay_sessions.store.durable_files import replace_file
from shop_env.context import ContextConfig
from shop_env.metrics import StepRecord

__all__ = ["evaluated_rows", "record_files"]


def evaluated_rows(run: TrainingRun) -> dict[str, list[StepRecord]]:
    """The records of every row by its label, in the order of the table."""
    records = {row.label: _records(run, row) for row in _rows(run)}
    if run.ranks.writes:
        for asked in run.folder.glob("steps/*.asked*"):  # all rows are whole
            asked.unlink()
    return records


def record_files(run: TrainingRun) -> dict[str, str]:
    """Where the records of each row lie in the run's folder, by its label: reports find them by this."""
    return {row.label: row.file for row in _rows(run)}


@dataclass(frozen=True)
class _Row:
    """A row of the table and whom to ask for it."""

    name: str
    label: str
    make: Callable[[], Agent]
    context: ContextConfig

    @property
    def file(self) -> str:
        return record_file(self.name)


def _rows(run: TrainingRun) -> Iterator[_Row]:
    config = run.config
    for agent in config.evaluation.agents:
        make_agent_of_store = partial(make_agent, agent, store=run.store)
        yield _Row(agent_file_name(agent), parse_spec(agent).label, make_agent_of_store, config.context)
    for name, phase in config.phases.items():
        for decoding in decodings_of(config, name):
            make = partial(PolicyAgent, str(run.checkpoint(name)), temperature=decoding.temperature)
            yield _Row(decoding.file_name(name), decoding.label(phase.label), make, config.context_of(name))
    if is_demo_store(run.store):
        for decoding in decodings(config.evaluation):
            make_oracle = partial(OracleAgent, decoding.temperature)
            yield _Row(decoding.file_name("oracle"), decoding.label("oracle"), make_oracle, config.context)


def _records(run: TrainingRun, row: _Row) -> list[StepRecord]:
    file = run.folder / row.file
    if run.ranks.first(file.exists):
        return msgspec.json.Decoder(StepRecord).decode_lines(file.read_bytes())
    config = run.config
    asked_with = {"row": row.name, "store": run.store.fingerprint, "seed": config.seed}
    with KeptReplies(Path(f"{file}.asked{run.ranks.rank}of{run.ranks.count}"), asked_with) as kept:
        records = evaluate_shared(
            run.ranks,
            row.make(),
            run.store,
            config.evaluation.split,
            context=row.context,
            reward=config.reward_config,
            seed=config.seed,
            max_sessions=config.evaluation.sessions,
            progress=row.label if run.ranks.writes else None,
            kept=kept,
        )
    if run.ranks.writes:
        replace_file(file, msgspec.json.Encoder().encode_lines(records))
    return records
