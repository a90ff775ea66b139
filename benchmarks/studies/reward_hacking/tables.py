"""The lab's figures as tables, for hacking.md and the terminal."""

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.studies.reward_hacking.arithmetic import CODES, DARS, PRESETS, RIGHT, THRESHOLDS, Arithmetic
from benchmarks.studies.reward_hacking.disagreements import Disagreements
from benchmarks.studies.reward_hacking.earnings import StoreRecord
from benchmarks.studies.reward_hacking.guesses import PAPER_MIXES, PAPER_RESULTS
from benchmarks.studies.reward_hacking.trained import Trained
from replay_sessions.foundation.table import Cell, Estimate, Table, columns
from shop_env.reward.score import TERM_NAMES

TAUS = (0.5, 0.75, 1.0)
VERDICTS = ("agrees", "opposite", "unfounded", "blind", "silent")


def build_store_tables(
    store: StoreRecord, disagreements: Sequence[Disagreements], arithmetic: Arithmetic
) -> Iterator[Table]:
    """What policies earn on a store and what they are worth."""
    yield from _build_earned(store)
    yield from _build_disagreements(disagreements)
    yield from _build_over_mixes(store, arithmetic)


def _build_earned(store: StoreRecord) -> Iterator[Table]:
    rewards = list(store.earned[0].paid)
    yield Table(
        title="What is earned, and what it is worth",
        columns=columns("policy", percent=["exact", "type", "macro-F1", *rewards], points=["shop_r1, a step"]),
        rows=[
            [
                row.label,
                *row.worth.values(),
                *(row.paid[name].of_best for name in rewards),
                row.paid["shop_r1"].reward,
            ]
            for row in store.earned
        ],
        notes=[
            "95% intervals over users. Under each reward: what it pays, as a share of what replaying the log earns. "
            "Dim on a terminal: agents for comparison, which are not trivial."
        ],
        dim=[index for index, row in enumerate(store.earned) if not row.trivial],
    )
    parts = {name: text for name, text in TERM_NAMES.items() if name != "own"}  # no preset has a user's function
    yield Table(
        title="By part of the reward, `shop_r1`, in points a step without self-certainty",
        columns=columns("policy", nats=parts.values()),
        rows=[[row.label, *(row.paid["shop_r1"].terms.get(name, 0.0) for name in parts)] for row in store.earned],
    )


def _build_disagreements(disagreements: Sequence[Disagreements]) -> Iterator[Table]:
    yield Table(
        title="Pairs of policies: where rewards and worth disagree",
        columns=columns("reward", "worth", count=VERDICTS),
        rows=[[row.reward, row.worth, *(row.pairs.get(verdict, 0) for verdict in VERDICTS)] for row in disagreements],
        notes=[
            "Opposite: paid more and worth less; unfounded: paid more, and no significant difference of worth; blind: "
            "worth more, and no significant difference of pay."
        ],
    )
    yield Table(
        title="Pairs in the opposite order of their exact accuracy",
        columns=columns("reward", "paid more", "worth more", points=["reward, gap"], difference=["exact, gap"]),
        rows=[
            [
                row.reward,
                pair.paid_more,
                pair.worth_more,
                *(Estimate(gap.difference, gap.low, gap.high) for gap in (pair.reward, pair.worth)),
            ]
            for row in disagreements
            if row.worth == "exact_accuracy"
            for pair in row.opposite
        ],
    )


def _build_over_mixes(store: StoreRecord, arithmetic: Arithmetic) -> Iterator[Table]:
    at = [THRESHOLDS.index(tau) for tau in TAUS]
    headings = [text for mix in arithmetic.mixes for text in (f"{mix.name}: exact", *(f"τ {tau:g}" for tau in TAUS))]
    yield Table(
        title="Share of the log's reward over DARS, τ and the mix of actions",
        columns=columns("policy", "DARS", percent=headings),
        rows=[
            [label, f"{dars:g}"]
            + [
                share
                for mix in arithmetic.mixes
                for share in (by_type[0].worth(mix), *(by_type[index].of_best(dars, mix) for index in at))
            ]
            for dars in (1.0, 1000.0)
            for label, by_type in store.by_type.items()
        ],
        notes=["As if the shoppers of this store had the mix of actions of each log."],
    )
    yield Table(
        title="Wrong guesses on this store",
        columns=columns("guess", "τ", percent=["right", "near", "similarity"]),
        rows=[
            [name, tau, chances.right, chances.near, chances.similarity]
            for name, by_tau in store.guesses.items()
            for tau, chances in by_tau.items()
        ],
        notes=[
            "Where the type is right: the share that is right, that is wrong and paid, and the similarity of those."
        ],
    )


def build_arithmetic_tables(arithmetic: Arithmetic) -> Iterator[Table]:
    """From which belief on terminating is optimal, is paid, and is where GRPO ends; and what takes its place."""
    yield from _build_regions(arithmetic)
    yield from _build_ends(arithmetic)
    yield from _build_bounds(arithmetic)


def _build_regions(arithmetic: Arithmetic) -> Iterator[Table]:
    rights = [f"p {right:g}" for right in RIGHT]
    rows: list[list[Cell]] = []
    for mix in arithmetic.mixes:
        rows.append([mix.name, "", "optimal", *map(_belief, arithmetic.optimal_from[mix.name])])
        for name in PRESETS:
            regions = [region for region in arithmetic.regions if (region.mix, region.reward) == (mix.name, name)]
            rows.append([mix.name, name, "paid", *map(_belief, regions[0].paid_from)])
            rows += [[mix.name, name, f"GRPO, {row.scale}", *map(_belief, row.ends_from)] for row in regions]
    yield Table(
        title="The belief from which on terminating is optimal, is paid most, and is where GRPO ends",
        columns=columns("mix", "reward", "quantity", *rights),
        rows=rows,
        notes=[
            "p: the chance that the best guess is right. GRPO begins at 99% terminate, its advantages divided by the "
            "group's deviation or by nothing; divided by the batch's it ends as divided by nothing. –: none below 1."
        ],
    )
    yield Table(
        title="The same by the group's deviation, with 1 nat more self-certainty in the rationale of terminating",
        columns=columns("mix", "reward", "groups of equal rewards", *rights),
        rows=[
            [row.mix, row.reward, "left out" if row.drop_equal else "kept", *map(_belief, row.ends_from)]
            for row in arithmetic.with_certainty
        ],
    )
    cells = {
        (row.mix, row.threshold, row.dars): f"{_belief(row.paid_from[0])} / {_belief(row.ends_from[0])}"
        for row in arithmetic.by_scale
    }
    yield Table(
        title=f"The same over DARS × τ at p {RIGHT[0]:g}: paid most / GRPO's end, divided by the group's deviation",
        columns=columns("mix", "τ", *(f"DARS {dars:g}" for dars in DARS)),
        rows=[
            [mix, f"{tau:g}", *(cells[mix, tau, dars] for dars in DARS)]
            for mix, tau in dict.fromkeys(key[:2] for key in cells)
        ],
    )


def _build_ends(arithmetic: Arithmetic) -> Iterator[Table]:
    yield Table(
        title="What takes the place of terminating: where GRPO ends for p from 0 to 1, at the mix's own belief",
        columns=columns("mix", "divided by", "DARS", "τ", "p from 0 to 1"),
        rows=[
            [row.mix, row.scale, f"{row.dars:g}", f"{row.threshold:g}", row.ends]
            for row in arithmetic.sweeps
            if row.dars in (1.0, 1000.0)
        ],
        notes=[", ".join(f"{code} {name}" for name, code in CODES.items())],
    )
    ends: dict[tuple[str, str, str], list[str]] = {}
    for end in arithmetic.path_ends:
        if end.right == RIGHT[1]:
            updates = "" if end.updates is None else f" ({end.updates:.2g})"
            ends.setdefault((end.mix, end.reward, end.scale), []).append(f"{end.end}{updates}")
    starts = dict.fromkeys(end.start for end in arithmetic.path_ends)
    yield Table(
        title=f"Where GRPO ends from other starts, at p {RIGHT[1]:g} and the mix's own belief",
        columns=columns("mix", "reward", "divided by", *starts),
        rows=[[*key, *of_starts] for key, of_starts in ends.items()],
        notes=[
            "In parentheses: updates at a rate of 1 on the logits until half of the start is given up, to compare with "
            "one another; they are not the steps of a run."
        ],
    )


def _build_bounds(arithmetic: Arithmetic) -> Iterator[Table]:
    yield Table(
        title="The logit of one token above all others at which α · s(r) reaches another part of the reward",
        columns=columns("definition", "part", count=["tokens"], points=["logit", "log10 of the rest"]),
        rows=[
            [row.definition, f"{row.prize} ({row.points:g})", row.vocabulary, row.gap, row.rest]
            for row in arithmetic.certainty
        ],
        notes=["–: never."],
    )
    mix = PAPER_MIXES[0]
    always = (mix.terminate_share, mix.f1_of_always_terminate)
    yield Table(
        title=f"Always terminating beside the published results of Shop-R1 ({mix.name})",
        columns=columns("policy", percent=["exact", "macro-F1"]),
        rows=[[label, exact, f1] for label, (exact, f1) in (PAPER_RESULTS | {"always_terminate": always}).items()],
    )


def build_training_tables(trained: Trained) -> Iterator[Table]:
    """What GRPO begun from spam ends in."""
    types = list(trained.policies[0].mix)
    yield Table(
        title="GRPO begun from spam: the last weights, on held-out users",
        columns=columns(
            "spam", "reward", "seed", "decoding", percent=["does spam", *types, "exact", "type", "macro-F1"]
        ),
        rows=[
            [
                row.spam,
                row.reward,
                str(row.seed),
                row.decoding,
                row.does_spam,
                *row.mix.values(),
                row.exact,
                row.type_accuracy,
                row.macro_f1,
            ]
            for row in trained.policies
        ],
        notes=[
            f"A model of the preset `{trained.preset}` taught the logged actions with {100 * trained.share:g}% of them "
            "replaced by spam, then GRPO on the real logs."
        ],
    )
    seeds = list(dict.fromkeys(row.seed for row in trained.policies))
    yield Table(
        title="After GRPO less before it",
        columns=columns(
            "spam", "reward", "decoding", "metric", difference=[*(f"seed {seed}" for seed in seeds), "all seeds"]
        ),
        rows=[
            [
                *[row.spam, row.reward, row.decoding, row.metric],
                *(None if ends is None else Estimate(*ends) for ends in (*row.by_seed.values(), row.pooled)),
            ]
            for row in trained.changes
        ],
        notes=["95% intervals over users, and over seeds and users."],
    )


def build_markdown(tables: Iterable[Table], pictures: Iterable[str]) -> str:
    """The text of hacking.md: every table beneath its title, then the pictures."""
    sections = [f"## {table.title}\n\n{table.markdown()}" for table in tables]
    images = [f"![{name.removesuffix('.png')}]({name})" for name in pictures]
    return "\n".join(["# Reward-hacking lab\n", *sections, "## Pictures\n", *images]) + "\n"


def _belief(belief: float | None) -> str:
    return "–" if belief is None else f"{belief:.3f}"
