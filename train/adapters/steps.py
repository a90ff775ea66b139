"""Writes steps for other trainers: rows of a parquet file, and the order of our batches; scores their replies.

    steps ─► step_rows ─► train.parquet        one row for each ⟨context, next action⟩ pair, as chat messages
    plan  ─► write_order ─► train.order.json   the rows of our batches, one after the other (train/sampler.py)

    reply ─► score_completion ─► compute_score for verl, and the reward functions for TRL

The columns are those of verl. TRL's trainer reads the same file (train/adapters/trl.py).
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, count, islice
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from replay_sessions.foundation.durable_files import replace_file, replacing
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Action, Session
from shop_env.observation import ContextConfig, ObservedSession
from shop_env.prompts import PromptConfig, render_prompt
from shop_env.replies import Extraction, Reply, parse_reply
from shop_env.reward import RewardBreakdown, RewardConfig, score_reply
from shop_env.reward.matching import is_exact
from shop_env.reward.score import TERM_NAMES
from shop_env.versions import SCORING_VERSION
from train.chat_template import chat_messages
from train.grpo.config import GrpoConfig
from train.grpo.trainer import grpo_plan
from train.sampler import StepPlan
from train.tokens import LongPages, SessionTokens, fit_prompt

SOURCE = "shop_r1"
ROWS_PER_GROUP = 64


_MESSAGE = pa.struct({"role": "string", "content": "large_string"})
_EXTRA_INFO = {"index": "int64", "split": "string", "session_id": "string", "step": "int64", "scoring": "string"}
_COLUMNS = pa.schema(
    {
        "data_source": "string",
        "prompt": pa.large_list(_MESSAGE),
        "ability": "string",
        "reward_model": pa.struct({"style": "string", "ground_truth": "string"}),
        "extra_info": pa.struct(_EXTRA_INFO),
    }
)


class Scoring(Config):
    """The options for scoring the replies to a row, and the version of scoring; rows of version 2 do not name it."""

    reward: RewardConfig
    extraction: Extraction = "strict"
    version: int = 2


def step_rows(
    session_of: Callable[[str], Session],
    tokenizer: Any,
    trunks: Sequence[SessionTokens],
    context: ContextConfig,
    prompt: PromptConfig,
    reward: RewardConfig,
    *,
    split: str,
    max_prompt_tokens: int,
    personas: Mapping[str, str] | None,
    long_pages: LongPages,
    extraction: Extraction,
) -> Iterator[dict[str, Any]]:
    """Yields the steps of `trunks`, trunk after trunk, as numbered rows.

    A row has the prompt as chat messages (with a note in place of pages that do not fit), the logged action, and the
    options for scoring its replies as JSON.

    Args:
        session_of: Returns the session of an id.
        tokenizer: The tokenizer, which determines whether pages fit.
        trunks: The steps, as the replies of trunks.
        context: The part of the session that an observation shows.
        prompt: The form of the prompt.
        reward: The configuration of the reward.
        split: The name of the split, for the rows.
        max_prompt_tokens: The largest number of tokens of a prompt.
        personas: The texts of the users' personas.
        long_pages: The treatment of steps with a page that is too long.
        extraction: The way to parse replies (shop_env.replies.extraction_of).
    """
    scoring = msgspec.json.encode(Scoring(reward=reward, extraction=extraction, version=SCORING_VERSION)).decode()
    indices = count()
    for trunk in trunks:
        observed = ObservedSession(session_of(trunk.session_id), context, personas)
        for reply in trunk.replies:
            observation = observed.at(reply.step_index)
            fitted = fit_prompt(tokenizer, observation, prompt, max_prompt_tokens, long_pages, context)
            assert fitted is not None, "steps that do not fit are in no trunk"
            messages = chat_messages(tokenizer, render_prompt(fitted.observation, prompt))
            yield {
                "data_source": SOURCE,
                "prompt": [dict(message) for message in messages],
                "ability": "shopping",
                "reward_model": {"style": "rule", "ground_truth": msgspec.json.encode(reply.action).decode()},
                "extra_info": {
                    "index": next(indices),
                    "split": split,
                    "session_id": trunk.session_id,
                    "step": reply.step_index,
                    "scoring": scoring,
                },
            }


def write_rows(path: Path, rows: Iterator[dict[str, Any]], number: int) -> None:
    """Writes `number` rows to a parquet file, completely or not at all."""
    with (
        replacing(path) as partial,
        progress_bar(f"writing {path.name}", number) as advance,
        pq.ParquetWriter(partial, _COLUMNS, compression="zstd") as file,
    ):
        while group := list(islice(rows, ROWS_PER_GROUP)):
            file.write_table(pa.Table.from_pylist(group, _COLUMNS))
            advance(len(group))


def score_completion(
    text: str, ground_truth: str, scoring: str, self_certainty: float | None = None
) -> tuple[RewardBreakdown, dict[str, float]]:
    """Scores a reply.

    Args:
        text: The reply.
        ground_truth: The column of the row with the logged action, as JSON.
        scoring: The column with the options for scoring (Scoring), as JSON.
        self_certainty: s(r) of the reply. If None, it does not count.

    Returns:
        The reward, and metrics: the terms of the reward, `exact_match` and `readable`.

    Raises:
        BadConfig: The row was written under another version of scoring.
    """
    logged = msgspec.json.decode(ground_truth, type=Action)
    config = msgspec.json.decode(scoring, type=Scoring)
    if config.version != SCORING_VERSION:
        raise BadConfig(
            f"the rows are to be scored by earlier rules (scoring version {config.version}; this shop-r1 has "
            f"{SCORING_VERSION}, and CHANGELOG.md says what changed): write them again by --for-verl or --for-trl."
        )
    reply = parse_reply(text, config.extraction)
    breakdown = score_reply(reply, logged, config.reward, self_certainty=self_certainty)
    metrics: dict[str, float] = {term: getattr(breakdown, term) for term in TERM_NAMES}
    metrics["exact_match"] = float(is_exact(reply, logged))
    metrics["readable"] = float(isinstance(reply, Reply))
    return breakdown, metrics


def order_file(rows: Path) -> Path:
    """Returns the path of the file with the order of the rows of another file."""
    return rows.with_suffix(".order.json")


def write_order(rows: Path, trunks: Sequence[SessionTokens], config: GrpoConfig, seed: int) -> None:
    """Writes the row numbers of our batches, batch after batch, to the order file of `rows`.

    Args:
        rows: The file with the steps of `trunks`.
        trunks: The result of train.grpo.trainer.scored_trunks.
        config: The configuration of GRPO.
        seed: The seed of the run.

    Raises:
        BadConfig: Batches are made of whole sessions, which other trainers do not support.
    """
    plan, size = grpo_plan(trunks, config, seed), steps_per_batch(config)
    assert isinstance(plan, StepPlan)
    first = [0, *accumulate(len(trunk.replies) for trunk in trunks)]
    order = [first[trunk] + position for trunk, position in plan.pairs(config.total_steps * size)]
    replace_file(order_file(rows), json.dumps(order) + "\n")


def map_options(file: str, **ours: object) -> dict[str, Any]:
    """Reads the options of another trainer from a TOML file beside this module.

    Its table `fixed` has the options that are the same for every run, `ours` those that equal a key of our
    configuration.

    Args:
        file: The name of the file.
        ours: The tables of our configuration.
    """
    tables: dict[str, dict[str, Any]] = msgspec.toml.decode(Path(__file__).with_name(file).read_bytes())
    of_run = SimpleNamespace(**ours)
    return tables["fixed"] | {option: attrgetter(key)(of_run) for option, key in tables["ours"].items()}


def steps_per_batch(config: GrpoConfig) -> int:
    """Returns the number of ⟨context, next action⟩ pairs in a batch.

    Raises:
        BadConfig: Batches are made of whole sessions.
    """
    if config.steps_per_batch is None:
        raise BadConfig(
            "other trainers take batches of single steps, and grpo.steps_per_batch is not given; the papers have 64: "
            "--grpo.steps-per-batch 64."
        )
    return config.steps_per_batch
