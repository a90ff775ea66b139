"""Each attention gives what unpacked float32 rows give: log-probabilities and gradients."""

from typing import Any

import pytest
import torch

from tests.oracles.unpacked_policy import tree_rows, unpacked_log_probs
from tests.train.attention.test_depth_first import learnt, own_model
from tests.train.conftest import Tiny
from tests.train.test_session_tree import random_tree
from train.attention.choice import Shape, find_fault
from train.attention.structured import Merged, Structured, merged_where_long
from train.config import TinyModelConfig
from train.policy import Policy
from train.session_tree import PackedTrees, SessionTree, TreeAttention, enable_tree_attention, pack
from train.tiny import build_model

TOLERANCE = 1e-5
CPU = torch.device("cpu")
WAYS: dict[str, dict[str, Any]] = {
    "structured": {"attention": Structured},
    "merged": {"attention": Merged},
    "depth_first": {"chunk_tokens": 60},
}


def small_trees(tiny: Tiny) -> list[SessionTree]:
    """Two sessions with replies of several lengths, some with a continuation; the first trunk goes on behind them."""
    draw = torch.Generator().manual_seed(0)

    def tokens(count: int) -> list[int]:
        return torch.randint(len(tiny.tokenizer), (count,), generator=draw).tolist()

    trunk, replies = tokens(150), [[tokens(5), tokens(1), tokens(9)], [tokens(3), tokens(7)]]
    second = SessionTree(tokens(20), [20], [[tokens(4), tokens(2)]])
    others = [[(2, tokens(6)), (0, tokens(2)), (9, tokens(1))], [None, (4, tokens(12))]]
    return [SessionTree(trunk, [40, 130], replies, continuations=others), second]


@pytest.mark.parametrize(
    ("way", "device"),
    [
        ("structured", "cpu"),
        ("merged", "cpu"),
        ("depth_first", "cpu"),
        *(pytest.param(way, "cuda", marks=pytest.mark.gpu) for way in WAYS if way != "merged"),
    ],
)
def test_log_probabilities_and_gradients_equal_those_of_unpacked_rows(tiny: Tiny, way: str, device: str) -> None:
    shape = TinyModelConfig(hidden_size=64, layers=2, heads=4, key_value_heads=2, intermediate_size=48)
    trees, (plain, own) = small_trees(tiny), (build_model(tiny.tokenizer, shape, seed=0) for _ in range(2))
    enable_tree_attention(own)
    wanted = torch.cat([unpacked_log_probs(plain, before, tokens, 0.6) for before, tokens in tree_rows(trees)])
    weights = torch.randn(len(wanted), generator=torch.Generator().manual_seed(0)) / len(wanted)
    (wanted * weights).sum().backward()
    policy = Policy(own.to(device), **WAYS[way])
    found, gradients = learnt(policy, pack(trees).to(device))
    # Half precision keeps 8 bits of each product.
    tolerance = TOLERANCE if WAYS[way].get("autocast") is None else 0.05
    assert (found.cpu() - wanted).abs().max().item() < max(tolerance, 1e-4 * (device == "cuda"))
    for name, parameter in plain.named_parameters():
        largest = parameter.grad.abs().max().item()
        assert (gradients[name].cpu() - parameter.grad).abs().max().item() <= max(tolerance, 1e-4) * largest + 1e-9, (
            name
        )


def test_the_trial_passes_what_equals_rows() -> None:
    assert find_fault(Structured, Shape(4, 2, 8, torch.float32, CPU)) is None
    assert find_fault(Structured, Shape(4, 4, 16, torch.bfloat16, CPU)) is None
    assert find_fault(Merged, Shape(4, 2, 8, torch.float32, CPU)) is None
    assert find_fault(Merged, Shape(4, 4, 16, torch.bfloat16, CPU)) is None


class _SeesItsNeighbours(Structured):
    """Every reply sees the others of its step that come before it."""

    def __init__(self, packed: PackedTrees) -> None:
        super().__init__(packed.map(lambda mask: torch.ones_like(mask).tril() if mask.dtype == torch.bool else mask))


class _LosesGradients(Structured):
    def attend(self, layer: int, query: Any, key: Any, value: Any, scale: float) -> Any:
        return super().attend(layer, query, key.detach() + 0 * key, value, scale)


@pytest.mark.parametrize(
    ("attention", "reason"),
    [
        (_SeesItsNeighbours, "its results differ from those of a dense mask by"),
        (_LosesGradients, "its gradients differ"),
    ],
)
def test_the_trial_finds_what_does_not(attention: TreeAttention, reason: str) -> None:
    assert reason in str(find_fault(attention, Shape(4, 2, 8, torch.float32, CPU)))


def test_the_trial_tells_in_one_line_what_a_kernel_raises() -> None:
    def fail(_packed: PackedTrees) -> Any:
        raise NotImplementedError("there is no such kernel\nTraceback")

    found = find_fault(fail, Shape(4, 2, 8, torch.float32, CPU))
    assert found == "NotImplementedError: there is no such kernel"


def attended(packed: PackedTrees, attention: TreeAttention) -> list[torch.Tensor]:
    """The result and the gradients of random queries, keys and values."""
    draw = torch.Generator().manual_seed(0)
    length = packed.input_ids.shape[1]
    given = [torch.randn(1, heads, length, 8, generator=draw).requires_grad_() for heads in (4, 2, 2)]
    found = packed.attended_by(attention).attend(0, *given, 0.3)
    return [found, *torch.autograd.grad(found, given, torch.randn(found.shape, generator=draw))]


def unusual_packs(tiny: Tiny) -> dict[str, PackedTrees]:
    return {
        "two groups at one fork": pack([SessionTree([1] * 50, [30, 30, 50], [[[2] * 3], [[3] * 4, [4]], [[5] * 2]])]),
        "forks out of order": pack([SessionTree([1] * 90, [60, 20, 90, 40], [[[2] * 3], [[3] * 4], [[4]], [[5] * 6]])]),
        "no groups": pack([SessionTree([1] * 70, targets=[(60, 70)]), SessionTree([1] * 20, targets=[(15, 20)])]),
        "one session without groups": pack([SessionTree([1] * 9, [], []), *small_trees(tiny)]),
        "a reply much longer than many": pack(
            [SessionTree([1] * 5, [5], [[[2] * 900, *([3] * n for n in range(1, 30))]])]
        ),
    }


@pytest.mark.parametrize("kind", range(5))
def test_merged_parts_equal_the_structured_attention_on_unusual_packs(tiny: Tiny, kind: int) -> None:
    name, packed = list(unusual_packs(tiny).items())[kind]
    for found, wanted in zip(attended(packed, Merged), attended(packed, Structured), strict=True):
        assert (found - wanted).abs().max() <= TOLERANCE * wanted.abs().max(), name


def test_merged_passes_repeat_bit_for_bit(tiny: Tiny) -> None:
    packed = pack([*small_trees(tiny), random_tree(tiny, 0), random_tree(tiny, 1)])
    first, *others = (attended(packed, Merged) for _ in range(4))
    for other in others:
        assert all(one.equal(two) for one, two in zip(first, other, strict=True))


def test_recomputed_layers_give_the_same_with_merged_parts(tiny: Tiny) -> None:
    packed = pack(small_trees(tiny))
    kept = learnt(Policy(own_model(tiny).train(), attention=Merged), packed)
    found, gradients = learnt(Policy(own_model(tiny).train(), attention=Merged, gradient_checkpointing=True), packed)
    assert found.equal(kept[0])
    assert all(gradient.equal(kept[1][name]) for name, gradient in gradients.items())


def test_parts_are_merged_where_pages_are_long_and_replies_fork() -> None:
    long, short = SessionTree([1] * 400, [200, 400], [[[2]], [[3]]]), SessionTree([1] * 60, [30, 60], [[[2]], [[3]]])
    assert isinstance(merged_where_long(pack([long])), Merged)
    assert isinstance(merged_where_long(pack([short])), Structured)
    assert isinstance(merged_where_long(pack([long, short])), Structured)
    assert isinstance(merged_where_long(pack([SessionTree([1] * 400, targets=[(390, 400)])])), Structured)


def test_a_pack_is_prepared_once_for_all_passes_over_it(tiny: Tiny) -> None:
    packed = pack(small_trees(tiny))
    made = packed.attended_by(Structured)
    policy = Policy(own_model(tiny))
    with torch.no_grad():
        policy.log_probs(packed)
        policy.frozen().log_probs(packed)
    assert packed.attended_by(Structured) is made
    assert packed.to("cpu").attended_by(Structured) is not made


def test_a_reference_attends_as_the_policy_does(tiny: Tiny) -> None:
    asked = []

    class Watched(Structured):
        def attend(self, layer: int, query: Any, key: Any, value: Any, scale: float) -> Any:
            asked.append(layer)
            return super().attend(layer, query, key, value, scale)

    policy = Policy(own_model(tiny), attention=Watched)
    with torch.no_grad():
        policy.frozen().log_probs(pack(small_trees(tiny)))
    assert asked == [0, 1]


def test_tokens_of_rows_are_counted_beside_those_of_the_pack(tiny: Tiny) -> None:
    trees = small_trees(tiny)
    assert pack(trees).row_tokens == sum(len(before) + len(tokens) for before, tokens in tree_rows(trees))
    trunk = tiny.trunks[0]
    spans = [(reply.start, reply.end) for reply in trunk.replies]
    assert pack([SessionTree(trunk.tokens, targets=spans)]).row_tokens == sum(end for _, end in spans)
