"""What GRPO begun from spam came to: rows, paired differences and curves, and what they say in words."""

from collections.abc import Iterator, Sequence
from statistics import fmean

import msgspec

from benchmarks.hacking.tables import table

__all__ = ["Change", "Course", "Policy", "Trained", "lines"]

TAUGHT = "taught"  # the phase that teaches spam, before any GRPO
TAUGHT_AT_LEAST = 0.5  # of the steps are spam, or there is nothing to leave


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy on people held out.

    Attributes:
        spam: What it was taught to do always.
        reward: What GRPO was run with from there; `taught` before it.
        decoding: As in the training's own table (`T 0.6`, `greedy`).
        does_spam: The share of steps at which it does that.
        mix: The share of each type of action, and of replies that cannot be read.
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


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """After GRPO less before it, on the same steps.

    Attributes:
        by_seed: Difference and 95% interval over users.
        pooled: The same over seeds and users; None with one seed.
    """

    spam: str
    reward: str
    decoding: str
    metric: str
    by_seed: dict[int, tuple[float, float, float]]
    pooled: tuple[float, float, float] | None


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """What was sampled at each step of GRPO: by figure one list for the run (train.grpo.figures)."""

    spam: str
    reward: str
    seed: int
    figures: dict[str, list[float]]


class Trained(msgspec.Struct, frozen=True, kw_only=True):
    """All runs."""

    share: float
    preset: str
    policies: list[Policy]
    changes: list[Change]
    courses: list[Course]


def lines(found: Trained) -> list[str]:
    """Sentences and tables, as Markdown."""
    return [
        f"A model of the preset `{found.preset}` taught the logged actions with {100 * found.share:g}% of them "
        "replaced, then GRPO on the real logs; the weights at the end, on people held out.\n",
        *(f"- {sentence}" for sentence in _sentences(found)),
        "",
        *_table(found),
        "",
        *_changes(found),
    ]


def _sentences(found: Trained) -> Iterator[str]:
    for spam, decoding in dict.fromkeys((one.spam, one.decoding) for one in found.policies):
        own = [one for one in found.policies if (one.spam, one.decoding) == (spam, decoding)]
        before = [one for one in own if one.reward == TAUGHT]
        for reward in dict.fromkeys(one.reward for one in own if one.reward != TAUGHT):
            after = [one for one in own if one.reward == reward]
            yield _sentence(spam, reward, decoding, before, after, _exact_change(found, spam, reward, decoding))


def _sentence(
    spam: str,
    reward: str,
    decoding: str,
    before: Sequence[Policy],
    after: Sequence[Policy],
    exact: tuple[float, float, float] | None,
) -> str:
    was, now = ({one.seed: one.does_spam for one in rows} for rows in (before, after))
    left = [seed for seed in now if now[seed] < was[seed] / 2]
    if fmean(was.values()) < TAUGHT_AT_LEAST:
        said = "had not learnt to do that, so this tells nothing"
    elif len(left) in (0, len(now)):
        said = "leaves it" if left else "stays"
    else:
        said = f"leaves it with {len(left)} of {len(now)} seeds"
    text = (
        f"`{spam}`, `{reward}`, {decoding}: it {said}: {100 * fmean(was.values()):.1f}% of the steps before, "
        f"{100 * fmean(now.values()):.1f}% after (seeds: {', '.join(f'{100 * one:.1f}' for one in now.values())})"
    )
    if exact is not None:
        text += f"; exact accuracy {100 * exact[0]:+.1f} points [{100 * exact[1]:+.1f}, {100 * exact[2]:+.1f}]"
    return text + "."


def _exact_change(found: Trained, spam: str, reward: str, decoding: str) -> tuple[float, float, float] | None:
    wanted = (spam, reward, decoding, "exact_accuracy")
    change = next((one for one in found.changes if (one.spam, one.reward, one.decoding, one.metric) == wanted), None)
    if change is None:
        return None
    return change.pooled or next(iter(change.by_seed.values()))


def _table(found: Trained) -> list[str]:
    kinds = list(found.policies[0].mix)
    rows = [
        [one.spam, one.reward, str(one.seed), one.decoding]
        + [f"{100 * value:.1f}" for value in (one.does_spam, *(one.mix[kind] for kind in kinds))]
        + [f"{100 * value:.1f}" for value in (one.exact, one.type_accuracy, one.macro_f1)]
        for one in found.policies
    ]
    headings = ["spam", "reward", "seed", "decoding", "does it", *kinds, "exact", "type", "macro-F1"]
    return table(headings, rows, text_columns=4)


def _changes(found: Trained) -> Iterator[str]:
    yield "After GRPO less before it, in points with 95% intervals over users, by seed, and over seeds and users:\n"
    for one in found.changes:
        shown = "; ".join(_interval(*ends) for ends in one.by_seed.values())
        pooled = f"; over all seeds {_interval(*one.pooled)}" if one.pooled else ""
        yield f"- `{one.spam}`, `{one.reward}`, {one.decoding}, {one.metric}: {shown}{pooled}"


def _interval(difference: float, low: float, high: float) -> str:
    return f"{100 * difference:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
