"""A table's figures and what is said of their order, from hand-made records, by hand."""

from collections.abc import Sequence

import msgspec
import pytest

from benchmarks.paper.figures import Measured, Pooled
from benchmarks.paper.orders import further_differences, in_short, orders, sentences, verdict
from benchmarks.paper.published import PaperColumn, PaperRow, PaperTable
from replay_sessions.errors import BadConfig
from shop_env.metrics import StepRecord

T_1 = 12.7062  # the 97.5% point of Student's t with one degree of freedom
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
    return Measured(seeds, same_users=same_users, preset="shop_r1")


def exact(found: Measured, row: str = "row") -> Pooled:
    pooled = found.figure(row, "exact_accuracy")
    assert pooled is not None
    return pooled


def test_of_one_seed_the_interval_is_over_users() -> None:
    # The first user's rows differ by 1, the second's by 0: SE² = (.5² + .5²) / (2 · 1) = .25.
    difference = measured({"one": records("++", "+-"), "other": records("--", "+-")}).difference(
        "one", "other", "exact_accuracy"
    )
    assert difference is not None
    assert (difference.low, difference.high) == pytest.approx((0.5 - T_1 * 0.5, 0.5 + T_1 * 0.5), rel=1e-4)
    assert difference.sign == 0


def test_over_seeds_with_people_of_their_own_it_is_between_the_seeds() -> None:
    seeds = [
        {"one": records("++", "++"), "other": records("--", "--")},
        {"one": records("++", "++"), "other": records("--", "+-")},
    ]
    difference = measured(*seeds).difference("one", "other", "exact_accuracy")
    assert difference is not None
    # 1 and .75: the mean is .875, the variance of the two .03125, that of their mean half of it.
    assert (difference.value, difference.by_seed) == (0.875, [1.0, 0.75])
    assert (difference.low, difference.high) == pytest.approx((0.875 - T_1 * 0.125, 0.875 + T_1 * 0.125), rel=1e-4)


def test_over_seeds_with_the_same_people_the_people_come_on_top() -> None:
    seeds = [
        {"one": records("++", "++"), "other": records("--", "--")},
        {"one": records("++", "++"), "other": records("--", "+-")},
    ]
    difference = measured(*seeds, same_users=True).difference("one", "other", "exact_accuracy")
    assert difference is not None
    # Users: SE² is 0 in the first seed and, of 1 and .5, .0625 in the second; their mean .03125.
    reach = T_1 * (0.03125 + 0.125**2) ** 0.5
    assert (difference.low, difference.high) == pytest.approx((0.875 - reach, 0.875 + reach), rel=1e-4)


def test_a_figure_is_the_mean_over_seeds_and_no_share_leaves_its_range() -> None:
    found = exact(measured({"row": records("++", "+-")}, {"row": records("+-", "+-")}))
    assert (found.value, found.by_seed) == (0.625, [0.75, 0.5])
    assert (found.low, found.high) == (0.0, 1.0)  # ±1.59 by the formula


def test_a_figure_that_a_seed_cannot_tell_is_none() -> None:
    found = measured({"row": records("++", "+-")}, {"row": records("+-", "+-")})
    assert found.figure("row", "exact_accuracy_terminate") is None
    assert found.difference("row", "row", "exact_accuracy_terminate") is None


def test_one_person_gives_a_figure_without_an_interval() -> None:
    assert exact(measured({"row": records("++-+")})) == Pooled(value=0.75, low=None, high=None, by_seed=[0.75])


def test_steps_without_a_reply_are_left_out_for_all_rows_and_counted() -> None:
    found = measured({"row": records("+-+", "+!"), "sharp": records("+!!", "++")})
    assert exact(found).value == 1.0  # on the two steps that both answered
    assert exact(found, "sharp").value == 1.0
    tested = found.tested()
    assert (tested.steps, tested.left_out, tested.users, tested.sessions) == (2, 3, 2, 2)


def test_people_count_once_where_all_seeds_have_the_same() -> None:
    seeds = [{"row": records("+", "-")}] * 3
    assert measured(*seeds, same_users=True).tested().users == 2
    assert measured(*seeds).tested().users == 6


def test_rows_of_other_steps_are_refused() -> None:
    with pytest.raises(BadConfig, match="'one' and 'other' were not asked about the same steps: 1 steps"):
        measured({"one": records("++"), "other": records("+")})
    with pytest.raises(BadConfig, match="no step that every row answered"):
        measured({"one": records("+!"), "other": records("!+")})


def test_how_often_a_type_is_predicted_less_logged() -> None:
    left = records("++", "++", predicted=LEAVE, logged=LEAVE)
    clicked = [msgspec.structs.replace(record, session_id=f"c{record.session_id}") for record in records("+-", "++")]
    malformed = msgspec.structs.replace(left[0], predicted=None)
    found = measured({"row": [malformed, *left[1:], *clicked]})

    def value(name: str) -> float:
        pooled = found.figure("row", name, signed=True)
        assert pooled is not None
        return pooled.value

    assert (value("logged_share_terminate"), value("predicted_share_terminate")) == (0.5, 0.375)
    assert value("predicted_less_logged_terminate") == -0.125
    assert (value("logged_share_other"), value("predicted_share_other")) == (0.0, 0.125)
    assert found.figure("row", "type_accuracy_other") is None


def pooled(value: float, reach: float) -> Pooled:
    return Pooled(value=value, low=value - reach, high=value + reach, by_seed=[value])


@pytest.mark.parametrize(
    ("here", "published", "said"),
    [
        (pooled(0.1, 0.05), 0.01, "as in the paper"),
        (pooled(-0.1, 0.05), -0.2, "as in the paper"),
        (pooled(0.1, 0.05), -0.01, "the other way round"),
        (pooled(-0.1, 0.05), 0.2, "the other way round"),
        (pooled(0.1, 0.1), 0.2, "not told apart"),
        (pooled(-0.01, 0.05), 0.2, "not told apart"),
        (Pooled(value=0.1, low=None, high=None, by_seed=[0.1]), 0.2, "not told apart"),
    ],
)
def test_an_order_is_told_only_where_the_interval_tells_it(here: Pooled, published: float, said: str) -> None:
    assert verdict(here, published) == said


def table(*rows: PaperRow, signed: bool = False, compared: Sequence[tuple[str, str]] = ()) -> PaperTable:
    column = PaperColumn(metric="exact_accuracy", heading="exact", signed=signed)
    return PaperTable(
        title="t", paper="shop_r1", rows_file="r", columns=[column], rows=list(rows), compared=list(compared)
    )


def row(label: str, *published: float) -> PaperRow:
    return PaperRow(label=label, phase=label, published={"3B": list(published)} if published else {})


def test_every_pair_of_published_rows_is_judged_and_only_what_differs_is_told_at_length() -> None:
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
    judged = orders(papers, found)
    assert {(one.first, one.second): dict(one.verdicts) for one in judged} == {
        ("b", "a"): {"3B": "the other way round"},
        ("c", "a"): {},  # the paper's two are equal
        ("c", "b"): {"3B": "as in the paper"},
    }
    first, *others = sentences(judged, papers.columns, "3B")
    assert (
        first
        == "exact, pairs of rows beside the paper's 3B: 1 as in the paper, 1 the other way round, 0 not told apart."
    )
    (told,) = others
    # 19 users differ by .5, one by 0: SE² = (19 · .025² + .475²) / (20 · 19) = .025²; t(19) is 2.093.
    assert told == "  b − a: +47.5 [+42.3, +52.7] here, −5.0 there."
    assert in_short(judged, papers.columns, "3B") == (
        "beside the paper's 3B (as in the paper / the other way round / not told apart): exact 1/1/0."
    )
    (further,) = further_differences(papers, found)
    assert (further.first, further.second, further.here.value, further.published) == ("c", "x", 0.0, {})


def test_a_signed_figure_is_judged_by_its_own_sign() -> None:
    found = measured({"a": records(*["+-"] * 19, "--")})
    (judged,) = orders(table(row("a", -3.0), signed=True), found)
    assert judged.second is None
    assert judged.verdicts == {"3B": "the other way round"}


@pytest.mark.parametrize(
    ("rows", "compared", "said"),
    [
        ([row("a", 1.0), row("a", 2.0)], [], "two rows are labelled 'a'"),
        ([row("a", 1.0, 2.0)], [], "2 figures for 1 columns"),
        ([row("a", 1.0)], [("a", "b")], "no row 'b'"),
        ([PaperRow(label="a", phase="p", variant="small")], [], "of variant 'small'"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(
    rows: list[PaperRow], compared: list[tuple[str, str]], said: str
) -> None:
    with pytest.raises(BadConfig, match=said):
        table(*rows, compared=compared)
