"""The results as tables, as sentences, as Markdown and as a forest plot (needs the extra `report`)."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.ab.pages.question import PagesResults, PagesRow
from benchmarks.ab.pages.shifts import LEVEL, Difference
from replay_sessions.foundation.table import Column, Estimate, Table, format_cell
from train.show.plot_style import REFERENCE, SERIES, Series, draw_forest

COLUMNS = (
    Column("share of"),
    *(Column(heading, "percent") for heading in ("logged", "on A", "on B")),
    Column("B less A", "difference"),
    Column("Holm p", "p"),
    Column("seen from", "percent"),
    *(Column(heading, "difference") for heading in ("placebo", "A/A")),
)
SMALLEST_SHOWN = 0.0005  # a smaller share is 0.0 points
LEGEND = (
    "Logged: what shoppers did on A. B less A with 95% intervals over users (CR2), for each agent as it was fitted: "
    "the uncertainty of its fit is not in them. Holm p: of the t test over users, adjusted for the kinds of action; a "
    f"shift is significant where it is {LEVEL:g} or less. Seen from: the shift that would have been found with 80% "
    "probability. Placebo less A, and A with other seeds less A (A/A; – where an agent gives probabilities, in which "
    "there is no chance); ! marks a false alarm."
)
LIMITS = (
    "What this is: the agents' next action on the pages that the change touches, each reached as a shopper reached it "
    "on A, after all that this shopper really did. What it is not: whole visits (nothing that B does to later pages "
    "adds up), shoppers who come or stay away because of B, or anything of pages that nobody saw on A. And the agents "
    "never saw B: whether they are right about changes at all is measured where the truth is known, on the demo shop "
    "(shop-r1 ab; docs/demo_shop.md), and agents that had learnt from logs of A did badly there. Take it "
    "as a reason to test, or to look again, and not as the test."
)


def action_kinds(results: PagesResults, row: PagesRow) -> list[str]:
    """The kinds of action that the shoppers did or the agent predicted."""
    return [
        kind
        for kind, shift in row.shifts.items()
        if results.shoppers[kind] or shift.on_a or shift.on_b or not _is_zero(shift.placebo)
    ]


def table(results: PagesResults, row: PagesRow) -> Table:
    """One agent's answer, a row for each kind of action."""
    how = "by its probabilities" if row.draws is None else f"by {row.draws} replies to each page"
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
                None if shift.again is None else _marked(shift.again),
            ]
            for kind in action_kinds(results, row)
            for shift in [row.shifts[kind]]
        ],
    )


def sentences(results: PagesResults) -> Iterator[str]:
    """What the change touches, each agent's significant shifts, and what qualifies them."""
    yield (
        f"'{results.change}' touches {results.touched:,} of {results.step_count:,} pages, of {results.users} users; "
        "agents are evaluated on those."
    )
    if results.learnt_from:
        yield f"{results.learnt_from} of these users are in the train split: agents that learn have seen their actions."
    yield from (f"{note[:1].upper()}{note[1:]}." for note in results.notes)
    for row in results.rows:
        if row.failed:
            where = "any page" if not row.steps else f"{row.failed} of {row.failed + row.steps} pages"
            yield (
                f"{row.label}: no answer to {where}, which are in no share here; the same command evaluates them "
                f"again. The first: {row.first_error}."
            )
        if row.shifts:
            yield f"{row.label}: {_summary(row)}"
        yield from (f"{row.label}: {remark}" for remark in row.remarks)
    for label, shifts in results.pooled.items():
        moved = [
            f"{kind} {format_cell(Estimate(shift.mean, shift.low, shift.high), 'difference')} points"
            for kind, shift in shifts.items()
            if shift.mean
        ]
        trainings = f"{next(iter(shifts.values())).seeds} trainings as one"
        yield f"{label}, {trainings}: {'; '.join(moved) or 'no shift'} (95%, over trainings and users)."


def _summary(row: PagesRow) -> str:
    shifts = {kind: shift.difference for kind, shift in row.shifts.items()}
    significant = {
        kind: shift
        for kind, shift in shifts.items()
        if shift.significant and abs(shift.effect.difference) >= SMALLEST_SHOWN
    }
    if all(map(_is_zero, shifts.values())):
        sentence = "answers B exactly as A, on every page: it does not see this change, or does not mind it"
    elif significant:
        sentence = "; ".join(
            f"{kind} {format_cell(shift.effect.estimate(), 'difference')} points" for kind, shift in significant.items()
        )
    else:
        sentence = "no significant shift of 0.1 points or more"
    seen = [shift.could_be_seen for kind, shift in shifts.items() if shift.could_be_seen and kind not in significant]
    if seen:
        others = "others" if significant else "kinds of action"
        low, high = (format_cell(value, "percent") for value in (min(seen), max(seen)))
        sentence += f"; of the {others}, shifts from {low if low == high else f'{low} to {high}'} points on would have "
        sentence += "been found"
    return f"{sentence}. {_checks(row, significant)}"


def _checks(row: PagesRow, significant: dict[str, Difference]) -> str:
    """What the placebo and A against A show."""
    text = f"Placebo: {_alarms({kind: shift.placebo for kind, shift in row.shifts.items()})}"
    small = [
        kind
        for kind, shift in significant.items()
        if abs(row.shifts[kind].placebo.effect.difference) >= abs(shift.effect.difference)
    ]
    if small:
        text += f", and it moves {', '.join(small)} as far as the change does"
    again = {kind: shift.again for kind, shift in row.shifts.items() if shift.again is not None}
    return f"{text}. A against A: {_alarms(again) if again else 'no chance is in its answers'}."


def _alarms(shifts: dict[str, Difference]) -> str:
    kinds = [kind for kind, shift in shifts.items() if shift.significant]
    return f"a false alarm in {', '.join(kinds)}" if kinds else "no false alarm"


def _is_zero(shift: Difference) -> bool:
    return shift.effect.difference == 0 and shift.effect.low == shift.effect.high


def markdown(results: PagesResults) -> str:
    """pages.md."""
    answers = [table(results, row) for row in results.rows if row.shifts]
    parts = [
        "# What would this change do?\n",
        *(f"- {sentence}" for sentence in sentences(results)),
        *(f"\n{answer.title}\n\n{answer.markdown()}" for answer in answers),
    ]
    return "\n".join([*parts, f"\n{LEGEND}\n", LIMITS]) + "\n"


def _marked(shift: Difference) -> str:
    return format_cell(shift.effect.difference, "difference") + (" !" if shift.significant else "")


def draw(results: PagesResults, path: Path) -> None:
    """Each agent's shift of each kind of action, its placebo in grey below; writes a PNG or SVG."""
    rows = [row for row in results.rows if row.shifts]
    kinds = [kind for kind in results.shoppers if any(kind in action_kinds(results, row) for row in rows)]
    series = []
    for number, row in enumerate(rows):
        colour, mark = SERIES[number % len(SERIES)]
        of_b = {kind: shift.difference.effect.estimate(100) for kind, shift in row.shifts.items()}
        of_placebo = {kind: shift.placebo.effect.estimate(100) for kind, shift in row.shifts.items()}
        series += [Series(row.label, colour, mark, of_b), Series(f"{row.label}, placebo", REFERENCE, mark, of_placebo)]
    draw_forest(kinds, series, path, "B less A, points of the actions on the pages that the change touches")
