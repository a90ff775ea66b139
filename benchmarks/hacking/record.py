"""All figures of the lab on a store, but for training: what hacking.json holds, and how it is made."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import msgspec
import numpy as np

from agents.scored_steps import AnySplit, scored_steps
from benchmarks.hacking.certainty import Crossing, crossings
from benchmarks.hacking.direction import Scale
from benchmarks.hacking.disagreements import Disagreements, disagreements
from benchmarks.hacking.earned import Answers, ByType, Earned, ask_policies, by_type, earned
from benchmarks.hacking.guesses import Chances, Guess, measure_guesses
from benchmarks.hacking.leaving import (
    DARS,
    RIGHT,
    SCALES,
    SURER,
    THRESHOLDS,
    TOLD,
    Begun,
    Diagram,
    Leaving,
    Swept,
    begun,
    diagram,
    leaving,
    scaled,
    swept,
    worth_leaving_from,
)
from benchmarks.hacking.mixes import PAPER_MIXES, Mix, mix_of
from replay_sessions.errors import BadConfig
from replay_sessions.progress_bar import progress_bar
from replay_sessions.store import SessionStore
from shop_env.reward import REWARD_PRESETS, RewardConfig

__all__ = ["Arithmetic", "OfStore", "arithmetic", "of_store"]

VOCABULARIES = (433, 151_936)  # of the demo shop's own tokenizer, and of Qwen2.5
OWN = "this store"


class OfStore(msgspec.Struct, frozen=True, kw_only=True):
    """What policies earn on a store, and how wrong guesses do there.

    Attributes:
        guesses: By name and τ.
        by_type: By policy, for each τ of THRESHOLDS.
    """

    steps: int
    sessions: int
    users: int
    mix: Mix
    guesses: dict[str, dict[str, Chances]]
    earned: list[Earned]
    by_type: dict[str, list[ByType]]
    disagreements: list[Disagreements]


class Arithmetic(msgspec.Struct, frozen=True, kw_only=True):
    """What follows from the reward's numbers, the mixes of actions, and how wrong guesses do on a store.

    Attributes:
        beliefs: Those that `leavings`, `surer` and `by_scale` were looked for among.
        grid: The chances of being right of `swept`, and those and the beliefs of `diagrams`.
        worth_leaving_from: By mix, for each p of RIGHT.
        worth_on_grid: The same for each p of `grid`.
        surer: The same as `leavings` where the rationale of leaving is surer of itself.
        by_scale: Over DARS × τ.
    """

    mixes: list[Mix]
    beliefs: tuple[float, ...]
    grid: tuple[float, ...]
    certainty: list[Crossing]
    worth_leaving_from: dict[str, tuple[float, ...]]
    worth_on_grid: dict[str, tuple[float, ...]]
    leavings: list[Leaving]
    surer: list[Leaving]
    by_scale: list[Leaving]
    swept: list[Swept]
    diagrams: list[Diagram]
    begun: list[Begun]


def of_store(
    store: SessionStore,
    split: AnySplit,
    *,
    references: Sequence[str] | None,
    max_sessions: int | None,
    seed: int,
    samples: int,
) -> tuple[OfStore, dict[str, Guess]]:
    """Asks every policy about the scored steps of a split, and scores the replies under every reward."""
    policies = ask_policies(store, split, references=references, max_sessions=max_sessions, seed=seed)
    guesses = measure_guesses(scored_steps(store, split, max_sessions=max_sessions))
    records, mix = policies[0].records, mix_of(policies[0].logged, OWN)
    if mix.terminate == mix.steps:
        raise BadConfig(f"At every scored step of '{store.path}' the shopper leaves: there is no other action to pay.")
    found = OfStore(
        steps=len(records),
        sessions=len({record.session_id for record in records}),
        users=len({record.user_id for record in records}),
        mix=mix,
        guesses={name: {str(at): guess.at(at) for at in THRESHOLDS} for name, guess in guesses.items()},
        earned=_earned(policies, samples),
        by_type={one.label: [by_type(one, scaled("shop_r1", threshold=at)) for at in THRESHOLDS] for one in policies},
        disagreements=disagreements(policies, REWARD_PRESETS, samples=samples),
    )
    return found, guesses


def _earned(policies: Sequence[Answers], samples: int) -> list[Earned]:
    with progress_bar("rewards", len(policies)) as advance:
        found = []
        for one in policies:
            found.append(earned(one, REWARD_PRESETS, samples=samples))
            advance(1)
    return found


def arithmetic(own: Mix, guesses: Mapping[str, Guess], *, resolution: int = 99) -> Arithmetic:
    """Everything that needs no policy: takes a minute.

    Args:
        resolution: So many beliefs are looked at, evenly between 0 and 1, and a third as many along a diagram's side.
    """
    beliefs = tuple(np.linspace(0.0, 1.0, resolution + 2)[1:-1].round(6).tolist())
    grid = tuple(np.linspace(0.0, 1.0, max(2, resolution // 3)).round(6).tolist())
    mixes, told = [*PAPER_MIXES, own], [PAPER_MIXES[0], own]
    presets, diagrams = list(product(mixes, TOLD, SCALES)), list(product(told, TOLD, SCALES))
    numbers = list(product(told, DARS, THRESHOLDS))
    certain = [row for row in product(told, TOLD, (True, False)) if scaled(row[1]).self_certainty_weight]
    total = len(presets) + len(diagrams) + len(certain) + len(numbers) * (1 + len(SCALES))
    with progress_bar("states", total) as advance:

        def leaves(mix: Mix, name: str, reward: RewardConfig, scale: Scale, **more: Any) -> Leaving:
            advance(1)
            return leaving(mix, name, reward, guesses, scale, beliefs, **more)

        def ends(mix: Mix, dars: float, at: float, scale: Scale) -> Swept:
            advance(1)
            return swept(mix, guesses, dars, at, scale, grid)

        def drawn(mix: Mix, name: str, scale: Scale) -> Diagram:
            advance(1)
            return diagram(mix, name, guesses, scale, grid)

        return Arithmetic(
            mixes=mixes,
            beliefs=beliefs,
            grid=grid,
            certainty=crossings(REWARD_PRESETS["shop_r1"], VOCABULARIES),
            worth_leaving_from=_worth(mixes, guesses, RIGHT),
            worth_on_grid=_worth(told, guesses, grid),
            leavings=[leaves(mix, name, scaled(name), scale) for mix, name, scale in presets],
            surer=[
                leaves(mix, name, scaled(name), "group", surer=SURER, drop_equal=drop) for mix, name, drop in certain
            ],
            by_scale=[leaves(mix, "shop_r1", scaled("shop_r1", dars, at), "group") for mix, dars, at in numbers],
            swept=[ends(*row, scale) for row, scale in product(numbers, SCALES)],
            diagrams=[drawn(*row) for row in diagrams],
            begun=[row for mix in told for row in begun(mix, guesses)],
        )


def _worth(mixes: Sequence[Mix], guesses: Mapping[str, Guess], rights: Sequence[float]) -> dict[str, tuple[float, ...]]:
    return {mix.name: tuple(worth_leaving_from(mix, guesses, right) for right in rights) for mix in mixes}
