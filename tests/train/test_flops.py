"""FLOPs by hand, and by torch's own counter."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.train.test_session_tree import random_tree
from train.flops import FlopCounter, Work, packed_work
from train.session_tree import SessionTree, pack


def test_a_pack_by_hand():
    tree = SessionTree([1, 2, 3, 4], [2, 4], [[[5, 6]], [[7], [8, 9, 10]]])
    # Trunk 4 tokens: 10 pairs. Replies: 2 x 2 + 3, then 1 x 4 + 1 and 3 x 4 + 6.
    assert packed_work([pack([tree])]) == Work(tokens=10, targets=6, pairs=10 + 7 + 5 + 18)
    assert packed_work([pack([tree]), pack([tree, tree])]) == Work(30, 18, 120)
    assert packed_work([]) == Work()


def test_one_row_has_the_flops_that_torch_counts(tiny):
    model = tiny.plain_model().eval()
    model.set_attn_implementation("eager")
    tokens = 64
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(torch.ones(1, tokens, dtype=torch.long), use_cache=False)
    ours = FlopCounter(model).forward(Work(tokens, tokens, tokens * tokens))  # eager computes what the mask hides too
    assert ours == pytest.approx(counter.get_total_flops(), rel=0.01)


def test_flops_do_not_depend_on_how_a_batch_is_cut(tiny):
    trees = [random_tree(tiny, index) for index in range(4)]
    assert packed_work([pack(trees)]) == packed_work([pack(trees[:1]), pack(trees[1:])])
