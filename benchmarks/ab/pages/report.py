"""The answer as tables, as sentences and as Markdown."""

from collections.abc import Iterator, Sequence

from benchmarks.ab.effects import Effect
from benchmarks.ab.pages.question import PagesResults, PagesRow
from benchmarks.ab.pages.shifts import LEVEL, Difference

__all__ = ["HEADINGS", "LEGEND", "LIMITS", "cells", "markdown", "sentences", "shown", "title"]

HEADINGS = ("share of", "logged", "on A", "on B", "B less A", "Holm p", "seen from", "placebo", "A/A")
SMALLEST_SHOWN = 0.05  # points
LEGEND = (
    "Logged: what shoppers did on A. B less A with 95% intervals over users (CR2). Holm p: of swapping A and B, user "
    f"by user, adjusted for the kinds of action; a shift is told from chance where it is {LEVEL:g} or less. Seen from: "
    "the shift that would have been found with 80% probability. Placebo less A, and A with other seeds less A (A/A; – "
    "where an agent gives probabilities, in which there is no chance); ! marks a false alarm."
)
LIMITS = (
    "What this is: the agents' next action on the pages that the change touches, each reached as a shopper reached it "
    "on A, after all that this shopper really did. What it is not: whole visits (nothing that B does to later pages "
    "adds up), shoppers who come or stay away because of B, or anything of pages that nobody saw on A. And the agents "
    "never saw B: whether they are right about changes at all is measured where the truth is known, on the demo shop "
    "(python -m benchmarks.ab; docs/demo_shop.md), and agents that had learnt from logs of A did badly there. Take it "
    "as a reason to test, or to look again, and not as the test."
)


def title(row: PagesRow) -> str:
    """Who answered, and how."""
    how = "by its probabilities" if row.draws is None else f"by {row.draws} replies to each page"
    return f"{row.label}, {how}, {row.steps:,} pages, in percent and points"


def shown(results: PagesResults, row: PagesRow) -> list[str]:
    """The kinds of action that anybody did or answered."""
    return [
        kind
        for kind, shift in row.shifts.items()
        if results.shoppers[kind] or shift.on_a or shift.on_b or not _is_still(shift.placebo)
    ]


def cells(results: PagesResults, row: PagesRow, kind: str) -> list[str]:
    """One kind of action, a cell for each heading."""
    shift = row.shifts[kind]
    found = shift.difference
    return [
        kind,
        f"{100 * results.shoppers[kind]:.1f}",
        f"{100 * shift.on_a:.1f}",
        f"{100 * shift.on_b:.1f}",
        _points(found.effect),
        "<.001" if found.holm_p_value < 0.001 else f"{found.holm_p_value:.3f}",
        "–" if found.could_be_seen is None else f"{100 * found.could_be_seen:.1f}",
        _marked(shift.placebo),
        "–" if shift.again is None else _marked(shift.again),
    ]


def sentences(results: PagesResults) -> Iterator[str]:
    """What the change touches, what each agent says of it, and what is to be known beside it."""
    yield (
        f"'{results.change}' touches {results.touched:,} of {results.looked_at:,} pages, of {results.users} users; "
        "agents are asked about those."
    )
    if results.learnt_from:
        yield (
            f"{results.learnt_from} of these users are in the train split: agents that learn have seen what they did."
        )
    yield from (f"{note[:1].upper()}{note[1:]}." for note in results.notes)
    for row in results.rows:
        if row.failed:
            where = "any page" if not row.steps else f"{row.failed} of {row.failed + row.steps} pages"
            said = "which are in no figure here; the same command asks again"
            yield f"{row.label}: no answer to {where}, {said}. The first: {row.first_error}."
        if row.shifts:
            yield f"{row.label}: {_said(row)}"
        yield from (f"{row.label}: {remark}" for remark in row.remarks)
    for label, shifts in results.pooled.items():
        moved = [f"{kind} {_interval(one.mean, one.low, one.high)} points" for kind, one in shifts.items() if one.mean]
        trainings = f"{next(iter(shifts.values())).seeds} trainings as one"
        yield f"{label}, {trainings}: {'; '.join(moved) or 'no shift'} (95%, over trainings and users)."


def _said(row: PagesRow) -> str:
    found = {kind: shift.difference for kind, shift in row.shifts.items()}
    told = {kind: one for kind, one in found.items() if one.told and abs(one.effect.difference) >= SMALLEST_SHOWN / 100}
    if all(map(_is_still, found.values())):
        said = "answers B exactly as A, on every page: it does not see this change, or does not mind it"
    elif told:
        said = "; ".join(f"{kind} {_points(one.effect)} points" for kind, one in told.items())
    else:
        said = "no shift of 0.1 points or more that can be told from chance"
    seen = [one.could_be_seen for kind, one in found.items() if one.could_be_seen and kind not in told]
    if seen:
        others = "others" if told else "kinds of action"
        said += f"; of the {others}, shifts from {_range(seen)} points on would have been found"
    return f"{said}. {_checked(row, told)}"


def _checked(row: PagesRow, told: dict[str, Difference]) -> str:
    """What the two checks say."""
    placebos = [kind for kind, shift in row.shifts.items() if shift.placebo.told]
    said = f"Placebo: {_alarms(placebos)}"
    small = [
        kind for kind in told if abs(row.shifts[kind].placebo.effect.difference) >= abs(told[kind].effect.difference)
    ]
    if small:
        said += f", and it moves {', '.join(small)} as far as the change does"
    again = {kind: shift.again for kind, shift in row.shifts.items() if shift.again is not None}
    if not again:
        return f"{said}. A against A: no chance is in its answers."
    return f"{said}. A against A: {_alarms([kind for kind, one in again.items() if one.told])}."


def _alarms(kinds: Sequence[str]) -> str:
    return f"a false alarm in {', '.join(kinds)}" if kinds else "no false alarm"


def _range(values: Sequence[float]) -> str:
    low, high = f"{100 * min(values):.1f}", f"{100 * max(values):.1f}"
    return low if low == high else f"{low} to {high}"


def _is_still(one: Difference) -> bool:
    return one.effect.difference == 0 and one.effect.low == one.effect.high


def markdown(results: PagesResults) -> str:
    """pages.md."""
    parts = ["# What would this change do?\n"]
    parts += [f"- {sentence}" for sentence in sentences(results)]
    for row in results.rows:
        if row.shifts:
            parts += [f"\n{title(row)}\n", _line(HEADINGS), "|---|" + "--:|" * (len(HEADINGS) - 1)]
            parts += [_line(cells(results, row, kind)) for kind in shown(results, row)]
    parts += [
        f"\n{LEGEND}\n",
        LIMITS,
    ]
    return "\n".join(parts) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _marked(one: Difference) -> str:
    return f"{_number(100 * one.effect.difference)}{' !' if one.told else ''}"


def _points(effect: Effect) -> str:
    return _interval(effect.difference, effect.low, effect.high)


def _interval(middle: float, low: float, high: float) -> str:
    shown = _number(100 * middle)
    return shown if low == high else f"{shown} [{_number(100 * low)}, {_number(100 * high)}]"


def _number(value: float) -> str:
    return "0.0" if abs(value) < SMALLEST_SHOWN else f"{value:+.1f}".replace("-", "−")
