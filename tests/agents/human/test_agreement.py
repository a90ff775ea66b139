"""Agreement among people, by tables counted by hand and by others' programs."""

from pathlib import Path
from random import Random

import pytest
from sklearn.metrics import cohen_kappa_score

from agents.human.__main__ import agreement_table, cohens_kappa, fleiss_kappa, main
from replay_sessions.schema import Click, Session, Step
from tests.agents.human.conftest import Serve, store_of

LEAVE = {"type": "terminate"}


def click(name: str) -> dict[str, str]:
    return {"type": "click", "name": name}


def test_cohens_kappa_is_that_of_scikit_learn() -> None:
    random = Random(1)
    for _ in range(50):
        pairs = [(random.choice("aab"), random.choice("abc")) for _ in range(30)]
        assert cohens_kappa(pairs) == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))


def test_cohens_kappa_of_a_table_counted_by_hand() -> None:
    """50 grants judged by two readers: 20 both yes, 15 both no, 5 and 10 otherwise; seen .7, chance .5, kappa .4."""
    pairs = [("yes", "yes")] * 20 + [("yes", "no")] * 5 + [("no", "yes")] * 10 + [("no", "no")] * 15
    assert cohens_kappa(pairs) == pytest.approx(0.4)


def test_fleiss_kappa_of_a_table_counted_by_hand() -> None:
    """Three people, four questions: seen (1 + 1/3 + 1 + 1/3) / 4 = 2/3, shares 7/12 and 5/12, chance 74/144."""
    rated = [{"a": 3}, {"a": 2, "b": 1}, {"b": 3}, {"a": 2, "b": 1}]
    assert fleiss_kappa(rated) == pytest.approx((2 / 3 - 74 / 144) / (1 - 74 / 144))


def test_fleiss_kappa_of_the_well_known_table_of_14_raters() -> None:
    table = [
        (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
    ]  # fmt: skip
    assert fleiss_kappa([dict(zip("abcde", row, strict=True)) for row in table]) == pytest.approx(0.210, abs=5e-4)


def test_where_all_answers_are_alike_there_is_no_kappa() -> None:
    assert cohens_kappa([("a", "a")] * 3) is None
    assert fleiss_kappa([{"a": 3}] * 2) is None
    assert cohens_kappa([]) is None
    assert fleiss_kappa([]) is None


def test_pairs_are_compared_where_both_answered_and_all_where_everybody_did() -> None:
    ada = {("s", 1): click("x"), ("s", 2): LEAVE, ("s", 3): click("y"), ("s", 4): click("x")}
    ben = {("s", 1): click("x"), ("s", 2): LEAVE, ("s", 3): click("z")}
    cleo = {("s", 2): click("x"), ("s", 3): LEAVE, ("s", 5): LEAVE}
    table = agreement_table({"ada": ada, "ben": ben, "cleo": cleo}, "three people")
    assert table.rows == [
        ["ada, ben", 3, pytest.approx(2 / 3), 1.0, "1.000"],
        ["ada, cleo", 2, 0.0, 0.0, "-1.000"],
        ["ben, cleo", 2, 0.0, 0.0, "-1.000"],
    ]
    # Two steps, each with two answers of one type and one of the other: seen 1/3, chance 1/2.
    kappa = (1 / 3 - 1 / 2) / (1 - 1 / 2)
    assert table.notes == [f"Fleiss' kappa of types over all 3 people, at the 2 steps that all answered: {kappa:.3f}"]


def test_the_command_tells_it(serve: Serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = '<a name="a">a</a><a name="b">b</a>'
    steps = tuple(Step(page=page, action=Click(name="a"), rationale=str(number)) for number in range(5))
    session = Session(session_id="one", user_id="u", steps=steps, source="planted", official_split="test")
    store = store_of(tmp_path / "store", [session])
    answers = {"ada": [click("a"), click("a"), click("b"), LEAVE], "ben": [click("a"), click("b"), LEAVE, LEAVE]}
    for person, given in answers.items():
        if person == "ben":
            assert main(["agreement", str(tmp_path / "people")]) == 2
            assert "1 of at least 2 people" in capsys.readouterr().err
        client = serve(store, person=person)
        for number, action in enumerate(given):
            assert client.predict(number, action)[0] == 200
    assert main(["agreement", str(tmp_path / "people")]) == 0
    told = capsys.readouterr().out
    assert [line.split() for line in told.splitlines() if "ada, ben" in line] == [
        ["ada,", "ben", "4", "50.0", "75.0", "0.500"]
    ]
    assert "at the 4 steps that all answered: 0.467" in told
