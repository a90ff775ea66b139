"""Sessions as arrays: what the network is trained on is what it is asked with."""

import numpy as np
import pytest

from shop_env.choices.facts import OfferReader
from shop_env.observation import observe_session
from shop_env.train_view import TrainView
from tests.demo_stores import demo_store_at
from train.pointer import encoding
from train.pointer.arrays import Bags, Encoded, batch_of, batches
from train.pointer.encoding import Encoder


def elements_of(encoded: Encoded, numbers: np.ndarray) -> list[tuple[int, ...]]:
    words = encoded.element_words
    return [
        (int(encoded.element_names[number]), *words.numbers[words.ends[number] : words.ends[number + 1]].tolist())
        for number in numbers
    ]


@pytest.mark.parametrize("max_past", [2, 256])
def test_a_step_is_encoded_alike_in_training_and_evaluation(tmp_path, monkeypatch, max_past):
    """All but the counts, which leave out a train row's user, and the scale of numbers, which they change."""
    monkeypatch.setattr(encoding, "MAX_PAST", max_past)
    store = TrainView(demo_store_at(tmp_path / "store", 24, seed=1))
    reader = OfferReader(store)
    encoder = Encoder(reader)
    train = encoder.encode_train(store)
    observations = [
        observe_session(session, store.context)[index] for session, learnt in reader.sessions(store) for index in learnt
    ]
    asked = encoder.encode(observations, [reader.read(observation) for observation in observations])
    assert len(train.chosen) == len(asked.chosen) > 40
    for field in ("step_past", "choice_categories", "choice_relations", "choice_ends"):
        assert np.array_equal(getattr(train, field), getattr(asked, field))
    assert np.array_equal(train.step_categories.numbers, asked.step_categories.numbers)
    assert elements_of(train, train.choice_elements) == elements_of(asked, asked.choice_elements)
    sessions = np.repeat(np.arange(len(train.users)), np.diff(train.step_ends))
    for step, session in enumerate(sessions):
        count, (start, own) = train.step_past[step], (train.past_ends[session], asked.past_ends[step])
        trained, evaluated = range(start, start + count), range(own, own + count)
        assert np.array_equal(train.past_categories[trained], asked.past_categories[evaluated])
        assert elements_of(train, train.past_elements[trained]) == elements_of(asked, asked.past_elements[evaluated])
    facts = slice(len(encoding.CONTEXTS), None)
    assert np.array_equal(train.choice_numbers[:, facts], asked.choice_numbers[:, facts])


def test_batches_hold_each_session_once_and_a_batch_is_its_sessions_rows(tmp_path):
    store = TrainView(demo_store_at(tmp_path / "store", 24, seed=1))
    encoded = Encoder(OfferReader(store)).encode_train(store)
    sessions = np.arange(len(encoded.users))
    for draw in (None, np.random.default_rng(0)):
        parts = list(batches(encoded, sessions, 5, draw))
        assert sum(len(part.chosen) for part in parts) == len(encoded.chosen)
    batch = batch_of(encoded, np.array([3, 1]))
    steps = [*range(*encoded.step_ends[3:5]), *range(*encoded.step_ends[1:3])]
    assert batch.chosen.tolist() == encoded.chosen[steps].tolist()
    kept = encoded.with_choices(np.arange(len(encoded.choice_elements)) % 2 == 0)
    for step in range(len(kept.chosen)):
        before, after = encoded.choice_ends[step] + encoded.chosen[step], kept.choice_ends[step] + kept.chosen[step]
        if encoded.chosen[step] >= 0 and before % 2 == 0:
            assert kept.choice_elements[after] == encoded.choice_elements[before]
        else:
            assert kept.chosen[step] == -1


def test_bags_take_lists_in_any_order():
    bags = Bags.of([[1, 2], [], [3]]).take(np.array([2, 0, 0]))
    assert bags.numbers.tolist() == [3, 1, 2, 1, 2] and bags.ends.tolist() == [0, 1, 3, 5]
