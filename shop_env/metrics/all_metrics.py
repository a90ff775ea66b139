"""All figures of a run by name: where the metrics of the other modules come together.

    step_metrics(records, preset="shop_r1")["exact_accuracy"]

A metric without a step to stand on (no logged click, no reward) is left out.

The figures over steps: exact action accuracy, type accuracy, type F1, each also per type, and their kin.

| name | formula | range | source |
|---|---|---|---|
| `exact_accuracy` | share of steps with every field of the action equal, of those whose fields were all logged | 0–1 | Shop-R1, section 4.1 |
| `exact_accuracy_similar_text` | the same, typed text of ROUGE-L ≥ τ counted as equal | 0–1 | Shop-R1, section 4.1: "similar meaning" |
| `exact_accuracy_<type>` | share among steps of that logged type | 0–1 | Shop-R1, table 3 |
| `type_accuracy`, `type_accuracy_<type>` | share with the logged type | 0–1 | Shop-R1, tables 2 and 3 |
| `type_f1_<type>` | 2·TP / (2·TP + FP + FN) | 0–1 | van Rijsbergen 1979 |
| `type_f1_macro` | mean of those over the types that are logged or predicted | 0–1 | Customer-R1, section 4.2 |
| `type_f1_weighted` | their mean weighed by how often a type is logged | 0–1 | OPeRA |
| `type_f1` | the preset's choice of the two | 0–1 | as there |
| `fine_type_accuracy` | share with the logged kind of click, or type off clicks | 0–1 | Customer-R1, section 4.2 |
| `click_rule_agreement` | share of logged clicks whose kind by the rule on their name is the log's own; not a property of the agent | 0–1 | of this project |
| `click_type_f1_weighted` | weighted F1 of the kind of click, over logged clicks | 0–1 | OPeRA |
| `invalid_rate` | share of replies that cannot be read | 0–1 | of this project |
| `mean_reward` | mean reward, self-certainty aside | as the reward | Shop-R1, table 1 |
| `outcome_f1_weighted` | F1 of the two outcomes, weighed by how often each is logged; a reply that is neither misses | 0–1 | Customer-R1, section 4.2 |

`outcome_f1_weighted` is over whole sessions: does the shopper buy or terminate? Customer-R1, section 4.2, "session outcome F1": sessions of OPeRA end in a click on something to do with purchasing or
in `terminate`; the prediction is the reply to the last logged step. Sessions that end otherwise (other logs have them)
have no outcome and are not counted.

Beyond the papers, how likely the logged action was to the agent (StepRecord.logged_probability, .logged_rank,
.terminate_probability), when it stops, and how its reasons read. Steps without probabilities are not counted, except
that stopping falls back on what was predicted. The floor of `nll` keeps it finite: one step held impossible costs 13.8
nats, whatever the number of candidates.

| name | formula | range | source |
|---|---|---|---|
| `nll` | mean of -ln max(p, 1e-6), p the probability of the logged action (0 if the agent gives it none) | 0–13.8 | Good 1952 |
| `top1_accuracy`, `top3_accuracy`, `top5_accuracy` | share of steps with the logged action among the k likeliest of the page's actions | 0–1 | of this project |
| `stop_brier` | mean of (p(terminate) - [the shopper terminated])²; without probabilities p is 1 or 0 | 0–1 | Brier 1950 |
| `stop_too_early` | share, among steps at which the shopper went on, of those where the agent answers terminate | 0–1 | of this project |
| `stop_too_late` | share, among steps at which the shopper terminated, of those where the agent does not | 0–1 | of this project |
| `rationale_similarity` | mean ROUGE-L of the rationale with the logged one, where there is one; unreadable: 0 | 0–1 | Lin 2004 |

A Metric gives each step's addends (shares, confusion matrices) and turns their sums into a value, so that intervals.py
needs only the sums of each user's steps.
"""  # noqa: E501 - a table cannot be wrapped

import math
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import numpy as np

from replay_sessions.foundation.errors import BadConfig, did_you_mean
from replay_sessions.foundation.plugins import load_measure
from shop_env.metrics.action_likelihood import SMALLEST
from shop_env.metrics.statistics import Codes, Floats
from shop_env.metrics.step_table import (
    ACTION_TYPES,
    FINE_TYPES,
    INVALID,
    MetricChoices,
    StepRecord,
    StepTable,
)
from shop_env.reward.similarity import rouge_l

ANY = (-math.inf, math.inf)  # the bounds of what has none


class Metric(msgspec.Struct, frozen=True):
    """A figure over steps.

    Attributes:
        statistics: Each step's addends, shape (steps, k); they are multiplied by the table's weights.
        value: From sums of shape (..., k) to the figure, shape (...); NaN where there is nothing to count.
        counted: From sums to how many steps are counted, shape (...): all entries of a confusion matrix together.
        bounds: Between which the value lies, and so its interval.
    """

    statistics: Callable[[StepTable], Floats]
    value: Callable[[Floats], Floats]
    counted: Callable[[Floats], Floats] = lambda sums: sums.sum(axis=-1)
    bounds: tuple[float, float] = (0.0, 1.0)

    @property
    def difference_bounds(self) -> tuple[float, float]:
        low, high = self.bounds
        return low - high, high - low

    def rows(self, table: StepTable) -> Floats:
        """The weighted addends, shape (steps, k)."""
        return self.statistics(table) * table.weights[:, None]

    def total(self, rows: Floats) -> float:
        """The figure of all rows of addends together."""
        return float(self.value(rows.sum(axis=0)))


def ratio(
    above: Callable[[StepTable], Floats],
    below: Callable[[StepTable], Floats],
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Metric:
    """Σ above / Σ below; steps where `above` is NaN count on neither side."""

    def statistics(table: StepTable) -> Floats:
        numerator, denominator = above(table), below(table)
        defined = ~np.isnan(numerator)
        return np.stack([np.where(defined, numerator, 0.0), np.where(defined, denominator, 0.0)], axis=1)

    return Metric(statistics, lambda sums: divide(sums[..., 0], sums[..., 1]), lambda sums: sums[..., 1], bounds)


def share(hits: Callable[[StepTable], Floats], bounds: tuple[float, float] = (0.0, 1.0)) -> Metric:
    """The mean of `hits` over steps; steps where it is NaN are not counted."""
    return ratio(hits, lambda table: np.ones(len(table)), bounds)


def confusion(logged: Codes, predicted: Codes, classes: int, counted: Floats) -> Floats:
    """Each step's entry in the confusion matrix, flattened to (steps, classes · (classes + 1)).

    The last column is for predictions outside the classes; `counted` is what a step counts, 0 to leave it out.
    """
    rows = np.zeros((len(logged), classes * (classes + 1)))
    rows[np.arange(len(logged)), logged * (classes + 1) + predicted] = counted
    return rows


def f1_by_class(sums: Floats) -> Floats:
    """2·TP / (2·TP + FP + FN) from summed `confusion` rows; NaN for a class neither logged nor predicted."""
    matrix = _matrix(sums)
    hits = np.diagonal(matrix, axis1=-2, axis2=-1)
    return divide(2 * hits, matrix.sum(axis=-1) + matrix[..., :-1].sum(axis=-2))


def weighted_f1(sums: Floats) -> Floats:
    """The mean of F1 by class, weighed by how often a class is logged."""
    support = _matrix(sums).sum(axis=-1)
    return divide(np.nansum(f1_by_class(sums) * support, axis=-1), support.sum(axis=-1))


def macro_f1(sums: Floats, *, outside_is_a_class: bool) -> Floats:
    """The mean of F1 over the classes that are logged or predicted.

    `outside_is_a_class` adds one for predictions outside the classes, where there are any: its F1 is 0.
    """
    scores = f1_by_class(sums)
    present = (~np.isnan(scores)).sum(axis=-1).astype(np.float64)
    if outside_is_a_class:
        present = present + (_matrix(sums)[..., -1].sum(axis=-1) > 0)
    return divide(np.nansum(scores, axis=-1), present)


def equal(left: Codes, right: Codes | int) -> Floats:
    """1 where equal, 0 elsewhere."""
    hits: Floats = np.equal(left, right).astype(np.float64)
    return hits


def divide(above: Floats, below: Floats) -> Floats:
    """above / below, NaN where `below` is 0."""
    quotient: Floats = np.divide(above, below, out=np.full(np.shape(above), np.nan), where=np.asarray(below) > 0)
    return quotient


def _matrix(sums: Floats) -> Floats:
    """Rows are logged classes, columns predicted ones and, last, what lies outside."""
    classes = math.isqrt(sums.shape[-1])
    matrix: Floats = sums.reshape(*sums.shape[:-1], classes, classes + 1)
    return matrix


OUTCOMES = ("purchase", "terminate")
_NEITHER = len(OUTCOMES)
_TERMINATE = ACTION_TYPES.index("terminate")


def step_metrics(records: Sequence[StepRecord], preset: str | MetricChoices = "shop_r1") -> dict[str, float]:
    """All figures of a run, with the counts it stands on.

    `steps`, `sessions` and `users` are what was scored; `errors` counts steps without a reply, and `unscored_targets`
    those of the scored steps whose logged action lacks a field: only their type can be right or wrong.
    """
    table = StepTable(records, preset)
    values = {name: metric.total(metric.rows(table)) for name, metric in all_metrics(table.choices).items()}
    return {
        "steps": float(len(table)),
        "sessions": float(table.clusters("session")[1]),
        "users": float(table.clusters("user")[1]),
        "errors": float(table.errors),
        "unscored_targets": float(len(table) - table.scorable.sum()),
    } | {name: value for name, value in values.items() if not math.isnan(value)}


def find_metric(name: str, choices: MetricChoices) -> Metric:
    """The metric of that name."""
    metrics = all_metrics(choices)
    if name not in metrics:
        raise BadConfig(f"Unknown metric {name!r}. {did_you_mean(name, metrics)}")
    return metrics[name]


def all_metrics(choices: MetricChoices) -> dict[str, Metric]:
    """Every metric by name, counted as `choices` say."""
    metrics = {
        "exact_accuracy": share(lambda table: table.exact),
        "exact_accuracy_similar_text": share(lambda table: table.exact_similar),
        "type_accuracy": share(_type_hits),
        "type_f1_macro": Metric(_type_confusion, partial(macro_f1, outside_is_a_class=choices.invalid == "own_class")),
        "type_f1_weighted": Metric(_type_confusion, weighted_f1),
        "fine_type_accuracy": share(
            lambda table: np.where(table.fine_known, equal(table.logged_fine, table.predicted_fine), np.nan)
        ),
        "click_rule_agreement": share(lambda table: table.rule_agrees),
        "click_type_f1_weighted": Metric(_click_confusion, weighted_f1),
        "invalid_rate": share(lambda table: equal(table.predicted_type, INVALID)),
        "mean_reward": share(lambda table: table.reward, ANY),
    }
    metrics["type_f1"] = metrics[f"type_f1_{choices.f1}"]
    for code, kind in enumerate(ACTION_TYPES):
        metrics |= _per_type(code, kind)
    for k in (1, 3, 5):
        metrics[f"top{k}_accuracy"] = share(_is_among_first(k))
    return metrics | {
        "outcome_f1_weighted": Metric(_outcome_confusion, weighted_f1),
        "nll": share(lambda table: -np.log(np.maximum(table.logged_probability, SMALLEST)), (0.0, math.inf)),
        "stop_brier": share(
            lambda table: (
                (
                    np.where(np.isnan(table.terminate_probability), _terminates(table), table.terminate_probability)
                    - _terminated(table)
                )
                ** 2
            )
        ),
        "stop_too_early": ratio(
            lambda table: _terminates(table) * (1 - _terminated(table)), lambda table: 1 - _terminated(table)
        ),
        "stop_too_late": ratio(lambda table: (1 - _terminates(table)) * _terminated(table), _terminated),
        "rationale_similarity": share(_rationale_similarity),
        **{name: share(partial(StepTable.numbers, value=load_measure("metrics", name)), ANY) for name in choices.own},
    }


def _per_type(code: int, kind: str) -> dict[str, Metric]:
    def logged(table: StepTable) -> Floats:
        return equal(table.logged_type, code)

    return {
        f"exact_accuracy_{kind}": ratio(lambda table: table.exact * logged(table), logged),
        f"type_accuracy_{kind}": ratio(lambda table: _type_hits(table) * logged(table), logged),
        f"type_f1_{kind}": Metric(_type_confusion, lambda sums: f1_by_class(sums)[..., code]),
    }


def _type_hits(table: StepTable) -> Floats:
    return equal(table.logged_type, table.predicted_type)


def _type_confusion(table: StepTable) -> Floats:
    return confusion(table.logged_type, table.predicted_type, len(ACTION_TYPES), np.ones(len(table)))


def _click_confusion(table: StepTable) -> Floats:
    clicks = equal(table.logged_type, ACTION_TYPES.index("click")) * table.fine_known
    return confusion(table.logged_fine, table.predicted_fine, len(FINE_TYPES), clicks)


def _outcome_confusion(table: StepTable) -> Floats:
    codes = np.array([OUTCOMES.index(name) if name in OUTCOMES else _NEITHER for name in (*FINE_TYPES, "invalid")])
    logged, predicted = codes[table.logged_fine], codes[table.predicted_fine]
    counted = table.last * (logged != _NEITHER) / table.weights  # a session counts once, however steps are weighed
    return confusion(np.minimum(logged, _NEITHER - 1), predicted, len(OUTCOMES), counted)


def _is_among_first(k: int) -> Callable[[StepTable], Floats]:
    return lambda table: np.where(np.isnan(table.logged_rank), np.nan, table.logged_rank <= k)


def _terminated(table: StepTable) -> Floats:
    return equal(table.logged_type, _TERMINATE)


def _terminates(table: StepTable) -> Floats:
    return equal(table.predicted_type, _TERMINATE)


def _rationale_similarity(table: StepTable) -> Floats:
    return table.numbers(
        lambda record: (
            rouge_l(record.predicted_rationale or "", record.logged_rationale) if record.logged_rationale else None
        )
    )
