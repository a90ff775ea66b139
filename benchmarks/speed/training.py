"""One forward and backward pass over a session's sampled replies: the session tree beside the usual ways.

    python -m benchmarks.speed training

A session of 7 steps, pages of 300 tokens, 8 replies of 40 tokens at each step; models of 31 and 3.7 million random
parameters, float32. All ways compute the same sum of log-probabilities, which is checked. `training.pass.SHAPE.PEER` is
the seconds of wall time that the tree takes in one pass, on torch's threads, and what the peer takes:

    rows      every reply behind its whole prompt in a row of its own, the 8 of a step in a batch, transformers' sdpa
    prefix    each prompt once with its 8 replies, as trainers do that share a prompt among its replies
    trie      the whole session packed as here, under one dense mask

`training.pass.SHAPE.depth_first.packed` is the depth-first pass beside that one, `training.memory…` the most memory in
MiB that either adds to a process at some 8,000 tokens, each in a process of its own.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.speed.measurement import Measurement, median_times
from train.policy import Policy
from train.policy_stats import log_probabilities
from train.session_tree import PackedTrees, SessionTree, enable_tree_attention, pack

if TYPE_CHECKING:
    from benchmarks.speed.__main__ import Options

__all__ = ["measure"]

_RUNS = 3
_STEPS, _REPLIES, _REPLY, _PAGE = 7, 8, 40, 300
_LONG_PAGE = 850  # about 8,000 tokens with the replies
_STRETCH = 512
_SHAPES: dict[str, dict[str, int]] = {
    "31m": {
        "hidden_size": 512,
        "num_hidden_layers": 8,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "intermediate_size": 1408,
        "vocab_size": 8000,
    },
    "3.7m": {
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "intermediate_size": 704,
        "vocab_size": 1100,
    },
}


def measure(options: "Options") -> Iterator[Measurement]:
    """Times every way at both shapes, then the memory of the two schedules."""
    runs = options.runs or _RUNS
    for shape in _SHAPES:
        tree = _session(_PAGE, _SHAPES[shape]["vocab_size"])
        ways = _ways(shape, tree)
        _check_sums(shape, ways)
        seconds = median_times(ways, runs, clock=time.perf_counter)
        for peer in ("rows", "prefix", "trie"):
            yield _measurement(f"training.pass.{shape}.{peer}", "s", seconds["packed"], peer, seconds[peer], runs)
        depth_first, packed = seconds["depth_first"], seconds["packed"]
        yield _measurement(f"training.pass.{shape}.depth_first.packed", "s", depth_first, "packed", packed, runs)
    memory = {stretch: _added_memory("31m", stretch) for stretch in (None, _STRETCH)}
    yield _measurement(
        "training.memory.31m.depth_first.packed", "MiB", memory[_STRETCH], "packed", memory[None], runs=1
    )


def _measurement(name: str, unit: str, value: float, peer: str, peer_value: float, runs: int) -> Measurement:
    ratio = peer_value / value
    return Measurement(name=name, value=value, unit=unit, peer=peer, peer_value=peer_value, ratio=ratio, runs=runs)


def _session(page: int, vocabulary: int) -> SessionTree:
    """Random tokens: a page and a logged reply at each step, and at each fork the sampled replies."""
    draw = torch.Generator().manual_seed(0)
    step = page + _REPLY
    trunk = torch.randint(vocabulary, (_STEPS * step - _REPLY,), generator=draw).tolist()
    replies = torch.randint(vocabulary, (_STEPS, _REPLIES, _REPLY), generator=draw).tolist()
    return SessionTree(trunk, [page + number * step for number in range(_STEPS)], replies)


def _model(shape: str) -> Any:
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**_SHAPES[shape], max_position_embeddings=16384, attn_implementation="sdpa"))


def _ways(shape: str, tree: SessionTree) -> dict[str, Callable[[], float]]:
    """Each way, as a function that leaves gradients and returns the sum of log-probabilities."""
    model, plain = _model(shape), _model(shape)
    enable_tree_attention(model)
    single = [
        pack([SessionTree(tree.trunk[:fork], [fork], [replies])])
        for fork, replies in zip(tree.forks, tree.replies, strict=True)
    ]
    whole = pack([tree])
    dense = _Dense(whole)

    def trie() -> float:
        model.zero_grad()
        log_probs = Policy(model)(
            whole.input_ids, whole.position_ids, dense, whole.predicted_from,
            lambda states, weight: log_probabilities(states, weight, targets=whole.targets),
        )  # fmt: skip
        total = log_probs.sum()
        total.backward()
        return float(total.item())

    return {
        "packed": lambda: _pass(Policy(model), [whole]),
        "depth_first": lambda: _pass(Policy(model, stretch_tokens=_STRETCH), [whole]),
        "prefix": lambda: _pass(Policy(model), single),
        "trie": trie,
        "rows": lambda: _rows(plain, tree),
    }


def _check_sums(shape: str, ways: dict[str, Callable[[], float]]) -> None:
    sums = {name: way() for name, way in ways.items()}
    wanted = sums["rows"]
    if any(abs(found - wanted) > 1e-4 * abs(wanted) for found in sums.values()):
        raise RuntimeError(f"the ways differ at {shape}, so their times say nothing: {sums}")


def _pass(policy: Policy, packs: list[PackedTrees]) -> float:
    policy.zero_grad()
    total = 0.0
    for packed in packs:
        for piece in policy.pieces(packed, log_probabilities):
            log_probs = piece.found.sum()
            log_probs.backward()
            total += log_probs.item()
    return total


def _rows(model: Any, tree: SessionTree) -> float:
    model.zero_grad()
    total = 0.0
    for fork, replies in zip(tree.forks, tree.replies, strict=True):
        rows = torch.tensor([[*tree.trunk[:fork], *reply] for reply in replies])
        logits = model(rows, logits_to_keep=_REPLY + 1, use_cache=False).logits[:, :-1]
        log_probs = torch.log_softmax(logits, dim=-1).gather(2, rows[:, -_REPLY:, None]).sum()
        log_probs.backward()
        total += log_probs.item()
    return total


class _Dense:
    """Attention over a whole pack under one mask (L, L)."""

    def __init__(self, packed: PackedTrees) -> None:
        length = packed.input_ids.shape[1]
        self._mask = torch.zeros(length, length, dtype=torch.bool)
        for span in packed.spans:
            trunk = slice(span.start, span.end)
            self._mask[trunk, trunk] = torch.ones(span.end - span.start, span.end - span.start).tril().bool()
            for group in span.groups:
                own = slice(group.start, group.end)
                self._mask[own, span.start : span.start + group.visible] = group.mask[:, : group.visible]
                self._mask[own, own] = group.mask[:, group.visible :]

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=self._mask, scale=scale)


def _added_memory(shape: str, stretch_tokens: int | None) -> float:
    """MiB that a pass over a session of some 8,000 tokens adds to what a process holds, at most."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_pass_in_process, args=(shape, stretch_tokens, sender))
    process.start()
    sender.close()
    added: float = receiver.recv()
    process.join()
    return added


def _pass_in_process(shape: str, stretch_tokens: int | None, sender: Any) -> None:
    model = _model(shape)
    enable_tree_attention(model)
    policy = Policy(model, stretch_tokens=stretch_tokens)
    _pass(policy, [pack([SessionTree([1], [1], [[[2]]])])])  # gradients are there, threads have started
    packed = pack([_session(_LONG_PAGE, _SHAPES[shape]["vocab_size"])])
    before = _most_mebibytes()
    _pass(policy, [packed])
    sender.send(_most_mebibytes() - before)


def _most_mebibytes() -> float:
    """The most that this process held; `ru_maxrss` would begin with what the process held that started it."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024
