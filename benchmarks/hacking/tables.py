"""The lab's figures as Markdown: the answer first, then what it stands on."""

from collections.abc import Iterator, Sequence

from agents.results import Figure
from benchmarks.hacking.certainty import Crossing
from benchmarks.hacking.direction import GROUP
from benchmarks.hacking.leaving import CODES, DARS, RIGHT, THRESHOLDS, TOLD, Leaving
from benchmarks.hacking.record import Arithmetic, OfStore
from benchmarks.hacking.states import OPTIONS
from shop_env.reward.score import TERM_NAMES

__all__ = ["markdown", "table"]

SHOWN_DARS = (1.0, 1000.0)
ASSUMPTIONS = (
    "How it is worked out: one state at a time, in which the shopper leaves with probability b (the belief), else "
    f"clicks with probability q, the mix's own, or types. A policy has five answers: {', '.join(OPTIONS)}. Its best "
    "guess at a click and its best guess at a text are one name and one text, right with the same probability p. "
    "Rewards are the project's own; how like the logged names wrong ones are is measured on the store. GRPO's expected "
    f"gradient is summed over all groups of {GROUP} replies that can be drawn, and followed to its end, without KL, "
    "noise, momentum or a limit on steps; states do not share what they learn. A policy that cannot tell its states "
    "apart is in one state, with the mix's own b."
)


def markdown(
    answer: Sequence[str], store: OfStore, found: Arithmetic, plots: Sequence[str], training: Sequence[str]
) -> str:
    """The whole report.

    Args:
        plots: Names of the pictures that lie beside it.
        training: What part C found, as Markdown; empty where nothing was trained.
    """
    parts = [
        "# Reward-hacking lab\n",
        *(f"- {sentence}" for sentence in answer),
        "",
        ASSUMPTIONS,
        "",
        *(part for title, lines in _parts(store, found) for part in (f"## {title}\n", *lines, "")),
        *(["## GRPO begun from spam\n", *training, ""] if training else []),
        *(["## Pictures\n", *(f"![{name.removesuffix('.png')}]({name})" for name in plots), ""] if plots else []),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _parts(store: OfStore, found: Arithmetic) -> Iterator[tuple[str, list[str]]]:
    yield "What is earned, and what it is worth", [*_earned(store)]
    yield "By part of the reward, `shop_r1`", [*_terms(store, "shop_r1")]
    yield "Where rewards and worth disagree", [*_disagreements(store)]
    yield "Over DARS, τ and the mix of actions", [*_by_scale(store, found)]
    yield "From which belief on leaving is worth it, is paid, and is where GRPO ends", [*_leavings(found)]
    yield "The same over DARS × τ", [*_leavings_by_scale(found)]
    yield "What takes the place of leaving", [*_swept(found)]
    yield "From other starts", [*_begun(found)]
    yield "Self-certainty", [*_certainty(found.certainty)]
    yield "How wrong guesses do on this store", [*_guesses(store)]


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int = 1) -> list[str]:
    """A table in GitHub's Markdown."""
    lines = ["| " + " | ".join(headings) + " |"]
    lines.append("|" + "---|" * text_columns + "--:|" * (len(headings) - text_columns))
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def _earned(store: OfStore) -> Iterator[str]:
    rewards = list(store.earned[0].paid)
    yield (
        "Percent: exact and type accuracy and macro-F1 with 95% intervals over users; then what each reward pays, as a "
        "share of what replaying the log earns. In italics agents that stand beside those that know nothing.\n"
    )
    rows = [
        [f"{'' if one.trivial else '*'}{one.label}{'' if one.trivial else '*'}"]
        + [_with_ends(figure, 100) for figure in one.worth.values()]
        + ["–" if (share := one.paid[name].of_best) is None else f"{100 * share:.3g}" for name in rewards]
        for one in sorted(store.earned, key=lambda one: not one.trivial)
    ]
    yield from table(["policy", "exact", "type", "macro-F1", *rewards], rows)
    yield (
        "\nPoints a step under `shop_r1`: "
        + ", ".join(f"{one.label} {_with_ends(one.paid['shop_r1'].reward, 1)}" for one in store.earned)
        + "."
    )


def _with_ends(figure: Figure, scale: float) -> str:
    if figure.low is None or figure.high is None:
        return f"{scale * figure.value:.1f}"
    return f"{scale * figure.value:.1f} ({scale * figure.low:.1f}–{scale * figure.high:.1f})"


def _terms(store: OfStore, reward: str) -> Iterator[str]:
    names = [name for name in TERM_NAMES if any(name in one.paid[reward].terms for one in store.earned)]
    rows = [[one.label, *(f"{one.paid[reward].terms.get(name, 0.0):.3g}" for name in names)] for one in store.earned]
    yield "Points a step, self-certainty aside.\n"
    yield from table(["policy", *(TERM_NAMES[name] for name in names)], rows)


def _disagreements(store: OfStore) -> Iterator[str]:
    verdicts = ("agrees", "opposite", "unfounded", "blind", "silent")
    yield (
        "Pairs of policies that do not answer alike everywhere, told apart where the 95% interval of the paired "
        "difference over users leaves out 0. Opposite: paid more and worth less; unfounded: paid more, worth not told "
        "apart; blind: worth more, pay not told apart.\n"
    )
    rows = [
        [one.reward, one.worth, *(str(one.pairs.get(verdict, 0)) for verdict in verdicts)]
        for one in store.disagreements
    ]
    yield from table(["reward", "worth", *verdicts], rows, text_columns=2)
    yield ""
    for one in store.disagreements:
        if one.worth == "exact_accuracy" and one.opposite:
            said = ", ".join(f"{pair.paid_more} over {pair.worth_more}" for pair in one.opposite)
            yield f"- `{one.reward}` pays more for less exact accuracy: {said}."


def _by_scale(store: OfStore, found: Arithmetic) -> Iterator[str]:
    yield (
        "What each policy earns of what replaying the log would, in percent, had the shoppers of this store the mix of "
        "actions of each log; in the first column of each mix exact accuracy there.\n"
    )
    for dars in SHOWN_DARS:
        yield f"DARS {dars:g}:\n"
        taus = [THRESHOLDS.index(at) for at in (0.5, 0.75, 1.0)]
        headings = [f"{mix.name}: exact" if place is None else f"τ {THRESHOLDS[place]:g}"
                    for mix in found.mixes for place in (None, *taus)]  # fmt: skip
        rows = [
            [label]
            + [
                f"{100 * (by_type[0].worth(mix) if place is None else by_type[place].of_best(dars, mix)):.3g}"
                for mix in found.mixes
                for place in (None, *taus)
            ]
            for label, by_type in store.by_type.items()
        ]  # fmt: skip
        yield from table(["policy", *headings], rows)
        yield ""


def _leavings(found: Arithmetic) -> Iterator[str]:
    yield (
        "The belief b that the shopper leaves, from which on leaving is right most often (worth), has the highest "
        "expected reward (paid), and is where GRPO, begun from 99% leaving, ends (GRPO; divided by the group's "
        f"deviation or by nothing). Chance p that the best guess is right: {', '.join(f'{p:g}' for p in RIGHT)}. –: "
        "from none below 1. Divided by the batch's deviation GRPO ends as divided by nothing.\n"
    )
    for mix in found.mixes:
        yield f"{mix.name} ({100 * mix.leaving:.1f}% leave; q {mix.clicks_among_others:.3f}):\n"
        rows = [["worth", "", *map(_belief, found.worth_leaving_from[mix.name])]]
        for name in TOLD:
            own = [one for one in found.leavings if (one.mix, one.reward) == (mix.name, name)]
            rows.append([f"`{name}`", "paid", *map(_belief, own[0].paid_from)])
            rows += [["", f"GRPO, {one.scale}", *map(_belief, one.leaves_from)] for one in own]
        yield from table(["reward", "", *(f"p {p:g}" for p in RIGHT)], rows, text_columns=2)
        yield ""
    yield (
        "With groups divided by their deviation, and 1 nat more of self-certainty in the rationale of leaving, groups "
        "of equal action rewards left out or kept:\n"
    )
    rows = [
        [one.mix, f"`{one.reward}`", "left out" if one.drop_equal else "kept", *map(_belief, one.leaves_from)]
        for one in found.surer
    ]
    yield from table(["mix", "reward", "equal groups", *(f"p {p:g}" for p in RIGHT)], rows, text_columns=3)


def _leavings_by_scale(found: Arithmetic) -> Iterator[str]:
    place = 0
    yield f"At p {RIGHT[place]:g}: the belief from which on leaving is paid most / is where GRPO ends (group).\n"

    def cell(row: Leaving) -> str:
        return f"{_belief(row.paid_from[place])} / {_belief(row.leaves_from[place])}"

    for mix in dict.fromkeys(row.mix for row in found.by_scale):
        yield f"{mix}:\n"
        rows = [
            [f"τ {at:g}"] + [cell(row) for row in found.by_scale if (row.mix, row.threshold) == (mix, at)]
            for at in THRESHOLDS
        ]
        yield from table(["", *(f"DARS {dars:g}" for dars in DARS)], rows)
        yield ""


def _swept(found: Arithmetic) -> Iterator[str]:
    letters = ", ".join(f"{code} {name}" for name, code in CODES.items())
    yield (
        f"Where GRPO ends, begun from 99% leaving in a state with the mix's own beliefs, for p from 0 to 1 "
        f"({letters}).\n"
    )
    rows = [
        [row.mix, row.scale, f"{row.dars:g}", f"{row.threshold:g}", f"`{row.ends}`"]
        for row in found.swept
        if row.dars in SHOWN_DARS
    ]
    yield from table(["mix", "divided by", "DARS", "τ", "p from 0 to 1"], rows, text_columns=5)


def _begun(found: Arithmetic) -> Iterator[str]:
    right = RIGHT[1]
    yield (
        f"Where GRPO ends from each start at p {right:g}, in a state with the mix's own beliefs; in parentheses how "
        "long it takes to give up half of what it began with (updates at a rate of 1 on the logits: compare, do not "
        "take for steps of a run).\n"
    )
    own = [one for one in found.begun if one.right == right]
    starts = list(dict.fromkeys(one.start for one in own))
    rows = []
    for mix, reward, scale in dict.fromkeys((one.mix, one.reward, one.scale) for one in own):
        cells = [
            one.end + ("" if one.updates is None else f" ({one.updates:.2g})")
            for one in own
            if (one.mix, one.reward, one.scale) == (mix, reward, scale)
        ]
        rows.append([mix, f"`{reward}`", scale, *cells])
    yield from table(["mix", "reward", "divided by", *starts], rows, text_columns=3 + len(starts))


def _certainty(found: Sequence[Crossing]) -> Iterator[str]:
    yield (
        "From which logit of one token above all others on α · s(r) is as much as another part of the reward at α "
        "0.005, and how much probability is left for the others then. An empty rationale has no self-certainty, which "
        "at the s of about 26 in Shop-R1's figure 1 costs it 0.13 points.\n"
    )
    rows = [
        [f"`{one.definition}`", f"{one.vocabulary:,}", f"{one.prize} ({one.points:g})"]
        + (["never", ""] if one.gap is None else [f"{one.gap:.1f}", f"10^{one.rest:.1f}"])
        for one in found
    ]
    yield from table(["definition", "tokens", "as much as", "logit", "left"], rows, text_columns=3)


def _guesses(store: OfStore) -> Iterator[str]:
    yield (
        "Where the type is right: how often the guess is right, how often it is wrong and paid, and how similar it is "
        "then. Wrong clicks are the page's other elements, wrong texts other phrases that the shopper has given.\n"
    )
    rows = [
        [name, at, f"{chances.right:.3f}", f"{chances.near:.3f}", f"{chances.similarity:.3f}"]
        for name, of_name in store.guesses.items()
        for at, chances in of_name.items()
    ]
    yield from table(["guess", "τ", "right", "near", "similarity"], rows, text_columns=2)


def _belief(belief: float | None) -> str:
    return "–" if belief is None else f"{belief:.3f}".removesuffix("0")
