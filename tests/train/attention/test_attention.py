"""Each attention gives what unpacked float32 rows give: log-probabilities and gradients."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.oracles.dense_attention import Dense, build_dense_mask
from tests.oracles.unpacked_policy import tree_rows, unpacked_log_probs
from tests.train.conftest import Tiny, learnt, own_model
from tests.train.test_session_tree import random_tree
from train.attention.partial import attend_part, attend_part_backward
from train.attention.selection import TREES, Shape, find_fault, find_joined_fault, find_kernels
from train.attention.structured import FLASH, StructuredAttention
from train.config import TinyModelConfig
from train.policy import Policy
from train.session_tree import PackedTrees, SessionTree, TreeAttention, enable_tree_attention, pack
from train.tiny import build_model

TOLERANCE = 1e-5
CPU = torch.device("cpu")


def token_source(tiny: Tiny, seed: int) -> Callable[[int], list[int]]:
    draw = torch.Generator().manual_seed(seed)
    return lambda count: torch.randint(len(tiny.tokenizer), (count,), generator=draw).tolist()


def small_trees(tiny: Tiny) -> list[SessionTree]:
    """Two sessions with replies of several lengths, some with a continuation; the first trunk goes on behind them."""
    tokens = token_source(tiny, 0)
    trunk, replies = tokens(150), [[tokens(5), tokens(1), tokens(9)], [tokens(3), tokens(7)]]
    second = SessionTree(tokens(20), [20], [[tokens(4), tokens(2)]])
    others = [[(2, tokens(6)), (0, tokens(2)), (9, tokens(1))], [None, (4, tokens(12))]]
    return [SessionTree(trunk, [40, 130], replies, continuations=others), second]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("is_long", [False, True], ids=["short pages", "long pages"])
@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_log_probabilities_and_gradients_equal_those_of_unpacked_rows(tiny, device, is_long, is_checkpointed):
    shape = TinyModelConfig(hidden_size=64, layers=2, heads=4, key_value_heads=2, intermediate_size=48)
    trees, (plain, own) = small_trees(tiny), (build_model(tiny.tokenizer, shape, seed=0) for _ in range(2))
    if is_long:
        trees = [long_tree(tiny), *trees[1:]]
    enable_tree_attention(own)
    wanted = torch.cat([unpacked_log_probs(plain, before, tokens, 0.6) for before, tokens in tree_rows(trees)])
    weights = torch.randn(len(wanted), generator=torch.Generator().manual_seed(0)) / len(wanted)
    (wanted * weights).sum().backward()
    policy = Policy(own.to(device).train(), gradient_checkpointing=is_checkpointed)
    found, gradients = learnt(policy, pack(trees).to(device))
    tolerance = TOLERANCE if device == "cpu" else 1e-4
    assert (found.cpu() - wanted).abs().max().item() < tolerance
    for name, parameter in plain.named_parameters():
        difference = (gradients[name].cpu() - parameter.grad).abs().max().item()
        assert difference <= tolerance * parameter.grad.abs().max().item() + 1e-9, name


@pytest.mark.parametrize("shape", [(4, 2, 8, torch.float32), (4, 4, 16, torch.bfloat16), (9, 3, 16, torch.bfloat16)])
def test_the_trial_passes_kernels_equal_to_plain_products(shape):
    assert find_fault(FLASH, Shape(*shape, CPU)) is None


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_kernel_of_this_gpu_passes_its_trial(dtype):
    shape = Shape(14, 2, 64, dtype, torch.device("cuda"))
    for kernel in find_kernels(shape):
        assert find_fault(kernel, shape) is None, kernel.name
    assert dtype == torch.float32 or find_joined_fault(shape) is None


def _cut(tensors: tuple[Any, ...], ends: Any) -> list[list[Any]]:
    """(tokens, heads, d) of each sequence as a batch of one."""
    spans = list(pairwise(ends.tolist()))
    return [[each[start:end].transpose(0, 1)[None] for each in tensors] for start, end in spans]


def attend_varlen(*inputs: Any, scale: float) -> Any:
    """torch's flash attention over sequences one after the other, which CUDA alone has."""
    query, key, value, ends, key_ends, longest, longest_key, _, is_causal, _ = inputs
    assert (ends.diff().max(), key_ends.diff().max()) == (longest, longest_key)
    sequences = zip(_cut((query,), ends), _cut((key, value), key_ends), strict=True)
    parts = [attend_part(*own, *keys, scale, is_causal=is_causal) for own, keys in sequences]
    outputs, log_sums = zip(*parts, strict=True)
    return torch.cat(outputs, 2)[0].transpose(0, 1), torch.cat(log_sums, 2)[0]


def attend_varlen_backward(*inputs: Any, scale: float) -> Any:
    gradient, query, key, value, output, log_sums, ends, key_ends, _, _, _, is_causal, *_ = inputs
    of_queries, of_keys = _cut((gradient, query, output, log_sums.T[..., None]), ends), _cut((key, value), key_ends)
    parts = [
        attend_part_backward(own, (queries, *keys), (results, sums[..., 0]), scale, is_causal=is_causal)
        for (own, queries, results, sums), keys in zip(of_queries, of_keys, strict=True)
    ]
    return tuple(torch.cat(each, 2)[0].transpose(0, 1) for each in zip(*parts, strict=True))


@pytest.mark.parametrize(
    ("factor", "backward_factor", "fault"),
    [(1, 1, "None"), (2, 1, "its results differ"), (1, 2, "its gradients differ")],
)
def test_sequences_that_one_kernel_takes_are_attended_to_as_each_alone(
    tiny, monkeypatch, factor, backward_factor, fault
):
    def scaled(attend: Any, by: int) -> Any:
        return lambda *inputs, scale: attend(*inputs, scale=by * scale)

    monkeypatch.setattr(torch.ops.aten, "_flash_attention_forward", scaled(attend_varlen, factor))
    monkeypatch.setattr(torch.ops.aten, "_flash_attention_backward", scaled(attend_varlen_backward, backward_factor))
    for shape in (Shape(4, 2, 8, torch.float32, CPU), Shape(3, 3, 16, torch.float32, CPU)):
        for trees in (TREES, small_trees(tiny)):
            assert str(find_joined_fault(shape, trees)).startswith(fault)


def _sees_what_comes(*inputs: Any, scale: float) -> Any:
    return attend_part(*inputs, scale)


def _sums_without_the_scale(*inputs: Any, scale: float) -> Any:
    output, log_sums = FLASH.forward(*inputs, scale=scale)
    return output, log_sums / scale


def _loses_gradients(*inputs: Any, scale: float) -> Any:
    query, key, value = FLASH.backward(*inputs, scale=scale)
    return query, 0 * key, value


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (FLASH._replace(forward=_sees_what_comes), "its results differ"),
        (FLASH._replace(forward=_sums_without_the_scale), "its log-sums differ"),
        (FLASH._replace(backward=_loses_gradients), "its gradients differ"),
    ],
)
def test_the_trial_finds_kernels_that_differ(kernel, reason):
    assert reason in str(find_fault(kernel, Shape(4, 2, 8, torch.float32, CPU)))


def long_tree(tiny: Tiny) -> SessionTree:
    """A session whose forks are so far apart that replies meet its trunk in chunks."""
    tokens = token_source(tiny, 1)
    replies = [[tokens(5), tokens(1), tokens(9)], [tokens(3), tokens(7)], [tokens(2)]]
    return SessionTree(
        tokens(560), [190, 370, 560], replies, continuations=[[None, None, (4, tokens(6))], [None] * 2, [None]]
    )


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
def test_unusual_packs_equal_a_dense_mask(tiny, kind):
    name, packed = list(unusual_packs(tiny).items())[kind]
    for found, wanted in zip(attended(packed, StructuredAttention), attended(packed, Dense), strict=True):
        assert (found - wanted).abs().max() <= TOLERANCE * wanted.abs().max(), name


def test_passes_repeat_bit_for_bit(tiny):
    packed = pack([*small_trees(tiny), random_tree(tiny, 0), random_tree(tiny, 1)])
    first, *others = (attended(packed, StructuredAttention) for _ in range(4))
    for other in others:
        assert all(one.equal(two) for one, two in zip(first, other, strict=True))


@pytest.mark.parametrize("product_layers", [0, 1, 2])
def test_recomputed_layers_give_the_same_bits(tiny, product_layers):
    packed = pack(small_trees(tiny))
    kept = learnt(Policy(own_model(tiny).train()), packed)
    options = {"gradient_checkpointing": True, "product_layers": product_layers}
    found, gradients = learnt(Policy(own_model(tiny).train(), **options), packed)
    assert found.equal(kept[0])
    assert all(gradient.equal(kept[1][name]) for name, gradient in gradients.items())


class _Counter(TorchDispatchMode):
    """Counts the calls of operators."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        self.calls[str(function).split(".")[1]] += 1
        return function(*arguments, **(options or {}))

    @property
    def products(self) -> int:
        return self.calls["mm"] + self.calls["addmm"]

    @property
    def attentions(self) -> int:
        return self.calls["_scaled_dot_product_flash_attention_for_cpu"]


CHECKPOINTED = {"gradient_checkpointing": True}


@pytest.mark.parametrize(
    ("options", "computes_again"),
    [({}, False), (CHECKPOINTED, True), ({**CHECKPOINTED, "product_layers": 2}, False)],
)
def test_attention_is_computed_once_a_layer_and_products_again_where_they_are_not_kept(tiny, options, computes_again):
    packed = pack([SessionTree(tiny.trunks[0].tokens[:40], targets=[(30, 40)])])
    policy = Policy(own_model(tiny).train(), **options)
    with torch.no_grad(), _Counter() as once:
        policy.log_probs(packed)
    with _Counter() as counter:
        log_probs = policy.log_probs(packed)
        assert counter.attentions == once.attentions == 2, "once a layer, in the forward pass"
        log_probs.sum().backward()
    assert counter.attentions == 2, "and not again in the backward pass"
    # Each product has two in the backward pass, for the gradients of its factors.
    assert (counter.products > 3 * once.products) == computes_again


def test_tries_are_read_as_a_dense_mask_and_not_trained_on():
    paths = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]], dtype=torch.bool)
    packed = pack([SessionTree([1] * 30, [20, 30], [[[2]] * 4, [[2]] * 4], paths=[paths, paths])])
    query, key, value = (torch.randn(1, heads, 38, 8) for heads in (4, 2, 2))
    mask = build_dense_mask(packed)
    for start, visible in ((30, 20), (34, 30)):
        assert mask[start : start + 4, :visible].all()
        mask[start : start + 4, start : start + 4] = paths
    keys, values = (each.repeat_interleave(2, dim=1) for each in (key, value))
    scores = (query @ keys.transpose(2, 3) * 0.3).masked_fill(~mask, -torch.inf)
    found = packed.attended_by(StructuredAttention).attend(0, query, key, value, 0.3)
    assert (found - torch.softmax(scores, dim=-1) @ values).abs().max() < TOLERANCE
    with pytest.raises(NotImplementedError):
        packed.attended_by(StructuredAttention).attend(0, query.requires_grad_(), key, value, 0.3).sum().backward()


def test_a_pack_is_prepared_once_for_all_passes_over_it(tiny):
    packed = pack(small_trees(tiny))
    made = packed.attended_by(StructuredAttention)
    policy = Policy(own_model(tiny))
    with torch.no_grad():
        policy.log_probs(packed)
        policy.frozen().log_probs(packed)
    assert packed.attended_by(StructuredAttention) is made
    assert packed.to("cpu").attended_by(StructuredAttention) is not made


def test_a_reference_attends_as_the_policy_does(tiny):
    asked = []

    class Watched(StructuredAttention):
        def attend(self, layer: int, *inputs: Any, **options: Any) -> Any:
            asked.append(layer)
            return super().attend(layer, *inputs, **options)

    policy = Policy(own_model(tiny), attention=Watched)
    with torch.no_grad():
        policy.frozen().log_probs(pack(small_trees(tiny)))
    assert asked == [0, 1]


def test_tokens_of_rows_are_counted_beside_those_of_the_pack(tiny):
    trees = small_trees(tiny)
    assert pack(trees).row_tokens == sum(len(before) + len(tokens) for before, tokens in tree_rows(trees))
    trunk = tiny.trunks[0]
    spans = [(reply.start, reply.end) for reply in trunk.replies]
    assert pack([SessionTree(trunk.tokens, targets=spans)]).row_tokens == sum(end for _, end in spans)
