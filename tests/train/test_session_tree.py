"""The session tree computes what unpacked rows compute."""

import random

import pytest
import torch

from tests.oracles.unpacked_policy import tree_rows, unpacked_log_probs
from tests.train.conftest import Tiny, assert_same_gradients
from train.policy import Policy
from train.session_tree import SessionTree, enable_tree_attention, pack

TOLERANCE = 1e-5


def random_tree(tiny: Tiny, index: int) -> SessionTree:
    """A real trunk with replies of random tokens and lengths at some of its forks; half of them fork once more."""
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
    continuations = [
        [
            (draw.randrange(len(reply) + 1), [draw.randrange(len(tiny.tokenizer)) for _ in range(draw.randrange(1, 9))])
            if draw.random() < 0.5
            else None
            for reply in group
        ]
        for group in replies
    ]
    forks = [reply.start for reply in chosen]
    return SessionTree(trunk.tokens[: forks[-1]], forks, replies, continuations=continuations)


def test_log_probabilities_and_gradients_equal_those_of_unpacked_rows(tiny):
    trees = [random_tree(tiny, index) for index in range(24)]
    plain = tiny.plain_model()
    tiny.model.zero_grad()
    packed = pack(trees)
    stats = Policy(tiny.model).stats(packed, temperature=0.6, definition="kl_uniform_policy")
    rows = [unpacked_log_probs(plain, before, tokens, 0.6) for before, tokens in tree_rows(trees)]
    weights = torch.randn(len(stats.log_probs), generator=torch.Generator().manual_seed(0)) / len(stats.log_probs)
    (stats.log_probs * weights).sum().backward()
    (torch.cat(rows) * weights).sum().backward()
    assert (stats.log_probs - torch.cat(rows)).abs().max().item() < TOLERANCE
    assert_same_gradients(tiny.model, plain, TOLERANCE)
    tiny.model.zero_grad()


def test_all_first_tokens_teach_the_branch_point_and_no_place_behind_it(tiny):
    trunk = tiny.trunks[1]
    fork = trunk.replies[0].start
    packed = pack([SessionTree(trunk.tokens, [fork], [[[3], [4], [5]]])])
    policy, reached = Policy(tiny.plain_model()), []
    enable_tree_attention(policy.model)
    embeddings = policy.model.get_input_embeddings()
    hook = embeddings.register_forward_hook(lambda _module, _given, out: reached.append(out) or out.retain_grad())
    policy.log_probs(packed).sum().backward()
    hook.remove()
    gradient = reached[0].grad[0].abs().sum(dim=1)
    assert (gradient[:fork] > 0).all()
    assert (gradient[fork:] == 0).all()


def test_tree_attention_without_a_layout_names_the_missing_layout(tiny):
    with pytest.raises(RuntimeError, match="needs a layout"):
        tiny.model(torch.tensor([[1, 2, 3]]))
