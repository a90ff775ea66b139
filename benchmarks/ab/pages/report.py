"""Formats the results of `ab pages` as tables, sentences and Markdown."""

from collections.abc import Iterator

from benchmarks.ab.pages.question import PagesResults, PagesRow
from benchmarks.ab.pages.shifts import Difference
from replay_sessions.foundation.table import Column, Table, format_cell
from shop_env.evaluation.comparing import LEVEL

COLUMNS = (
    Column("share of"),
    *(Column(heading, "percent") for heading in ("logged", "on A", "on B")),
    Column("B minus A", "difference"),
    Column("Holm p", "p"),
    Column("seen from", "percent"),
    Column("placebo", "difference"),
)
SMALLEST_SHOWN = 0.0005  # a smaller share is printed as 0.0 points
LEGEND = (
    "Logged: what shoppers did on A. B minus A with 95% intervals over users (CR2), for each agent as it was fitted: "
    "the uncertainty of its fit is not in them. Holm p: of the t test over users, adjusted for the kinds of action; a "
    f"shift is significant where it is {LEVEL:g} or less. Seen from: the shift that would have been found with 80% "
    "probability. Placebo minus A: ! marks a false alarm."
)
PRICES = (
    "B shows other prices: {:,} of its {:,} are not those of A. Unless your prices varied at random in the log, agents "
    "cannot tell what a price does from what dear and cheap goods differ in besides: on a demo shop where dearer goods "
    "are better, predictions were wrong even in their sign (docs/demo_shop.md). Test prices instead."
)
LIMITS = (
    "What this is: the agents' next action on the pages that the change touches, each reached as a shopper reached it "
    "on A, after all that this shopper really did. What it is not: whole visits (nothing that B does to later pages "
    "adds up), shoppers who come or stay away because of B, or anything of pages that nobody saw on A. And the agents "
    "never saw B: whether they are right about changes at all is measured where the truth is known, on the demo shop "
    "(shop-r1 ab; docs/demo_shop.md), and agents that had learnt from logs of A did badly there. Take it as a reason "
    "to test, or to look again, and not as the test."
)


def table(results: PagesResults, row: PagesRow) -> Table:
    """Returns the table of one agent, with a row for each kind of action that is logged, predicted or shifted."""
    how = f"by {row.draws} replies to each page" if row.draws else "by its probabilities"
    return Table(
        title=f"{row.label}, {how}, {row.steps:,} pages, in percent and points",
        columns=COLUMNS,
        rows=[
            [
                kind,
                results.shoppers[kind],
                shift.on_a,
                shift.on_b,
                shift.difference.effect.estimate(),
                shift.difference.holm_p_value,
                shift.difference.could_be_seen,
                _marked(shift.placebo),
            ]
            for kind, shift in row.shifts.items()
            if results.shoppers[kind] or shift.on_a or shift.on_b or not _is_zero(shift.placebo)
        ],
    )


def warnings(results: PagesResults) -> list[str]:
    """Returns the warnings to print before the tables."""
    return [PRICES.format(results.repriced, results.prices)] if results.repriced else []


def sentences(results: PagesResults) -> Iterator[str]:
    """Yields sentences about the pages that the change touches, failed steps, and each agent's significant shifts."""
    yield (
        f"'{results.change}' touches {results.touched:,} of {results.step_count:,} pages, of {results.users} users; "
        "agents are evaluated on those."
    )
    for row in results.rows:
        if row.failed:
            where = "any page" if not row.steps else f"{row.failed} of {row.failed + row.steps} pages"
            yield (
                f"{row.label}: no answer to {where}, which are in no share here; the same command evaluates them "
                f"again. The first: {row.first_error}."
            )
        if row.shifts:
            yield f"{row.label}: {_summary(row)}"


def _summary(row: PagesRow) -> str:
    significant = {
        kind: shift.difference.effect
        for kind, shift in row.shifts.items()
        if shift.difference.significant and abs(shift.difference.effect.difference) >= SMALLEST_SHOWN
    }
    moved = [f"{kind} {format_cell(effect.estimate(), 'difference')} points" for kind, effect in significant.items()]
    if all(_is_zero(shift.difference) for shift in row.shifts.values()):
        moved = ["answers B exactly as A, on every page: it does not see this change, or does not mind it"]
    alarms = [kind for kind, shift in row.shifts.items() if shift.placebo.significant]
    placebo = f"a false alarm in {', '.join(alarms)}" if alarms else "no false alarm"
    return f"{'; '.join(moved) or 'no significant shift of 0.1 points or more'}. Placebo: {placebo}."


def _marked(shift: Difference) -> str:
    return format_cell(shift.effect.difference, "difference") + (" !" if shift.significant else "")


def _is_zero(shift: Difference) -> bool:
    return shift.effect.difference == 0 and shift.effect.low == shift.effect.high


def markdown(results: PagesResults) -> str:
    """Returns the content of pages.md."""
    answers = [table(results, row) for row in results.rows if row.shifts]
    parts = [
        "# What would this change do?\n",
        *(f"- {sentence}" for sentence in [*warnings(results), *sentences(results)]),
        *(f"\n{answer.title}\n\n{answer.markdown()}" for answer in answers),
    ]
    return "\n".join([*parts, f"\n{LEGEND}\n", LIMITS]) + "\n"
