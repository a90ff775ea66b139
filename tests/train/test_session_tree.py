"""The session tree computes what unpacked rows compute."""

import random

import pytest
import torch

from tests.oracles.unpacked_policy import unpacked_log_probs
from tests.train.conftest import Tiny
from train.policy import Policy
from train.session_tree import SessionTree, hidden_states, pack, pack_trunks

TOLERANCE = 1e-5


def random_tree(tiny: Tiny, index: int) -> SessionTree:
    """A real trunk with replies of random tokens and lengths at some of its forks."""
    draw = random.Random(index)
    trunk = tiny.trunks[index]
    chosen = [reply for reply in trunk.replies[1:] if draw.random() < 0.5] or trunk.replies[-1:]
    replies = [
        [
            [draw.randrange(len(tiny.tokenizer)) for _ in range(draw.randrange(1, 12))]
            for _ in range(draw.randrange(1, 5))
        ]
        for _ in chosen
    ]
    return SessionTree(trunk.tokens[: chosen[-1].start], [reply.start for reply in chosen], replies)


def test_log_probabilities_and_gradients_equal_those_of_unpacked_rows(tiny: Tiny) -> None:
    trees = [random_tree(tiny, index) for index in range(24)]
    plain = tiny.plain_model()
    tiny.model.zero_grad()
    packed = pack(trees)
    stats = Policy(tiny.model).stats(packed, temperature=0.6, definition="kl_uniform_policy")
    rows = [
        unpacked_log_probs(plain, tree.trunk[:fork], reply, 0.6)
        for tree in trees
        for fork, replies in zip(tree.forks, tree.replies, strict=True)
        for reply in replies
    ]
    weights = torch.randn(len(stats.log_probs), generator=torch.Generator().manual_seed(0)) / len(stats.log_probs)
    (stats.log_probs * weights).sum().backward()
    (torch.cat(rows) * weights).sum().backward()
    assert (stats.log_probs - torch.cat(rows)).abs().max().item() < TOLERANCE
    for (name, ours), (_, theirs) in zip(tiny.model.named_parameters(), plain.named_parameters(), strict=True):
        assert (ours.grad - theirs.grad).abs().max().item() < TOLERANCE, name
    tiny.model.zero_grad()


def test_a_packed_session_does_not_see_its_neighbours(tiny: Tiny) -> None:
    first, second = random_tree(tiny, 0), random_tree(tiny, 1)
    with torch.no_grad():
        alone, beside = pack([first]), pack([second, first])
        hidden_alone = hidden_states(tiny.model, alone.input_ids, alone.position_ids, alone)
        hidden_beside = hidden_states(tiny.model, beside.input_ids, beside.position_ids, beside)
    start = beside.input_ids.shape[1] - alone.input_ids.shape[1]
    assert torch.allclose(hidden_alone, hidden_beside[start:], atol=TOLERANCE)


def test_trunks_alone_predict_their_own_replies(tiny: Tiny) -> None:
    trunk = tiny.trunks[2]
    packed = pack_trunks([(trunk.tokens, [(reply.start, reply.end) for reply in trunk.replies])])
    wanted = [token for reply in trunk.replies for token in trunk.tokens[reply.start : reply.end]]
    assert packed.targets.tolist() == wanted
    with torch.no_grad():
        log_probs = Policy(tiny.model).log_probs(packed)
        plain = tiny.plain_model()
        rows = [
            unpacked_log_probs(plain, trunk.tokens[: r.start], trunk.tokens[r.start : r.end], 1.0)
            for r in trunk.replies
        ]
    assert torch.allclose(log_probs, torch.cat(rows), atol=TOLERANCE)


def test_tree_attention_without_a_layout_says_what_is_missing(tiny: Tiny) -> None:
    with pytest.raises(RuntimeError, match="needs a layout"):
        tiny.model(torch.tensor([[1, 2, 3]]))
