"""Small line charts as SVG, written by hand: the training's curves and the reliability of probabilities.

Colours, widths and fonts stand in templates/report.css, so that a chart follows the page from light to dark. Lines
differ by dashes as well as by colour, and each panel's figures are in its title for who cannot see it.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from markupsafe import Markup, escape

from benchmarks.report.calibration import Calibration
from train.show.curves import Array, PhaseCurves, smoothed, smoothing_window
from train.show.panels import VALIDATION, Line, Panel, panels

__all__ = ["phase_charts", "reliability_chart"]

WIDTH, HEIGHT = 320, 190
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 10, 24
MOST_POINTS = 240  # of a line: more than that many pixels have no use
FIRST_SHOWN = ("Exact match", "Action reward", "Loss", "KL to the reference", "Groups", "Types of action", "Entropy")


def phase_charts(curves: PhaseCurves) -> list[tuple[Panel, Markup]]:
    """Each panel of a phase with its chart; those that are looked at first come first."""
    found = [panel for panel in panels(curves.figures) if _has_values(panel, curves)]
    places = {title: place for place, title in enumerate(FIRST_SHOWN)}
    found.sort(key=lambda panel: places.get(panel.title, len(places)))
    return [(panel, _panel_chart(panel, curves)) for panel in found]


def _has_values(panel: Panel, curves: PhaseCurves) -> bool:
    """A term of the reward that never gives anything has no panel."""
    names = [name for line in panel.lines for name in (line.figure, VALIDATION + line.figure)]
    rows = [curves.figures[name] for name in names if name in curves.figures]
    known = [row[np.isfinite(row)] for row in rows]
    return any(len(row) for row in known) and not (panel.is_term and not any(np.any(row) for row in known))


def _panel_chart(panel: Panel, curves: PhaseCurves) -> Markup:
    window = smoothing_window(len(curves.steps)) if panel.smooth else 1
    scale = 100.0 if panel.percent else 1.0
    drawn: list[tuple[Line, Array]] = []
    marks: list[Array] = []
    for line in panel.lines:
        if line.figure in curves.figures:
            drawn.append((line, scale * smoothed(curves.figures[line.figure], window)[0]))
        if VALIDATION + line.figure in curves.figures:
            marks.append(scale * curves.figures[VALIDATION + line.figure][0])
    frame = _Frame(curves.steps, [values for _, values in drawn] + marks)
    parts = [*frame.axes()]
    for line, values in drawn:
        parts.append(frame.line(values, f"line line-{line.colour}{' dashed' if line.dashed else ''}"))
    for values in marks:
        parts += frame.marks(values)
    legend = [line for line, _ in drawn if line.label]
    for place, line in enumerate(legend):
        parts.append(
            Markup('<text class="legend legend-{}" x="{}" y="{}">{}</text>').format(
                line.colour, LEFT + 6 + 70 * place, TOP + 8, line.label
            )
        )
    return _svg(_in_words(panel, curves.steps, drawn), parts)


def _in_words(panel: Panel, steps: Array, drawn: Sequence[tuple[Line, Array]]) -> str:
    said = []
    for line, values in drawn:
        known = values[np.isfinite(values)]
        if len(known):
            said.append(f"{line.label or panel.title}: from {known[0]:.4g} to {known[-1]:.4g}")
    return f"{panel.title}, {panel.unit}, {int(steps[-1])} steps. {'; '.join(said)}"


class _Frame:
    """The axes of a chart: from steps and values to places in it."""

    def __init__(self, steps: Array, rows: Sequence[Array]) -> None:
        self.steps = steps
        values = np.concatenate([row[np.isfinite(row)] for row in rows])
        low, high = float(values.min()), float(values.max())
        if low > 0 and low < 0.4 * high:
            low = 0.0
        if high - low < 1e-12:
            low, high = low - 0.5, high + 0.5
        self.ticks = _ticks(low, high)
        self.low, self.high = min(low, self.ticks[0]), max(high, self.ticks[-1])

    def x(self, step: float) -> float:
        first, last = float(self.steps[0]), float(self.steps[-1])
        return LEFT + (WIDTH - LEFT - RIGHT) * (step - first) / max(last - first, 1e-9)

    def y(self, value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (self.high - value) / (self.high - self.low)

    def axes(self) -> Iterator[Markup]:
        for tick in self.ticks:
            y = self.y(tick)
            yield Markup('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(
                LEFT, WIDTH - RIGHT, y, y
            )
            yield Markup('<text class="tick" text-anchor="end" x="{}" y="{:.1f}">{}</text>').format(
                LEFT - 5, y + 3.5, _short(tick)
            )
        for step, anchor in ((self.steps[0], "start"), (self.steps[-1], "end")):
            yield Markup('<text class="tick" text-anchor="{}" x="{:.1f}" y="{}">{}</text>').format(
                anchor, self.x(float(step)), HEIGHT - 8, f"{'step ' if anchor == 'start' else ''}{int(step):,}"
            )

    def line(self, values: Array, classes: str) -> Markup:
        """A path; where values are missing it has a gap."""
        stride = max(1, math.ceil(len(values) / MOST_POINTS))
        places = sorted({*range(0, len(values), stride), len(values) - 1})
        commands, move = [], True
        for place in places:
            if not math.isfinite(values[place]):
                move = True
                continue
            x, y = self.x(float(self.steps[place])), self.y(float(values[place]))
            commands.append(f"{'M' if move else 'L'}{x:.1f} {y:.1f}")
            move = False
        return Markup('<path class="{}" d="{}"/>').format(classes, "".join(commands))

    def marks(self, values: Array) -> Iterator[Markup]:
        """Validation: rare, so each value is a mark."""
        for place in np.flatnonzero(np.isfinite(values)):
            yield Markup('<circle class="mark" cx="{:.1f}" cy="{:.1f}" r="3"><title>{}</title></circle>').format(
                self.x(float(self.steps[place])),
                self.y(float(values[place])),
                f"validation, step {int(self.steps[place])}: {values[place]:.4g}",
            )


def _ticks(low: float, high: float) -> list[float]:
    """Three to six round values from at or below `low` to at or above `high`."""
    raw = (high - low) / 3
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def _short(value: float) -> str:
    """A tick's label: four figures at most.

    >>> [_short(value) for value in (0.0, 0.0025, 20000.0, 1500.0, -0.5)]
    ['0', '0.0025', '20k', '1500', '−0.5']
    """
    text = f"{value / 1000:g}k" if abs(value) >= 10_000 else f"{value:.4g}"
    return text.replace("-", "−")


def reliability_chart(found: Calibration) -> Markup:
    """Share right against probability, a dot a bin, its area the steps in it; on the diagonal is who is calibrated."""
    frame = _Frame(np.array([0.0, 1.0]), [np.array([0.0, 1.0])])
    frame.low, frame.high, frame.ticks = 0.0, 1.0, [0.0, 0.25, 0.5, 0.75, 1.0]
    parts: list[Markup] = []
    for tick in frame.ticks:
        y = frame.y(tick)
        parts.append(
            Markup('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(LEFT, WIDTH - RIGHT, y, y)
        )
        parts.append(
            Markup('<text class="tick" text-anchor="end" x="{}" y="{:.1f}">{:.0f}%</text>').format(
                LEFT - 5, y + 3.5, 100 * tick
            )
        )
        parts.append(
            Markup('<text class="tick" text-anchor="middle" x="{:.1f}" y="{}">{:.0f}%</text>').format(
                min(frame.x(tick), WIDTH - RIGHT - 12), HEIGHT - 8, 100 * tick
            )
        )
    ends = (frame.x(0.0), frame.y(0.0), frame.x(1.0), frame.y(1.0))
    parts.append(Markup('<line class="diagonal" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(*ends))
    most = max(one.steps for one in found.bins)
    parts += [
        Markup('<circle class="bin" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"><title>{}</title></circle>').format(
            frame.x(one.probability),
            frame.y(one.right),
            2.5 + 7 * math.sqrt(one.steps / most),
            f"{one.steps} steps held {100 * one.probability:.1f}% likely, {100 * one.right:.1f}% right",
        )
        for one in found.bins
    ]
    return _svg(f"Reliability over {found.steps} steps; expected calibration error {100 * found.error:.1f}%", parts)


def _svg(title: str, parts: Sequence[Markup]) -> Markup:
    head = Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
        WIDTH, HEIGHT, escape(title)
    )
    return head + Markup("").join(parts) + Markup("</svg>")
