"""What GRPO begun from spam ended in: rows, paired differences and curves."""

import msgspec

from replay_sessions.foundation.records import Record

TAUGHT = "taught"  # the phase that teaches spam, before any GRPO


class Policy(Record):
    """A policy on held-out users.

    Attributes:
        spam: What it was taught to do always.
        reward: What GRPO was run with from there; `taught` before it.
        decoding: As in the training's own table (`T 0.6`, `greedy`).
        does_spam: The share of steps at which it does that.
        mix: The share of each type of action, and of malformed replies.
    """

    spam: str
    reward: str
    seed: int
    decoding: str
    does_spam: float
    mix: dict[str, float]
    exact: float
    type_accuracy: float
    macro_f1: float


Ends = tuple[float, float | None, float | None]  # a difference and its 95% interval


class Change(Record):
    """After GRPO less before it, on the same steps.

    Attributes:
        by_seed: Difference and 95% interval over users.
        pooled: The same over seeds and users; None with one seed.
    """

    spam: str
    reward: str
    decoding: str
    metric: str
    by_seed: dict[int, Ends]
    pooled: Ends | None


class Course(msgspec.Struct, frozen=True):
    """What was sampled at each step of GRPO: by figure one list for the run (train.grpo.groups)."""

    spam: str
    reward: str
    seed: int
    figures: dict[str, list[float]]


class Trained(Record):
    """All runs."""

    share: float
    preset: str
    policies: list[Policy]
    changes: list[Change]
    courses: list[Course]
