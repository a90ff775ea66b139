"""A pointer's exact policy gradient against a sum written by hand, and a phase of it on the command's own way."""

import copy

import numpy as np
import pytest
import torch

from agents.llm_grpo.train import train
from replay_sessions.store import SessionStore
from shop_env.choices.facts import OfferReader
from shop_env.reward import reward_preset
from shop_env.reward.score import score_action
from shop_env.train_view import TrainView
from tests.demo_stores import demo_store_at
from tests.json_files import read_json_lines
from train.config import OptimizerConfig
from train.grpo.config import GrpoConfig
from train.pointer import fit
from train.pointer.arrays import batch_of
from train.pointer.encoding import Encoder, train_sessions
from train.pointer.network import PointerNetwork, Sizes
from train.pointer.reward import learn

ROWS = """
base = "pointer_cpu"

[phases.rewarded]
label = "pointer, expected reward"
method = "expected_reward"
start = "pointer"
teach_rationales = false
reward = "binary"

[phases.rewarded.grpo]
steps = 12
temperature = 1.0
optimizer = { lr = 3e-3 }
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> SessionStore:
    return demo_store_at(tmp_path_factory.mktemp("reward") / "store", 24, seed=2)


@pytest.mark.parametrize("reward", ["shop_r1", "customer_r1"])
def test_the_gradient_is_that_of_a_sum_over_the_choices_of_each_page(store, reward):
    view, config = TrainView(store), reward_preset(reward)
    encoder = Encoder(OfferReader(view))
    encoded = encoder.encode_train(view, config)
    sessions = np.arange(4)
    batch = batch_of(encoded, sessions)
    batch = batch._replace(choice_numbers=batch.choice_numbers.double(), choice_rewards=batch.choice_rewards.double())
    torch.manual_seed(0)
    network = PointerNetwork(Sizes.of(encoder)).double().eval()
    reference, plain = PointerNetwork(Sizes.of(encoder)).double().eval(), copy.deepcopy(network)
    numbers = GrpoConfig(optimizer=OptimizerConfig(lr=1e-3), steps=1, temperature=0.7, beta=0.3)
    metrics = learn(network, reference, batch, numbers)

    read = [step for session in list(train_sessions(encoder.reader, view))[:4] for step in session.steps]
    logged = [
        session.steps[index].action for session, learnt in list(encoder.reader.sessions(view))[:4] for index in learnt
    ]
    now, before = (model(batch) / 0.7 for model in (plain, reference))
    total = torch.zeros((), dtype=torch.float64)
    for step, ((_, page, _, _, _), action) in enumerate(zip(read, logged, strict=True)):
        scores, others = now[step, : len(page.choices)], before[step, : len(page.choices)].detach()
        probabilities = scores.exp() / scores.exp().sum()
        for number, choice in enumerate(page.choices):
            ratio = probabilities[number] / (others.exp() / others.exp().sum())[number]
            points = score_action(choice.action, action, config).total
            total = total + probabilities[number] * (points - 0.3 * ratio.log())
    loss = -total / len(read)
    loss.backward()
    assert metrics["loss"] == pytest.approx(loss.item(), rel=1e-6)
    ours, theirs = (
        torch.cat([parameter.grad.flatten() for parameter in each.parameters() if parameter.grad is not None])
        for each in (network, plain)
    )
    assert len(ours) == sum(parameter.numel() for parameter in network.parameters())
    assert (ours - theirs).abs().max() <= 1e-6 * theirs.abs().max()


def test_a_phase_goes_on_from_a_pointer_and_leaves_one_that_earns_more(store, tmp_path, monkeypatch):
    monkeypatch.setattr(fit, "MIN_EPOCHS", 2)
    monkeypatch.setattr(fit, "UPDATES", 20)
    preset = tmp_path / "mine.toml"
    preset.write_text(ROWS)
    folder = tmp_path / "run"
    log = train(preset=str(preset), store=str(store.path), out=str(folder), evaluation={"sessions": 5}, watch=())
    assert {"pointer, greedy", "pointer, expected reward, greedy"} <= {entry.label for entry in log.entries}
    rows = [row for row in read_json_lines(folder / "metrics.jsonl") if row["phase"] == "rewarded"]
    assert [row["step"] for row in rows] == list(range(1, 13))
    rewards = [row["action_reward"] for row in rows]
    assert sum(rewards[-4:]) > sum(rewards[:4])
    assert rows[-1]["kl"] > rows[0]["kl"] == pytest.approx(0, abs=1e-6)
    assert rewards[0] == pytest.approx(rows[0]["exact"], rel=1e-5), "the reward is 1 for the logged action"
