"""Roles, texts and examples of choices."""

from collections import Counter

from replay_sessions.schema import TypeAndSubmit
from shop_env.choices.reader import Reader
from shop_env.train_view import TrainView
from tests.agents.baselines.test_classic_models import PAGE, ruled_store, sessions_of, store_of
from tests.scored_steps import first_seen

__all__ = ["ruled_store"]


def test_texts_are_runs_of_the_goal_as_it_is_written(ruled_store):
    goal = "Book a flight from: Holy Cross, AK to: Charleston on 12/24/2016."
    page = Reader(TrainView(ruled_store)).read(first_seen('<input name="from"/>', goal))
    before = {
        choice.action.text: choice.traits[2] for choice in page.choices if isinstance(choice.action, TypeAndSubmit)
    }
    assert before["Holy Cross, AK"] == "after from"
    assert before["12/24/2016"] == "after on"


def test_a_name_s_own_part_is_no_role_and_a_recurring_one_is(ruled_store):
    odd = PAGE.format("one_of_a_kind", "another_of_a_kind")
    page = Reader(TrainView(ruled_store)).read(first_seen(odd))
    assert page.roles == ["terminate", "click shelf.*.view", "click shelf.*.view", "click help"]


def test_a_store_that_is_too_large_is_learnt_from_by_whole_sessions_of_all_of_it(tmp_path):
    store = TrainView(store_of(tmp_path / "store", list(sessions_of("train", 60))))
    reader = Reader(store, first_action=True, max_steps=50)
    learnt = [example.user_id for example in reader.examples(store)]
    assert Counter(Counter(learnt).values()) == {3: 16}  # sixteen sessions of three steps
    numbers = [int(user.split()[1]) for user in dict.fromkeys(learnt)]
    assert numbers == sorted(numbers) and max(numbers) > 45
    again = [example.user_id for example in reader.examples(store)]
    assert again == learnt
    whole = [example.user_id for example in Reader(store, max_steps=120).examples(store)]
    assert len(whole) == 120 and len({*whole}) == 60
