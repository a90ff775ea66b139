"""metrics.jsonl: the metrics of a run, one JSON object a line: {"phase", "step", and the metrics of that step}.

    {"phase": "sft", "step": 1, "loss": 6.4, "lr": 0.0001, …}

A step appears once. Half a line or NUL bytes at the end, after a kill or a power cut, are dropped when the run
resumes; the file is only ever appended to or replaced as a whole.

A policy has *collapsed* when it answers nearly everything with one type of action, or with one single action. That is
judged by several steps running, so that a batch with an odd mix does not count, and only where the shoppers acted
otherwise on the same steps: a log that is 97% clicks does not make a policy that clicks a collapsed one.

The metrics. Those of replies, from `action_reward` to `groups`, are over all sampled replies, before any group is
filtered out; those from `kl` to `importance`, over the groups used alone, since no other pass computes them.

| metric | unit | meaning | in |
|---|---|---|---|
| `phase`, `step` | | the phase's name; its optimizer steps (SFT) or batches (GRPO) so far, from 1 | all |
| `loss` | nats per token; GRPO: none | SFT: mean negative log-likelihood of the replies' tokens; GRPO: the clipped objective's loss with the KL term, of the last update on the batch | all |
| `lr` | none | learning rate of the step | all |
| `grad_norm` | none | length of the gradient before clipping | all |
| `tokens` | tokens | that went through a model in the whole step, sampling and reference included | all |
| `flops` | FLOPs | of the same, counted from shapes (train/flops.py): a backward pass is two forward ones | all |
| `seconds` | s | the step's duration, validation not included | all |
| `tokens_per_s` | tokens per s | `tokens` / `seconds` | all |
| `gpu_gib` | GiB | most memory of this process's GPU that tensors held during the step | all, on a GPU |
| `validation_exact` | share, 0–1 | exact match of sampled replies on the validation sessions, at the steps that are validated | all |
| `action_reward`, `action_reward_std` | points | reward of a reply's text, without self-certainty: mean and standard deviation | GRPO |
| `reward_TERM`, `reward_TERM_std` | points | the same of each term of the reward: `format`, `action_type`, `name_present`, `text_present`, `name_similarity`, `text_similarity`, `exact`, `wrong_click`, `own` | GRPO |
| `exact` | share, 0–1 | replies that are the logged action; steps without a logged target are excluded | GRPO |
| `malformed`, `cut` | share, 0–1 | replies that cannot be read: ended by the policy itself, or by `max_new_tokens` | GRPO |
| `no_rationale` | share, 0–1 | replies that can be read and have no rationale | GRPO |
| `sampled_TYPE`, `logged_TYPE` | share, 0–1 | actions of each type (`click`, `type_and_submit`, `terminate`): of the readable replies, of the sampled steps | GRPO |
| `sampled_commonest`, `logged_commonest` | share, 0–1 | the most frequent single action, all fields included | GRPO |
| `reply_tokens` | tokens | mean length of a reply | GRPO |
| `groups`, `groups_used` | groups | sampled steps, and those of them that are trained on | GRPO |
| `packed_share` | ratio | tokens in training passes over those of the same replies as rows, each behind its whole prompt | GRPO |
| `kl` | nats per token | KL to the frozen reference, of the last update | GRPO |
| `entropy` | nats per token | of the policy, of the last update | GRPO |
| `self_certainty`, `self_certainty_std` | nats | s(r) of the readable replies, as it is rewarded: mean and standard deviation | GRPO |
| `log_likelihood`, `log_likelihood_std` | nats per token | with the reward of that name, of all replies; their `action_reward` is 0 | GRPO |
| `sampler_trainer_logprob_gap` | nats per token | mean of abs(log π − log π_sampled) before any update | GRPO |
| `importance` | ratio | mean importance-sampling weight; 1: no correction | GRPO |
"""  # noqa: E501 - a table row is a line

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from replay_sessions.foundation.durable_files import replace_file

METRICS_FILE = "metrics.jsonl"
COLLAPSED_SHARE = 0.95  # of the readable replies; a collapsed policy exceeds it in each step
LOGGED_SHARE = 0.8  # of the logged actions over the same steps; from it on the data itself are that uniform
COLLAPSE_STEPS = 5


class Row(msgspec.Struct, frozen=True):
    """The metrics of one step of a phase, counted from 1."""

    phase: str
    step: int
    metrics: dict[str, float]


def read_metrics(path: Path) -> tuple[list[Row], int]:
    """The rows of a file, and the number of unreadable lines, which are skipped."""
    lines = path.read_bytes().splitlines()
    rows = [row for row in map(_row, lines) if row is not None]
    return rows, len(lines) - len(rows)


class MetricsFile:
    """The open file of a run.

    Attributes:
        dropped: The number of unreadable lines that were removed when it was opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        rows, self.dropped = read_metrics(path) if path.exists() else ([], 0)
        if self.dropped:
            replace_file(path, "".join(map(_line, rows)))
        self._stream = path.open("a", encoding="utf-8")

    def append(self, row: Row) -> None:
        """Adds a row; `sync` makes it durable."""
        self._stream.write(_line(row))

    def sync(self) -> None:
        """Waits until every row is on the disk."""
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def rows(self, phase: str) -> list[Row]:
        """All rows of a phase, before a stop too."""
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


def describe_collapse(latest: Sequence[Mapping[str, float]]) -> str:
    """One line on what the policy has collapsed onto over the last `COLLAPSE_STEPS` steps; "" where it has not.

    >>> step = {"sampled_click": 0.97, "logged_click": 0.6, "sampled_terminate": 0.03, "logged_terminate": 0.2}
    >>> describe_collapse([step] * 5)
    "the policy has collapsed onto 'click': over 95% of its readable replies 5 steps running, under 80% of the log"
    >>> describe_collapse([step] * 4), describe_collapse([step | {"logged_click": 0.9}] * 5)
    ('', '')
    """
    steps = list(latest)[-COLLAPSE_STEPS:]
    if len(steps) < COLLAPSE_STEPS:
        return ""
    for name in steps[-1]:  # the action shares of train.grpo.groups
        prefix, _, kind = name.partition("_")
        sampled = [step.get(name, 0.0) for step in steps]
        logged = [step.get(f"logged_{kind}", 0.0) for step in steps]
        if prefix == "sampled" and min(sampled) > COLLAPSED_SHARE and sum(logged) / len(steps) < LOGGED_SHARE:
            target = "one same action" if kind == "commonest" else repr(kind)
            return (
                f"the policy has collapsed onto {target}: over {COLLAPSED_SHARE:.0%} of its readable replies "
                f"{COLLAPSE_STEPS} steps running, under {LOGGED_SHARE:.0%} of the log"
            )
    return ""
