"""When is terminating where GRPO ends? Beliefs from which on it is, phase diagrams, and where other starts lead.

For a reward and a way of scaling advantages, at a chance p that the policy's best guess is right:

    optimal from       the belief b from which on terminating is right more often than any other answer
    paid from          the belief from which on its expected raw reward is the highest
    GRPO ends from     the belief from which on GRPO, begun from 99% terminate, ends in terminating

Where GRPO ends there at beliefs at which it is not optimal, terminating is spam that pays; where it does not end there
although it is optimal, terminate actions are starved.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.studies.reward_hacking.certainty import Crossing, find_crossings
from benchmarks.studies.reward_hacking.gradients import MIXED, STARTS, Ends, Scale, follow, name_ends, weights
from benchmarks.studies.reward_hacking.guesses import PAPER_MIXES, Guess, Mix
from benchmarks.studies.reward_hacking.states import OPTIONS, State, break_even, option_worth
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.foundation.records import Record
from shop_env.reward import REWARD_PRESETS, RewardConfig

DARS = (1.0, 10.0, 100.0, 1000.0)
THRESHOLDS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
RIGHT = (0.05, 0.25, 0.5, 0.75)
PRESETS = ("shop_r1", "no_dars", "binary", "binary_action_scaled", "customer_r1", "customer_r1_rl_only")
SCALES: tuple[Scale, ...] = ("group", "none")
CODES = dict(zip((*OPTIONS, MIXED), "TGYIFM", strict=True))
SPAM = "99% terminate"
CERTAINTY_BONUS = 1.0  # nats: how much more certain the rationale of terminating is in `with_certainty`
VOCABULARIES = (433, 151_936)  # of the demo shop's own tokenizer, and of Qwen2.5

Guesses = Mapping[str, Guess]


# The names of hacking.json are those of its first version, so that recorded results stay readable.
class TerminateRegion(Record, rename={"bonus": "surer", "ends_from": "leaves_from"}):
    """The beliefs from which on terminating is paid most and is GRPO's end, by p in the order of RIGHT.

    Attributes:
        mix: Whose q: the share of clicks among the steps at which shoppers do not terminate.
        reward: A preset, with `dars` and `threshold` in place of its own.
        scale: What advantages are divided by.
        bonus: How many nats of self-certainty the rationale of terminating has over others.
        drop_equal: Whether groups whose action rewards are all equal are left out.
        paid_from: The belief from which on its expected raw reward is the highest.
        ends_from: The belief from which on GRPO ends there; None: from none below 1.
    """

    mix: str
    reward: str
    dars: float
    threshold: float
    scale: Scale
    bonus: float = 0.0
    drop_equal: bool = True
    paid_from: tuple[float, ...]
    ends_from: tuple[float | None, ...]


class Diagram(Record, rename={"differs_from_uniform": "otherwise"}):
    """Where GRPO ends over beliefs and chances of being right: rows of CODES, one for each p, from 0 up.

    Attributes:
        differs_from_uniform: In how many of these states it ends elsewhere when begun from the uniform policy.
        unsettled: In how many the path did not come to rest.
    """

    mix: str
    reward: str
    scale: Scale
    rows: tuple[str, ...]
    differs_from_uniform: int
    unsettled: int


class Sweep(msgspec.Struct, frozen=True):
    """Where GRPO ends under Table 1 with other numbers, in a state in which the mix itself is all that is known.

    Attributes:
        ends: CODES, one for each p.
    """

    mix: str
    dars: float
    threshold: float
    scale: Scale
    ends: str


class PathEnd(msgspec.Struct, frozen=True):
    """Where GRPO ends in one state from one start.

    Attributes:
        end: One of OPTIONS, or `mix`.
        updates: How long it took to give up half of what it began with, at a rate of 1 on the logits; None where that
            is where it ends, or where it began with the uniform policy.
    """

    mix: str
    reward: str
    scale: Scale
    right: float
    start: str
    end: str
    updates: float | None


class Arithmetic(
    Record,
    rename={
        "optimal_from": "worth_leaving_from",
        "optimal_on_grid": "worth_on_grid",
        "regions": "leavings",
        "with_certainty": "surer",
        "sweeps": "swept",
        "path_ends": "begun",
    },
):
    """What follows from the reward's numbers, the mixes of actions, and the similarity of wrong guesses on a store.

    Attributes:
        beliefs: The beliefs that `regions`, `with_certainty` and `by_scale` try.
        grid: The chances of being right of `sweeps`; those and the beliefs of `diagrams`.
        optimal_from: By mix, for each p of RIGHT.
        optimal_on_grid: The same for each p of `grid`.
        with_certainty: The same as `regions` where the rationale of terminating is more certain.
        by_scale: Over DARS × τ.
    """

    mixes: list[Mix]
    beliefs: tuple[float, ...]
    grid: tuple[float, ...]
    certainty: list[Crossing]
    optimal_from: dict[str, tuple[float, ...]]
    optimal_on_grid: dict[str, tuple[float, ...]]
    regions: list[TerminateRegion]
    with_certainty: list[TerminateRegion]
    by_scale: list[TerminateRegion]
    sweeps: list[Sweep]
    diagrams: list[Diagram]
    path_ends: list[PathEnd]


def compute_arithmetic(own: Mix, guesses: Guesses, *, resolution: int = 99) -> Arithmetic:
    """Everything that needs no policy: takes a minute.

    Args:
        own: The mix of the store that the guesses come from.
        resolution: Number of beliefs, evenly between 0 and 1; a third as many along a diagram's side.
    """
    beliefs = tuple(np.linspace(0.0, 1.0, resolution + 2)[1:-1].round(6).tolist())
    grid = tuple(np.linspace(0.0, 1.0, max(2, resolution // 3)).round(6).tolist())
    mixes, main = [*PAPER_MIXES, own], [PAPER_MIXES[0], own]
    certain = [name for name in PRESETS if REWARD_PRESETS[name].self_certainty_weight]
    by_preset, by_number = len(PRESETS) * len(SCALES), len(DARS) * len(THRESHOLDS)
    total = (len(mixes) + 2 * len(main)) * by_preset + len(main) * (3 * by_number + 2 * len(certain))
    with progress_bar("states", total) as advance:

        def track(*factors: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
            for row in product(*factors):
                yield row
                advance(1)

        return Arithmetic(
            mixes=mixes,
            beliefs=beliefs,
            grid=grid,
            certainty=find_crossings(REWARD_PRESETS["shop_r1"], VOCABULARIES),
            optimal_from={mix.name: tuple(optimal_from(mix, guesses, right) for right in RIGHT) for mix in mixes},
            optimal_on_grid={mix.name: tuple(optimal_from(mix, guesses, right) for right in grid) for mix in main},
            regions=[
                compute_region(mix, name, REWARD_PRESETS[name], guesses, scale, beliefs)
                for mix, name, scale in track(mixes, PRESETS, SCALES)
            ],
            with_certainty=[
                compute_region(
                    mix, name, REWARD_PRESETS[name], guesses, "group", beliefs, bonus=CERTAINTY_BONUS, drop_equal=drop
                )
                for mix, name, drop in track(main, certain, (True, False))
            ],
            by_scale=[
                compute_region(mix, "shop_r1", with_scale(dars=dars, threshold=tau), guesses, "group", beliefs)
                for mix, dars, tau in track(main, DARS, THRESHOLDS)
            ],
            sweeps=[_compute_sweep(guesses, grid, *row) for row in track(main, DARS, THRESHOLDS, SCALES)],
            diagrams=[_compute_diagram(guesses, grid, *row) for row in track(main, PRESETS, SCALES)],
            path_ends=[end for row in track(main, PRESETS, SCALES) for end in _compute_path_ends(guesses, *row)],
        )


def with_scale(**changes: float) -> RewardConfig:
    """Table 1 with another DARS or τ."""
    return msgspec.structs.replace(REWARD_PRESETS["shop_r1"], **changes)


def optimal_from(mix: Mix, guesses: Guesses, right: float) -> float:
    """The belief from which on terminating is right more often than any other answer."""
    best = max(option_worth(State(0.0, mix.click_share, right), guesses).values())
    return best / (1 + best)


def compute_region(
    mix: Mix,
    name: str,
    reward: RewardConfig,
    guesses: Guesses,
    scale: Scale,
    beliefs: Sequence[float],
    *,
    bonus: float = 0.0,
    drop_equal: bool = True,
) -> TerminateRegion:
    """The beliefs from which on terminating is paid most, and is GRPO's end."""
    extra = np.array([bonus * (option == "terminate") for option in OPTIONS]) * reward.self_certainty_weight
    names, _ = _find_ends(mix, reward, guesses, scale, beliefs, RIGHT, bonus=extra, drop_equal=drop_equal)
    return TerminateRegion(
        mix=mix.name,
        reward=name,
        dars=reward.dars,
        threshold=reward.threshold,
        scale=scale,
        bonus=bonus,
        drop_equal=drop_equal,
        paid_from=tuple(break_even(State(0.0, mix.click_share, right), reward, guesses, OPTIONS) for right in RIGHT),
        ends_from=tuple(_lowest_belief(row == "terminate", beliefs) for row in names[0]),
    )


def _find_ends(
    mix: Mix,
    reward: RewardConfig,
    guesses: Guesses,
    scale: Scale,
    beliefs: Sequence[float],
    rights: Sequence[float],
    starts: Sequence[str] = (SPAM,),
    **options: Any,
) -> tuple[NDArray[np.str_], Ends]:
    """The names of GRPO's ends by start, chance of being right and belief, and the ends themselves in that order."""
    states = [State(belief, mix.click_share, right) for right in rights for belief in beliefs]
    state_weights = weights(states, reward, guesses, scale, **options)
    policies = np.repeat([STARTS[start] for start in starts], len(states), axis=0)
    ends = follow(policies, np.tile(state_weights, (len(starts), 1, 1)))
    return np.array(name_ends(ends)).reshape(len(starts), len(rights), len(beliefs)), ends


def _lowest_belief(terminates: NDArray[np.bool_], beliefs: Sequence[float]) -> float | None:
    """The lowest belief from which on all are True."""
    others = np.flatnonzero(~terminates)
    first = int(others[-1]) + 1 if len(others) else 0
    return beliefs[first] if first < len(beliefs) else None


def _encode(names: NDArray[np.str_]) -> str:
    return "".join(CODES[name] for name in names.tolist())


def _compute_sweep(
    guesses: Guesses, grid: Sequence[float], mix: Mix, dars: float, threshold: float, scale: Scale
) -> Sweep:
    """Where GRPO ends over the chances `grid` of being right, at the mix's own belief."""
    reward = with_scale(dars=dars, threshold=threshold)
    names, _ = _find_ends(mix, reward, guesses, scale, [mix.terminate_share], grid)
    return Sweep(mix.name, dars, threshold, scale, _encode(names.ravel()))


def _compute_diagram(guesses: Guesses, grid: Sequence[float], mix: Mix, name: str, scale: Scale) -> Diagram:
    """Where GRPO ends, begun from 99% terminate, over beliefs (along a row) and chances `grid` of being right."""
    (spam, uniform), ends = _find_ends(mix, REWARD_PRESETS[name], guesses, scale, grid, grid, (SPAM, "uniform"))
    return Diagram(
        mix=mix.name,
        reward=name,
        scale=scale,
        rows=tuple(map(_encode, spam)),
        differs_from_uniform=int((spam != uniform).sum()),
        unsettled=int((~ends.settled[: spam.size]).sum()),
    )


def _compute_path_ends(guesses: Guesses, mix: Mix, name: str, scale: Scale) -> Iterator[PathEnd]:
    """Every start, at the mix's own belief."""
    belief, reward = [mix.terminate_share], REWARD_PRESETS[name]
    names, ends = _find_ends(mix, reward, guesses, scale, belief, RIGHT, tuple(STARTS))
    rows = zip(product(STARTS, RIGHT), names.ravel().tolist(), ends.updates.tolist(), strict=True)
    for (start, right), end, updates in rows:
        stayed = start == "uniform" or end == OPTIONS[int(STARTS[start].argmax())]
        yield PathEnd(mix.name, name, scale, right, start, end, None if stayed else updates)
