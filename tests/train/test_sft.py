"""SFT teaches what it should: the loss of unpacked rows, whatever the history shows and however a batch is cut."""

from copy import deepcopy
from itertools import takewhile
from operator import eq
from typing import Literal

import pytest
import torch

from shop_env.observation import ContextConfig
from tests.oracles.unpacked_policy import unpacked_log_probs
from tests.train.conftest import COMPACT, Tiny
from train.config import OptimizerConfig, SftConfig, SftStage
from train.policy import Policy
from train.session_tree import enable_tree_attention
from train.sft import SftTrainer, sft_packs
from train.tokens import SessionTokens, tokenize_session

STAGES = (SftStage(steps=3),)


def trainer_of(
    tiny: Tiny,
    trunks: list[SessionTokens],
    max_batch_tokens: int = 32_768,
    average: Literal["tokens", "replies"] = "tokens",
) -> SftTrainer:
    model = deepcopy(tiny.model)
    enable_tree_attention(model)
    config = SftConfig(
        optimizer=OptimizerConfig(lr=1e-3),
        stages=STAGES,
        sessions_per_batch=4,
        max_batch_tokens=max_batch_tokens,
        average=average,
    )
    return SftTrainer(Policy(model), trunks, config, seed=0)


@pytest.mark.parametrize("average", ["tokens", "replies"])
@pytest.mark.parametrize("rationales", [True, False])
@pytest.mark.parametrize("scope", ["whole_session", "latest_step"])
def test_the_loss_is_that_of_unpacked_rows(tiny, scope, rationales, average):
    context = ContextConfig(scope=scope, rationales=rationales)
    trunks = [t for s in tiny.sessions[:4] for t in tokenize_session(tiny.tokenizer, s, context, COMPACT, 4096)]
    plain = tiny.plain_model()
    rows = []
    for trunk in trunks:
        for reply in trunk.replies:
            assert (reply.target is None) == rationales
            taught = reply.target or trunk.tokens[reply.start : reply.end]
            rows.append(unpacked_log_probs(plain, trunk.tokens[: reply.start], taught, 1.0))
    assert len({len(row) for row in rows}) > 1
    expected = {
        "tokens": -torch.cat(rows).mean().item(),
        "replies": -sum(row.mean().item() for row in rows) / len(rows),
    }
    trainer = trainer_of(tiny, trunks, average=average)
    assert trainer.compute_nll(trunks) == pytest.approx(-torch.cat(rows).sum().item() / len(rows), rel=1e-5)
    assert trainer.step(0)["loss"] == pytest.approx(expected[average], rel=1e-5)


def test_prompts_of_latest_step_share_their_history(tiny):
    session = max(tiny.sessions, key=lambda session: len(session.steps))
    context = ContextConfig(scope="latest_step")
    trunks = tokenize_session(tiny.tokenizer, session, context, COMPACT, 4096)
    (packed,) = sft_packs([(trunk, trunk.replies) for trunk in trunks], 100_000)
    assert packed.row_tokens == sum(len(trunk.tokens) for trunk in trunks)
    alone = [trunk.tokens[: trunk.replies[0].start] for trunk in trunks]
    shared = [len([*takewhile(bool, map(eq, prompt, alone[-1]))]) for prompt in alone]
    own = sum(len(trunk.tokens) - fork for trunk, fork in zip(trunks, shared, strict=True))
    assert packed.input_ids.numel() == len(alone[-1]) + own < 0.7 * packed.row_tokens


@pytest.mark.parametrize("average", ["tokens", "replies"])
def test_a_batch_cut_into_several_passes_gives_the_same_weights(tiny, average):
    whole, cut = (trainer_of(tiny, tiny.trunks, most, average) for most in (32_768, 300))
    for step in range(3):
        losses = [trainer.step(step) for trainer in (whole, cut)]
        assert losses[0]["loss"] == pytest.approx(losses[1]["loss"], rel=1e-4)
        assert losses[0]["tokens"] == losses[1]["tokens"]
        assert losses[0]["grad_norm"] == pytest.approx(losses[1]["grad_norm"], rel=1e-3)
