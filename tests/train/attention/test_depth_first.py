"""Depth-first passes: the numbers of the packed pass, piece by piece, in less memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from replay_sessions.foundation.errors import BadConfig
from shop_env.reward import RewardConfig
from tests.train.conftest import Tiny
from tests.train.test_grpo import CONFIG, changed, hand_made_groups, shifted_reference
from tests.train.test_session_tree import random_tree
from train.config import LoraConfig, OptimizerConfig, SftConfig, SftStage
from train.grpo.groups import micro_batches
from train.lora import add_adapter
from train.models import load_model
from train.objectives.grpo import GrpoTrainer
from train.policy import Policy, autocast_dtype, log_probabilities, policy_stats
from train.session_tree import PackedTrees, SessionTree, enable_tree_attention, pack
from train.sft import SftTrainer

STATS = partial(policy_stats, temperature=0.6, definition="kl_uniform_policy")
STRETCHES = (13, 100, 10_000)


def trees_of(tiny: Tiny) -> PackedTrees:
    """Several sessions, replies of many lengths, trunks that go on behind their last fork."""
    trees = [random_tree(tiny, index) for index in range(2)]
    longer = SessionTree(tiny.trunks[0].tokens, trees[0].forks, trees[0].replies)
    return pack([longer, *trees, SessionTree([1], [1], [[[3, 4]]])])


def trunks_of(tiny: Tiny) -> PackedTrees:
    return pack(
        [SessionTree(trunk.tokens, targets=[(r.start, r.end) for r in trunk.replies]) for trunk in tiny.trunks[:3]]
    )


def own_model(tiny: Tiny) -> Any:
    model = tiny.plain_model()
    enable_tree_attention(model)
    return model


def learnt(policy: Policy, packed: PackedTrees) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The log-probabilities of all reply tokens, and the gradients of a weighted sum of them."""
    policy.zero_grad()
    count, device = len(packed.targets), packed.input_ids.device
    weights = torch.randn(count, generator=torch.Generator().manual_seed(0)).to(device) / count
    found = torch.full((count,), torch.nan, device=device)
    for output in policy.forward_chunks(packed, STATS):
        log_probs = output.value.log_probs
        assert found[output.targets].isnan().all(), "a token came twice"
        found[output.targets] = log_probs.detach()
        (log_probs * weights[output.targets]).sum().backward()
    gradients = {name: p.grad.clone() for name, p in policy.model.named_parameters() if p.grad is not None}
    return found, gradients


def assert_alike(policy: Policy, other: Policy, packed: PackedTrees, tolerance: float = 1e-5) -> None:
    (found, gradients), (expected, wanted) = learnt(policy, packed), learnt(other, packed)
    assert (found - expected).abs().max() < tolerance
    assert gradients.keys() == wanted.keys() != set()
    for name, gradient in gradients.items():
        assert (gradient - wanted[name]).abs().max() <= tolerance * wanted[name].abs().max() + 1e-9, name


@pytest.mark.parametrize("chunk_tokens", STRETCHES)
@pytest.mark.parametrize("pack_of", [trees_of, trunks_of])
def test_log_probabilities_and_gradients_equal_those_of_the_packed_pass(
    tiny: Tiny, pack_of: Any, chunk_tokens: int
) -> None:
    model = own_model(tiny)
    assert_alike(Policy(model, chunk_tokens=chunk_tokens), Policy(model), pack_of(tiny))


def test_a_stretch_may_be_a_single_token(tiny: Tiny) -> None:
    model = own_model(tiny)
    tree = SessionTree(tiny.trunks[0].tokens[:9], [4, 5, 9], [[[3, 4], [5]], [[6]], [[7, 8, 9]]])
    assert_alike(Policy(model, chunk_tokens=1), Policy(model), pack([tree]))


def test_chunks_hold_complete_replies_of_one_step_from_the_last_to_the_first(tiny: Tiny) -> None:
    tree = random_tree(tiny, 1)
    packed = pack([tree])
    ends = []
    for output in Policy(own_model(tiny), chunk_tokens=7).forward_chunks(packed, STATS):
        lengths = packed.reply_lengths[output.replies]
        assert sum(lengths) == output.targets.stop - output.targets.start == len(output.value.log_probs)
        assert len(lengths) in map(len, tree.replies)
        ends.append(output.replies.stop)
        output.value.log_probs.sum().backward()
    assert ends == sorted(ends, reverse=True)
    assert len(ends) == len(tree.forks)


def test_lora_learns_the_same(tiny: Tiny, tmp_path: Path) -> None:
    tiny.plain_model().save_pretrained(tmp_path / "base")
    tiny.tokenizer.save_pretrained(tmp_path / "base")
    for layers in (("all-linear",), ("q_proj",), ("v_proj", "down_proj")):
        base, _ = load_model(str(tmp_path / "base"), own_tokenizer=True)
        model = add_adapter(base, LoraConfig(rank=4, target_modules=layers), seed=0)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "lora_" in name:
                    parameter += 0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
        assert_alike(Policy(model, chunk_tokens=40), Policy(model), trees_of(tiny))


def test_dropout_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    tiny.plain_model().save_pretrained(tmp_path / "base")
    tiny.tokenizer.save_pretrained(tmp_path / "base")
    base, _ = load_model(str(tmp_path / "base"), own_tokenizer=True)
    model = add_adapter(base, LoraConfig(rank=4, dropout=0.1), seed=0)
    with pytest.raises(BadConfig, match=r"dropout of 0\.1 in this model or its LoRA"):
        Policy(model, chunk_tokens=40)
    Policy(model)


def test_recomputed_layers_learn_the_same(tiny: Tiny) -> None:
    model, plain = own_model(tiny).train(), own_model(tiny).train()
    assert_alike(Policy(model, chunk_tokens=40, gradient_checkpointing=True), Policy(plain), trees_of(tiny))


def test_autocast_stays_close(tiny: Tiny) -> None:
    model, bfloat16 = own_model(tiny), autocast_dtype("bfloat16_autocast")
    assert_alike(Policy(model, autocast=bfloat16, chunk_tokens=40), Policy(model), trees_of(tiny), tolerance=0.05)


@pytest.mark.parametrize("options", [{}, {"num_iterations": 2}], ids=str)
def test_a_step_of_grpo_has_the_same_figures_and_gradients(tiny: Tiny, options: dict[str, Any]) -> None:
    frozen = shifted_reference(tiny)
    enable_tree_attention(frozen)
    config = changed(CONFIG, **options)
    figures, gradients = [], []
    for chunk_tokens in (None, 40):
        model = own_model(tiny)
        policy = Policy(model, chunk_tokens=chunk_tokens)
        trainer = GrpoTrainer(policy, Policy(frozen), tiny.tokenizer, tiny.trunks, config, RewardConfig(), seed=0)
        batch = list(micro_batches(hand_made_groups(tiny), config.max_batch_tokens))
        figures.append(trainer.learn(batch, trainer.statistics(batch) if options else None))
        gradients.append([parameter.grad for parameter in model.parameters()])
    packed, walked = figures
    assert walked == pytest.approx(packed, abs=1e-5)
    for whole, piecewise in zip(*gradients, strict=True):
        assert (whole - piecewise).abs().max() <= 1e-5 * whole.abs().max() + 1e-9


def test_a_step_of_sft_has_the_same_figures(tiny: Tiny) -> None:
    config = SftConfig(optimizer=OptimizerConfig(lr=1e-3), stages=(SftStage(steps=2),), sessions_per_batch=3)
    rows = []
    for chunk_tokens in (None, 40):
        trainer = SftTrainer(Policy(own_model(tiny), chunk_tokens=chunk_tokens), tiny.trunks, config, seed=0)
        rows.append([trainer.step(step) for step in range(2)])
    for packed, walked in zip(*rows, strict=True):
        assert walked == pytest.approx(packed, rel=1e-4)


@contextmanager
def kept_bytes() -> Iterator[list[int]]:
    """The most bytes that graphs keep for their backward passes at a time; parameters are not counted."""
    kept: dict[int, int] = {}
    most = [0]

    class Kept:
        def __init__(self, tensor: torch.Tensor) -> None:
            self.tensor, self.key = tensor, tensor.untyped_storage().data_ptr()
            kept[self.key] = kept.get(self.key, 0) + 1
            sizes[self.key] = tensor.untyped_storage().nbytes()
            most[0] = max(most[0], sum(sizes[key] for key, times in kept.items() if times))

        def __del__(self) -> None:
            kept[self.key] -= 1

    sizes: dict[int, int] = {}
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: tensor if isinstance(tensor, torch.nn.Parameter) else Kept(tensor),
        lambda given: given.tensor if isinstance(given, Kept) else given,
    ):
        yield most


def test_graphs_keep_far_less_at_a_time(tiny: Tiny) -> None:
    trunk = max(tiny.trunks, key=lambda each: len(each.tokens))
    forks = [reply.start for reply in trunk.replies]
    packed = pack([SessionTree(trunk.tokens[: forks[-1]], forks, [[[3] * 30] * 8 for _ in forks])])
    most = {}
    for chunk_tokens in (None, 64):
        policy = Policy(own_model(tiny), chunk_tokens=chunk_tokens)
        with kept_bytes() as kept:
            for output in policy.forward_chunks(packed, log_probabilities):
                output.value.sum().backward()
        (most[chunk_tokens],) = kept
    assert most[64] < 0.4 * most[None]
