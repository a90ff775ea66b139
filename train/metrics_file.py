"""Reads and writes metrics.jsonl, the metrics of a run, with one JSON object per line for each step.

    {"phase": "sft", "step": 1, "loss": 6.4, "lr": 0.0001, …}

A step appears once. Half a line or NUL bytes at the end, after a kill or a power cut, are dropped when the run
resumes. The file is only appended to, or replaced as a whole.

The metrics of replies, from `action_reward` to `groups`, are over all sampled replies, before groups are filtered out.
Those from `kl` to `importance` are over the used groups only, because only these are passed in training.

| metric | unit | meaning | in |
|---|---|---|---|
| `phase`, `step` | | the phase's name; its optimizer steps (SFT) or batches (GRPO) so far, from 1 | all |
| `loss` | nats per token; `candidate_likelihood`: nats per step; GRPO: none | SFT: mean negative log-likelihood of the replies' tokens; `expected_reward`: KL term minus expected reward; GRPO: the clipped objective's loss with the KL term, of the last update on the batch | all |
| `lr` | none | learning rate of the step | all |
| `grad_norm` | none | length of the gradient before clipping | all |
| `skipped` | 1 | in place of `grad_norm`: the gradient was not finite, and the step changed no weight | all |
| `tokens` | tokens | that went through a model in the whole step, sampling and reference included | all |
| `flops` | FLOPs | of the same, counted from shapes (train/flops.py): a backward pass is two forward ones | all |
| `seconds` | s | the step's duration, validation not included | all |
| `tokens_per_s` | tokens per s | `tokens` / `seconds` | all |
| `gpu_gib` | GiB | most memory of this process's GPU that tensors held during the step | all, on a GPU |
| `validation_exact` | share, 0–1 | exact match of sampled replies on the validation sessions, at the steps that are validated | all |
| `validation_nll` | nats | mean negative log-likelihood of a logged reply of the validation sessions, all its tokens together | SFT |
| `action_reward`, `action_reward_std` | points | reward of a reply's text, without self-certainty: mean and standard deviation; `expected_reward`: the expected reward | GRPO |
| `reward_TERM`, `reward_TERM_std` | points | the same of each term of the reward: `format`, `action_type`, `name_present`, `text_present`, `name_similarity`, `text_similarity`, `exact`, `wrong_click`, `own` | GRPO |
| `exact` | share, 0–1 | replies that are the logged action, for `expected_reward` its probability; steps without a logged target are excluded | GRPO |
| `malformed`, `cut` | share, 0–1 | replies that cannot be read: ended by the policy itself, or by `max_new_tokens` | GRPO |
| `no_rationale` | share, 0–1 | replies that can be read and have no rationale | GRPO |
| `sampled_TYPE`, `logged_TYPE` | share, 0–1 | actions of each type (`click`, `type_and_submit`, `terminate`, `scroll`): of the readable replies, of the sampled steps | GRPO |
| `sampled_commonest`, `logged_commonest` | share, 0–1 | the most frequent single action, all fields included | GRPO |
| `reply_tokens` | tokens | mean length of a reply | GRPO |
| `groups`, `groups_used` | groups | sampled steps, and those of them that are trained on | GRPO |
| `packed_share` | ratio | tokens in training passes over those of the same replies as rows, each behind its whole prompt | GRPO |
| `kl` | nats per token; `expected_reward`, here and below: nats per step | KL to the frozen reference, of the last update | GRPO |
| `entropy` | nats per token | of the policy, of the last update | GRPO |
| `self_certainty`, `self_certainty_std` | nats | s(r) of the readable replies, as it is rewarded: mean and standard deviation | GRPO |
| `log_likelihood`, `log_likelihood_std` | nats per token | with the reward of that name, of all replies; their `action_reward` is 0 | GRPO |
| `sampler_trainer_logprob_gap` | nats per token | mean of abs(log π − log π_sampled) before any update | GRPO |
| `importance` | ratio | mean importance-sampling weight; 1: no correction | GRPO |
"""  # noqa: E501 - a table row is a line

import json
import os
from pathlib import Path
from typing import Any

import msgspec

from replay_sessions.foundation.durable_files import replace_file

METRICS_FILE = "metrics.jsonl"


class Row(msgspec.Struct, frozen=True):
    """The metrics of one step of a phase, counted from 1."""

    phase: str
    step: int
    metrics: dict[str, float]


def read_metrics(path: Path) -> tuple[list[Row], int]:
    """Reads the rows of a file; returns them and the number of unreadable lines, which are skipped."""
    lines = path.read_bytes().splitlines()
    rows = [row for row in map(_row, lines) if row is not None]
    return rows, len(lines) - len(rows)


class MetricsFile:
    """The open metrics file of a run.

    Attributes:
        dropped: The number of unreadable lines that were removed on opening.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        rows, self.dropped = read_metrics(path) if path.exists() else ([], 0)
        if self.dropped:
            replace_file(path, "".join(map(_line, rows)))
        self._stream = path.open("a", encoding="utf-8")

    def append(self, row: Row) -> None:
        """Appends a row; `sync` makes it durable."""
        self._stream.write(_line(row))

    def sync(self) -> None:
        """Writes all rows to disk, and waits until they are durable."""
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def rows(self, phase: str) -> list[Row]:
        """Returns all rows of a phase, also those from before a stop."""
        self._stream.flush()
        return [row for row in read_metrics(self._path)[0] if row.phase == phase]

    def truncate(self, phase: str, last_step: int) -> None:
        """Removes the rows of a phase after step `last_step`."""
        self._stream.flush()
        rows, _ = read_metrics(self._path)
        remaining = [row for row in rows if row.phase != phase or row.step <= last_step]
        if len(remaining) == len(rows):
            return
        replace_file(self._path, "".join(map(_line, remaining)))
        self._stream.close()
        self._stream = self._path.open("a", encoding="utf-8")

    def close(self) -> None:
        """Syncs and closes the file."""
        self.sync()
        self._stream.close()


def _row(line: bytes) -> Row | None:
    try:
        table: dict[str, Any] = json.loads(line.decode())
        return Row(table.pop("phase"), table.pop("step"), table)
    except (ValueError, KeyError, AttributeError, TypeError):  # no JSON, or JSON that is no row
        return None


def _line(row: Row) -> str:
    return json.dumps({"phase": row.phase, "step": row.step, **row.metrics}) + "\n"
