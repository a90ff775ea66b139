"""Our steps as other trainers take them: rows of a parquet file, and the order in which our batches would take them.

    steps ─► step_rows ─► train.parquet        one row for each ⟨context, next action⟩ pair, as chat messages
    plan  ─► write_order ─► train.order.json   which row is when, batch after batch (train/sampler.py)

The columns are verl's, whose launch line names the file; TRL's trainer reads the same file (train/adapters/trl.py).
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from replay_sessions.errors import BadConfig
from replay_sessions.progress_bar import progress_bar
from replay_sessions.schema import Session
from replay_sessions.store.durable_files import replace_file, replacing
from shop_env.context import ContextConfig
from shop_env.observation import ObservedSession
from shop_env.prompts import PromptConfig
from shop_env.reward import RewardConfig
from train.grpo.config import GrpoConfig
from train.grpo.trainer import grpo_plan
from train.sampler import StepPlan
from train.tokens import SessionTokens, fitted_messages

__all__ = ["SOURCE", "StepRow", "order_file", "step_rows", "steps_per_batch", "write_order", "write_rows"]

SOURCE = "shop_r1"
ROWS_A_GROUP = 64


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """A step as other trainers read it.

    Attributes:
        prompt: Chat messages; those of pages that do not fit say so.
        ground_truth: The logged action, as JSON.
        reward: The numbers of its reward, as JSON.
    """

    session_id: str
    step: int
    prompt: list[dict[str, str]]
    ground_truth: str
    reward: str

    def columns(self, index: int, split: str) -> dict[str, Any]:
        """The row, numbered."""
        return {
            "data_source": SOURCE,
            "prompt": self.prompt,
            "ability": "shopping",
            "reward_model": {"style": "rule", "ground_truth": self.ground_truth},
            "extra_info": {
                "index": index,
                "split": split,
                "session_id": self.session_id,
                "step": self.step,
                "reward": self.reward,
            },
        }


_MESSAGE = pa.struct([("role", pa.string()), ("content", pa.large_string())])
_COLUMNS = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", pa.large_list(_MESSAGE)),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        (
            "extra_info",
            pa.struct(
                [
                    ("index", pa.int64()),
                    ("split", pa.string()),
                    ("session_id", pa.string()),
                    ("step", pa.int64()),
                    ("reward", pa.string()),
                ]
            ),
        ),
    ]
)


def step_rows(
    session_of: Callable[[str], Session],
    tokenizer: Any,
    trunks: Sequence[SessionTokens],
    context: ContextConfig,
    prompt: PromptConfig,
    reward: RewardConfig,
    *,
    max_prompt_tokens: int,
    personas: Mapping[str, str] | None = None,
) -> Iterator[StepRow]:
    """The steps that `trunks` hold, trunk after trunk, as they are asked about one by one."""
    numbers = msgspec.json.encode(reward).decode()
    for trunk in trunks:
        observed = ObservedSession(session_of(trunk.session_id), context, personas)
        for reply in trunk.replies:
            messages = fitted_messages(tokenizer, observed.at(reply.step_index), prompt, max_prompt_tokens)
            assert messages is not None, "steps that do not fit are in no trunk"
            yield StepRow(
                session_id=trunk.session_id,
                step=reply.step_index,
                prompt=[{"role": message["role"], "content": message["content"]} for message in messages],
                ground_truth=msgspec.json.encode(reply.action).decode(),
                reward=numbers,
            )


def write_rows(path: Path, rows: Iterator[StepRow], count: int, split: str) -> None:
    """Writes `count` rows as a parquet file, whole or not at all."""
    numbered = (row.columns(index, split) for index, row in enumerate(rows))
    with (
        replacing(path) as partial,
        progress_bar(f"writing {path.name}", count) as advance,
        pq.ParquetWriter(partial, _COLUMNS, compression="zstd") as file,
    ):
        while group := list(islice(numbered, ROWS_A_GROUP)):
            file.write_table(pa.Table.from_pylist(group, _COLUMNS))
            advance(len(group))


def order_file(rows: Path) -> Path:
    """Where the order stands in which the rows of a file are taken."""
    return rows.with_suffix(".order.json")


def write_order(rows: Path, trunks: Sequence[SessionTokens], config: GrpoConfig, seed: int) -> None:
    """Writes which row each pair of our own batches is, batch after batch.

    Args:
        rows: The file that holds the steps of `trunks`.
        trunks: As train.grpo.trainer.scored_trunks gives them.

    Raises:
        BadConfig: Batches are made of whole sessions, of which other trainers know nothing.
    """
    plan, size = grpo_plan(trunks, config, seed), steps_per_batch(config)
    assert isinstance(plan, StepPlan)
    first = [0, *accumulate(len(trunk.replies) for trunk in trunks)]
    order = [first[trunk] + place for trunk, place in plan.pairs(config.steps * size)]
    replace_file(order_file(rows), json.dumps(order) + "\n")


def steps_per_batch(config: GrpoConfig) -> int:
    """How many ⟨context, next action⟩ pairs make a batch.

    Raises:
        BadConfig: Batches are made of whole sessions.
    """
    if config.steps_per_batch is None:
        raise BadConfig(
            "other trainers take batches of single steps, and grpo.steps_per_batch is not given; the papers have 64: "
            "--grpo.steps-per-batch 64."
        )
    return config.steps_per_batch
