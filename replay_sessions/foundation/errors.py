"""The errors that shop-r1 raises on purpose, as a tree.

    ShopR1Error
    ├── StoreNotFound      (FileNotFoundError)   no store at that path or of that name
    ├── BadSession         (ValueError)          a record or file that does not hold what it should
    ├── ImportFailed                             a source of logs that could not be read
    ├── UnknownAgent       (LookupError)         no agent of that name
    ├── AgentFailed                              an agent could not answer (time-out, server down); never a score of 0
    │   └── PromptTooLong                        a prompt that does not fit the agent's model: a miss
    ├── DeviceFailed                             a GPU that failed or has too little memory: ends the evaluation
    ├── MissingExtra       (ImportError)         an optional dependency that is not installed
    ├── BadConfig          (ValueError)          an option, preset or flag that does not fit
    ├── WriteFailed        (OSError)             the system refused to write: a full disk, a limit on files
    ├── CheckpointMismatch                       a checkpoint that belongs to something else
    └── TrainingDiverged                         a loss or gradient that is not finite

Each message names the value, the expected values and the remedy. Commands print a ShopR1Error as one line and exit
with code 2 (command_line.py). Every other exception is a bug and keeps its traceback.
"""

import difflib
from collections.abc import Iterable
from typing import get_args

_FEW_NAMES = 40


class ShopR1Error(Exception):
    """The base class of the errors that shop-r1 raises on purpose."""


class StoreNotFound(ShopR1Error, FileNotFoundError):
    """No session store at the given path or of the given name."""


class BadSession(ShopR1Error, ValueError):
    """A session, record or store file that does not hold what it should."""


class ImportFailed(ShopR1Error):
    """A source of logs that could not be read."""


class UnknownAgent(ShopR1Error, LookupError):
    """No agent of the given name."""


class AgentFailed(ShopR1Error):
    """An agent that could not answer; the step is an error row, never a score of 0."""


class PromptTooLong(AgentFailed):
    """A prompt that does not fit the agent's model. It would fail in every run, so it counts as a miss."""


class DeviceFailed(ShopR1Error):
    """A GPU that failed or has too little memory.

    It ends the evaluation: as error rows, the longest prompts would be missing from the results.
    """


class MissingExtra(ShopR1Error, ImportError):
    """An optional dependency that is not installed."""


class BadConfig(ShopR1Error, ValueError):
    """An option, preset or flag that does not fit."""


class WriteFailed(ShopR1Error, OSError):
    """The system's refusal to write because of a full disk or a limit on files."""


class CheckpointMismatch(ShopR1Error):
    """A checkpoint that is damaged or belongs to something else."""


class TrainingDiverged(ShopR1Error):
    """A loss or gradient that is not finite."""


def check_at_least(least: float, **values: float | None) -> None:
    """Raises BadConfig if an option's value is smaller than `least`; None is not checked.

    >>> check_at_least(1, max_workers=0)
    Traceback (most recent call last):
    replay_sessions.foundation.errors.BadConfig: --max-workers is 0, and at least 1 was expected
    """
    for name, value in values.items():
        if value is not None and not value >= least:  # the negation also catches NaN
            raise BadConfig(f"--{name.replace('_', '-')} is {value}, and at least {least} was expected")


def check_choice(option: str, value: object, choices: object) -> None:
    """Raises BadConfig if an option's value is not one of the values of a Literal.

    >>> from typing import Literal
    >>> check_choice("reward.kind", "sparse", Literal["hierarchical", "binary"])
    Traceback (most recent call last):
    replay_sessions.foundation.errors.BadConfig: reward.kind is 'sparse'; it must be one of hierarchical, binary.
    """
    if value not in get_args(choices):
        raise BadConfig(f"{option} is {value!r}; it must be one of {', '.join(get_args(choices))}.")


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's message, or the error's type if it has no message."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Returns a hint that names the nearest valid name, or all names if they are few.

    >>> did_you_mean("radnom", ["random", "majority"])
    "Did you mean 'random'?"
    >>> did_you_mean("zzz", ["random", "majority"])
    'Known: majority, random.'
    """
    names = sorted(names)
    if matches := difflib.get_close_matches(name, names, n=1):
        return f"Did you mean '{matches[0]}'?"
    return f"Known: {', '.join(names)}." if len(names) < _FEW_NAMES else ""
