"""A table's figures and what is said of their order, from hand-made records, by hand."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from benchmarks.sweep.file import ColumnSpec, RowSpec, RunSpec, Sweep
from benchmarks.sweep.orders import Order, compare_rows, find_orders, sentences
from benchmarks.sweep.pooling import Measured
from benchmarks.sweep.type_shares import TYPE_SHARES
from replay_sessions.foundation.errors import BadConfig
from shop_env.metrics import StepRecord
from shop_env.metrics.over_seeds import Pooled

T_2, T_8 = 4.30265, 2.30600  # the 97.5% points of Student's t with two and eight degrees of freedom
CLICK, LEAVE = {"type": "click", "name": "a"}, {"type": "terminate"}


def records(*users: str, predicted: dict[str, str] = CLICK, logged: dict[str, str] = CLICK) -> list[StepRecord]:
    """A session for each user: `+` a step that was predicted right, `-` one that was not, `!` one without a reply."""
    return [
        StepRecord(
            session_id=f"s{user}",
            user_id=f"u{user}",
            step_index=place,
            step_count=len(steps),
            logged=logged,
            predicted=predicted if step == "+" else {"type": "click", "name": "other"} if step == "-" else None,
            error="AgentFailed: too long" if step == "!" else None,
        )
        for user, steps in enumerate(users)
        for place, step in enumerate(steps)
    ]


def measured(*seeds: dict[str, list[StepRecord]], same_users: bool = False) -> Measured:
    return Measured(seeds, same_users=same_users, preset="shop_r1", further=TYPE_SHARES)


def exact(found: Measured, row: str = "row") -> Pooled:
    pooled = found.figure(row, "exact_accuracy")
    assert pooled is not None
    return pooled


def difference(*seeds: list[StepRecord], same_users: bool = False) -> Pooled:
    """Of what is given from a row that has nothing right."""
    users = len({record.user_id for record in seeds[0]})
    nothing = records(*["----"] * users)
    found = measured(*({"one": given, "other": nothing} for given in seeds), same_users=same_users)
    pooled = found.difference("one", "other", "exact_accuracy")
    assert pooled is not None
    return pooled


def interval(pooled: Pooled) -> tuple[float | None, float | None]:
    return pooled.low, pooled.high


def around(value: float, reach: float) -> Any:
    return pytest.approx((value - reach, value + reach), rel=1e-4)


def test_over_seeds_with_the_same_people_the_people_come_on_top():
    some, even = records(*["++--"] * 3, *["+---"] * 6), records(*["+---"] * 9)
    found = difference(some, some, even, same_users=True)
    # Seeds: 1/3, 1/3 and 1/4, variance of the mean 1/1296. Users: SE² is 1/576, 1/576 and 0, on average 1/864.
    assert found.value == pytest.approx(11 / 36)
    assert interval(found) == around(11 / 36, (T_8**2 / 864 + T_2**2 / 1296) ** 0.5)
    assert interval(difference(some, some, even)) == around(11 / 36, T_2 / 36)


def test_a_figure_is_the_mean_over_seeds_and_nothing_leaves_its_range():
    seeds = [records(*["++"] * 4, *["+-"] * 4), records(*["+-"] * 8)]
    found = exact(measured({"row": seeds[0]}, {"row": seeds[1]}))
    assert (found.value, found.by_seed) == (0.625, [0.75, 0.5])
    assert 0 < found.low < 0.01 and 0.99 < found.high < 1  # ±1.59 by the formula
    nothing = records(*["--"] * 8)
    apart = measured({"one": seeds[0], "other": nothing}, {"one": nothing, "other": nothing}).difference(
        "one", "other", "exact_accuracy"
    )
    assert (apart.value, apart.low, apart.high) == (0.375, -1.0, 1.0)


def test_a_figure_that_a_seed_cannot_tell_is_none():
    found = measured({"row": records("++", "+-")}, {"row": records("+-", "+-")})
    assert found.figure("row", "exact_accuracy_terminate") is None
    assert found.difference("row", "row", "exact_accuracy_terminate") is None


def test_one_person_gives_a_figure_without_an_interval():
    assert exact(measured({"row": records("++-+")})) == Pooled(value=0.75, low=None, high=None, by_seed=[0.75])


def test_steps_without_a_reply_are_left_out_for_all_rows_and_counted():
    found = measured({"row": records("+-+", "+!"), "sharp": records("+!!", "++")})
    assert exact(found).value == 1.0  # on the two steps that both answered
    assert exact(found, "sharp").value == 1.0
    tested = found.tested()
    assert (tested.steps, tested.left_out, tested.users, tested.sessions) == (2, 3, 2, 2)


def test_people_count_once_where_all_seeds_have_the_same():
    seeds = [{"row": records("+", "-")}] * 3
    assert measured(*seeds, same_users=True).tested().users == 2


def test_rows_of_other_steps_are_refused():
    with pytest.raises(BadConfig, match="'one' and 'other' were not evaluated on the same steps: 1 steps"):
        measured({"one": records("++"), "other": records("+")})
    with pytest.raises(BadConfig, match="no step that every row answered"):
        measured({"one": records("+!"), "other": records("!+")})


def test_share_predicted_minus_share_logged_of_a_type():
    left = records("++", "++", predicted=LEAVE, logged=LEAVE)
    clicked = [msgspec.structs.replace(record, session_id=f"c{record.session_id}") for record in records("+-", "++")]
    malformed = msgspec.structs.replace(left[0], predicted=None)
    found = measured({"row": [malformed, *left[1:], *clicked]})

    def value(name: str) -> float:
        pooled = found.figure("row", name)
        return pooled.value

    assert (value("logged_share_terminate"), value("predicted_share_terminate")) == (0.5, 0.375)
    assert value("predicted_less_logged_terminate") == -0.125
    assert (value("logged_share_other"), value("predicted_share_other")) == (0.0, 0.125)
    assert found.figure("row", "type_accuracy_other") is None


def pooled(value: float, reach: float) -> Pooled:
    p_value = 0.01 if abs(value) > reach else 0.5
    return Pooled(value=value, low=value - reach, high=value + reach, by_seed=[value], p_value=p_value)


@pytest.mark.parametrize(
    ("here", "published", "said"),
    [
        (pooled(0.1, 0.05), 0.01, "as in the paper"),
        (pooled(-0.1, 0.05), -0.2, "as in the paper"),
        (pooled(0.1, 0.05), -0.01, "opposite"),
        (pooled(-0.1, 0.05), 0.2, "opposite"),
        (pooled(0.1, 0.1), 0.2, "not significant"),
        (pooled(-0.01, 0.05), 0.2, "not significant"),
        (Pooled(value=0.1, low=None, high=None, by_seed=[0.1]), 0.2, "not significant"),
    ],
)
def test_an_order_is_told_only_where_the_interval_tells_it(here, published, said):
    order = Order(metric="m", heading="m", first="a", second="b", here=here, published={"3B": published})
    assert order.verdict("3B") == said


def table(*rows: RowSpec, signed: bool = False, compared: Sequence[tuple[str, str]] = ()) -> Sweep:
    column = ColumnSpec(metric="exact_accuracy", heading="exact", signed=signed)
    return Sweep(title="t", run=(RunSpec(),), column=(column,), row=rows, compare=tuple(compared))


def row(label: str, *published: float) -> RowSpec:
    return RowSpec(label=label, phase=label, published={"3B": list(published)} if published else {})


def test_every_pair_of_published_rows_is_judged():
    users = 20
    found = measured(
        {
            "a": records(*["--"] * users),
            "b": records(*["+-"] * (users - 1), "--"),
            "c": records(*["++"] * (users - 1), "+-"),
            "x": records(*["++"] * (users - 1), "+-"),
            "floor": records(*["--"] * users),
        }
    )
    papers = table(row("a", 10.0), row("b", 5.0), row("c", 10.0), row("x"), compared=[("c", "x")])
    judged = find_orders(papers, found)
    assert {(one.first, one.second): one.verdict("3B") for one in judged} == {
        ("b", "a"): "opposite",
        ("c", "a"): None,  # the paper's two are equal
        ("c", "b"): "as in the paper",
    }
    first, *others = sentences(judged, papers.column, "3B")
    assert (
        first == "exact, pairs of rows compared with the paper's 3B: 1 as in the paper, 1 opposite, 0 not significant."
    )
    (told,) = others
    # 19 users differ by .5, one by 0: SE² = (19 · .025² + .475²) / (20 · 19) = .025²; t(19) is 2.093.
    assert told == "b − a: +47.5 [42.3, 52.7] here, −5.0 in the paper."
    (compared,) = compare_rows(papers, found)
    assert (compared.first, compared.second, compared.difference) == ("c", "x", 0.0)


def test_a_signed_figure_is_judged_by_its_own_sign():
    found = measured({"a": records(*["+-"] * 19, "--")})
    (judged,) = find_orders(table(row("a", -3.0), signed=True), found)
    assert judged.second is None
    assert judged.verdict("3B") == "opposite"


@pytest.mark.parametrize(
    ("rows", "compared", "said"),
    [
        ([row("a", 1.0), row("a", 2.0)], [], "two rows are called 'a'"),
        ([row("a", 1.0, 2.0)], [], "2 values, 1 columns"),
        ([row("a", 1.0)], [("a", "b")], "no row 'b'"),
        ([RowSpec(label="a", phase="p", run="small")], [], "of run 'small'"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(rows, compared, said):
    with pytest.raises(BadConfig, match=said):
        table(*rows, compared=compared)
