"""Relations of choices to the session so far, and cross-fitted counts of transitions."""

from collections import Counter
from collections.abc import Sequence
from math import isnan, log
from pathlib import Path
from random import Random
from zlib import crc32

import msgspec
import pytest

from replay_sessions.schema import Action, Click, Session, Step, Terminate, reply_action
from replay_sessions.store.splits import SplitPlan
from shop_env.choices.facts import OfferReader
from shop_env.choices.reader import ChoicePage
from shop_env.choices.relations import RELATIONS
from shop_env.choices.transitions import FOLDS, PULL, TransitionCounts, heading_of, outcome_of
from shop_env.observation import observe_session
from shop_env.train_view import TrainView
from tests.stores import store_at

ITEMS = [f"results.p{number}.view_product" for number in range(6)]


def page_of(names: Sequence[str], heading: str = "A") -> str:
    cards = "".join(
        f'<li><a name="{name}">{name}</a><span>${10 + number}</span></li>' for number, name in enumerate(names)
    )
    return f'<h1>{heading}</h1><ul>{cards}</ul><a name="menu.cart">Cart</a>'


def session_of(actions: Sequence[str], number: int = 0, *, page: str | None = None) -> Session:
    steps: list[Action] = [Click(name=name) if name else Terminate() for name in actions]
    return Session(
        session_id=f"s{number}",
        user_id=f"u{number}",
        source="planted",
        official_split="train",
        steps=tuple(Step(page=page or page_of(ITEMS), action=action) for action in steps),
    )


def random_sessions(count: int) -> list[Session]:
    random = Random(0)
    return [session_of(random.choices(ITEMS, k=6), number) for number in range(count)]


@pytest.fixture(scope="module")
def view(tmp_path_factory) -> TrainView:
    path: Path = tmp_path_factory.mktemp("relations") / "store"
    return TrainView(store_at(path, random_sessions(30), splits=SplitPlan(by="official")))


@pytest.fixture(scope="module")
def reader(view) -> OfferReader:
    return OfferReader(view)


def relations_of(page: ChoicePage, name: str) -> dict[str, float]:
    (choice,) = (choice for choice in page.choices if choice.action == Click(name=name))
    return dict(zip(RELATIONS, choice.relations, strict=True))


def read_last(reader: OfferReader, actions: Sequence[str], page: str | None = None) -> ChoicePage:
    """Reads the step after these clicks."""
    return reader.read(observe_session(session_of([*actions, ""], page=page))[-1])


def test_relations_are_distances_on_the_list_from_past_clicks(reader):
    page = read_last(reader, [ITEMS[4], ITEMS[0], ITEMS[1], "menu.cart"])
    third = relations_of(page, ITEMS[2])
    assert third["place"] == 2 and third["length of the list"] == 6
    assert third["distance from the last click"] == 1
    assert third["distance from the farthest click"] == -2
    assert third["last movement"] == 1
    assert third["times opened"] == 0 and third["clicks on the list"] == 3
    assert third["last click is on the page"] == 1
    assert third["price, log"] == pytest.approx(log(13))
    opened = relations_of(page, ITEMS[1])
    assert opened["times opened"] == 1 and opened["opened last"] == 1
    assert relations_of(page, ITEMS[0])["opened last"] == 0
    assert relations_of(page, "menu.cart")["distance from the last click"] == 0
    assert all(map(isnan, page.choices[0].relations))  # terminate


def test_before_the_first_click_on_a_list_distances_are_unknown(reader):
    first = relations_of(read_last(reader, []), ITEMS[2])
    assert isnan(first["distance from the last click"]) and isnan(first["last movement"])
    assert first["clicks on the list"] == 0


def test_a_click_on_another_page_s_list_is_no_movement_on_this_one(reader):
    page = read_last(reader, [ITEMS[0], "results.elsewhere.view_product"])
    second = relations_of(page, ITEMS[1])
    assert second["distance from the last click"] == 1
    assert isnan(second["last movement"]) and second["last click is on the page"] == 0


def test_features_do_not_depend_on_later_steps(reader):
    session = random_sessions(1)[0]
    for cut in range(1, len(session.steps)):
        later = list(session.steps[cut:])
        Random(cut).shuffle(later)
        permuted = msgspec.structs.replace(session, steps=(*session.steps[:cut], *later))
        both = [observe_session(one)[: cut + 1] for one in (session, permuted)]
        for user_id in (None, session.user_id):
            expected, found = ([repr(reader.read(step, user_id)) for step in steps] for steps in both)
            assert expected == found


def test_the_counts_of_a_train_row_leave_out_its_user(view, reader):
    """They equal counts of the users of other folds, and do not change when the user's own actions do."""
    sessions = list(view.sessions())
    user = sessions[0].user_id

    def fold(user_id: str) -> int:
        return crc32(user_id.encode()) % FOLDS

    outcomes = [outcome_of(reply_action(Click(name=name))) for name in ITEMS]
    counts = Counter(
        outcome_of(reply_action(step.action))
        for session in sessions
        if fold(session.user_id) != fold(user)
        for step in session.steps[1:]
    )
    heading, past = heading_of(page_of(ITEMS)), [reply_action(Click(name=ITEMS[0]))]
    whole = TransitionCounts((session, range(1, len(session.steps))) for session in sessions)
    own = [shares[0] for shares in whole.log_shares(heading, past, outcomes, user)]
    total = sum(counts.values())
    assert own == pytest.approx([log((counts[outcome] + 1) / (total + len(ITEMS))) for outcome in outcomes])
    altered = [session_of([ITEMS[5]] * 6) if session.user_id == user else session for session in sessions]
    changed = TransitionCounts((session, range(1, len(session.steps))) for session in altered)
    assert changed.log_shares(heading, past, outcomes, user) == whole.log_shares(heading, past, outcomes, user)
    assert changed.log_shares(heading, past, outcomes, None) != whole.log_shares(heading, past, outcomes, None)
    example = next(iter(reader.examples(view)))
    shares = [choice.transitions for choice in example.page.choices if choice.action in map(_click, ITEMS)]
    assert example.user_id == user
    assert shares != [choice.transitions for choice in read_last(reader, []).choices][1 : 1 + len(ITEMS)]


def _click(name: str) -> Click:
    return Click(name=name)


def test_shares_after_a_product_are_drawn_to_those_of_the_heading():
    sessions = [session_of([ITEMS[0], ITEMS[1]], number) for number in range(4)]
    counts = TransitionCounts((session, [1]) for session in sessions)
    outcomes = [outcome_of(reply_action(Click(name=name))) for name in ITEMS[:2]]
    shares = counts.log_shares("A", [reply_action(Click(name=ITEMS[0]))], outcomes, None)
    assert shares[1][0] == pytest.approx(log(5 / 6))
    assert shares[1][1] == pytest.approx(log((4 + PULL * 5 / 6) / (4 + PULL)))
    unseen = counts.log_shares("A", [reply_action(Click(name=ITEMS[3]))], outcomes, None)
    assert unseen[1][1] == unseen[1][0] == shares[1][0]
