"""All figures of the lab on a store, but for training: what hacking.json holds, and how it is made."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import msgspec

from agents.scored_steps import AnySplit, scored_steps
from benchmarks.hacking.certainty import Crossing, crossings
from benchmarks.hacking.disagreements import Disagreements, disagreements
from benchmarks.hacking.earned import Answers, ByType, Earned, ask_policies, by_type, earned
from benchmarks.hacking.guesses import Chances, Guess, measure_guesses
from benchmarks.hacking.leaving import (
    DARS,
    GRID,
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
from replay_sessions.progress_bar import progress_bar
from replay_sessions.store import SessionStore
from shop_env.reward import REWARD_PRESETS

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
        worth_leaving_from: By mix, for each p of RIGHT.
        worth_on_grid: The same for each p of GRID.
        surer: The same as `leavings` where the rationale of leaving is surer of itself.
        by_scale: Over DARS × τ.
    """

    mixes: list[Mix]
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
    records = policies[0].records
    found = OfStore(
        steps=len(records),
        sessions=len({record.session_id for record in records}),
        users=len({record.user_id for record in records}),
        mix=mix_of(policies[0].logged, OWN),
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


def arithmetic(own: Mix, guesses: Mapping[str, Guess]) -> Arithmetic:
    """Everything that needs no policy: takes a minute."""
    mixes = [*PAPER_MIXES, own]
    told = [PAPER_MIXES[0], own]
    numbers = list(product(told, DARS, THRESHOLDS))
    total = len(mixes) * len(TOLD) * 2 + 4 * len(TOLD) + 3 * len(numbers) + 2 * len(TOLD) * 2 + 2
    with progress_bar("states", total) as advance:

        def counted(rows: Iterator) -> list:  # type: ignore[type-arg]
            found = []
            for row in rows:
                found.append(row)
                advance(1)
            return found

        return Arithmetic(
            mixes=mixes,
            certainty=crossings(REWARD_PRESETS["shop_r1"], VOCABULARIES),
            worth_leaving_from=_worth(mixes, guesses, RIGHT),
            worth_on_grid=_worth(told, guesses, GRID),
            leavings=counted(
                leaving(mix, name, scaled(name), guesses, scale) for mix, name, scale in product(mixes, TOLD, SCALES)
            ),
            surer=counted(
                leaving(mix, name, scaled(name), guesses, "group", surer=SURER, drop_equal=drop)
                for mix, name, drop in product(told, TOLD, (True, False))
                if scaled(name).self_certainty_weight
            ),
            by_scale=counted(
                leaving(mix, "shop_r1", scaled("shop_r1", dars, at), guesses, "group") for mix, dars, at in numbers
            ),
            swept=counted(swept(mix, guesses, dars, at, scale) for (mix, dars, at), scale in product(numbers, SCALES)),
            diagrams=counted(diagram(mix, name, guesses, scale) for mix, name, scale in product(told, TOLD, SCALES)),
            begun=[row for mix in told for row in begun(mix, guesses)],
        )


def _worth(mixes: Sequence[Mix], guesses: Mapping[str, Guess], rights: Sequence[float]) -> dict[str, tuple[float, ...]]:
    return {mix.name: tuple(worth_leaving_from(mix, guesses, right) for right in rights) for mix in mixes}
