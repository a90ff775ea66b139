"""One session and the ways to learn from its replies, for every measurement of training (training.py, training_gpu.py).

The session: 7 steps, pages of a given length, and at each step a logged reply and 8 sampled ones of 40 tokens.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoConfig, AutoModelForCausalLM

from train.attention.merged import merged_where_long
from train.policy import Policy
from train.policy_stats import log_probabilities
from train.session_tree import PackedTrees, SessionTree, enable_tree_attention, pack

__all__ = ["SHAPES", "STRETCH", "Size", "Way", "device_here", "model_of", "passed", "session", "ways_of"]

STRETCH = 512
SHAPES: dict[str, dict[str, Any]] = {
    "31m": {"hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8, "vocab_size": 8000},
    "3.7m": {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 1100},
    "tiny": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100},
    "smollm2": {"hidden_size": 576, "num_hidden_layers": 30, "num_attention_heads": 9, "vocab_size": 49152},
    "qwen0.5b": {"hidden_size": 896, "num_hidden_layers": 24, "num_attention_heads": 14, "vocab_size": 151936},
    "qwen3b": {"hidden_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 16, "vocab_size": 151936},
}
_KEY_VALUE_HEADS = {"tiny": 2, "smollm2": 3, "qwen0.5b": 2, "qwen3b": 2}  # the others share none
_INNER = {"31m": 1408, "3.7m": 704, "tiny": 48, "smollm2": 1536, "qwen0.5b": 4864, "qwen3b": 11008}
_KINDS = {"qwen0.5b": "qwen2", "qwen3b": "qwen2"}
_TIED = ("smollm2", "qwen0.5b", "qwen3b")


Way = Callable[[SessionTree], float]
"""Leaves gradients, and returns the sum of the replies' log-probabilities."""


@dataclass(frozen=True)
class Size:
    """How large a session is, in tokens."""

    page: int
    steps: int = 7
    replies: int = 8
    reply: int = 40

    @property
    def trunk(self) -> int:
        return self.steps * (self.page + self.reply) - self.reply


def session(size: Size, vocabulary: int, *, seed: int = 0) -> SessionTree:
    """Random tokens: a page and a logged reply at each step, and at each fork the sampled replies."""
    draw = torch.Generator().manual_seed(seed)
    step = size.page + size.reply
    trunk = torch.randint(vocabulary, (size.trunk,), generator=draw).tolist()
    replies = torch.randint(vocabulary, (size.steps, size.replies, size.reply), generator=draw).tolist()
    return SessionTree(trunk, [size.page + number * step for number in range(size.steps)], replies)


def model_of(shape: str, device: str = "cpu") -> Any:
    """A model of this shape with random weights in float32, by transformers' own attention."""
    heads = SHAPES[shape]["num_attention_heads"]
    config = AutoConfig.for_model(
        _KINDS.get(shape, "llama"),
        **SHAPES[shape],
        num_key_value_heads=_KEY_VALUE_HEADS.get(shape, heads),
        intermediate_size=_INNER[shape],
        tie_word_embeddings=shape in _TIED,
        max_position_embeddings=65536,
    )
    torch.manual_seed(0)
    with torch.device(device):
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="sdpa")


def device_here() -> str:
    """A GPU where there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def ways_of(shape: str) -> dict[str, Way]:
    """Each way to learn from a session, with a model of its own that is made when the way is first taken."""
    return {
        "packed": _Packed(shape, {"attention": merged_where_long}, _whole),
        "depth_first": _Packed(shape, {"stretch_tokens": STRETCH}, _whole),
        "prefix": _Packed(shape, {}, _by_prompt),
        "trie": _Packed(shape, {"attention": Dense}, _whole),
        "rows": _Rows(shape),
    }


class _Packed:
    def __init__(
        self, shape: str, options: dict[str, Any], packs_of: Callable[[SessionTree], Sequence[PackedTrees]]
    ) -> None:
        self._shape, self._options, self._packs_of = shape, options, packs_of
        self._policy: Policy | None = None

    def __call__(self, tree: SessionTree) -> float:
        if self._policy is None:
            self._policy = Policy(_tree_model(self._shape), **self._options)
        return passed(self._policy, self._packs_of(tree))


class _Rows:
    def __init__(self, shape: str) -> None:
        self._shape = shape
        self._model: Any = None

    def __call__(self, tree: SessionTree) -> float:
        self._model = self._model or model_of(self._shape)
        return _by_rows(self._model, tree)


def _whole(tree: SessionTree) -> list[PackedTrees]:
    return [pack([tree])]


def _tree_model(shape: str) -> Any:
    model = model_of(shape)
    enable_tree_attention(model)
    return model


def _by_prompt(tree: SessionTree) -> list[PackedTrees]:
    """Each prompt once with its own replies."""
    return [
        pack([SessionTree(tree.trunk[:fork], [fork], [replies])])
        for fork, replies in zip(tree.forks, tree.replies, strict=True)
    ]


def passed(policy: Policy, packs: Sequence[PackedTrees]) -> float:
    """The sum of log-probabilities, with its gradient."""
    policy.zero_grad()
    total = 0.0
    for packed in packs:
        for piece in policy.pieces(packed, log_probabilities):
            log_probs = piece.found.sum()
            log_probs.backward()
            total += log_probs.item()
    return total


def _by_rows(model: Any, tree: SessionTree) -> float:
    model.zero_grad()
    total = 0.0
    for fork, replies in zip(tree.forks, tree.replies, strict=True):
        rows = torch.tensor([[*tree.trunk[:fork], *reply] for reply in replies])
        length = len(replies[0])
        logits = model(rows, logits_to_keep=length + 1, use_cache=False).logits[:, :-1]
        log_probs = torch.log_softmax(logits, dim=-1).gather(2, rows[:, -length:, None]).sum()
        log_probs.backward()
        total += log_probs.item()
    return total


class Dense:
    """Attention over a whole pack under one mask (L, L)."""

    def __init__(self, packed: PackedTrees) -> None:
        length = packed.input_ids.shape[1]
        self._mask = torch.zeros(length, length, dtype=torch.bool)
        for span in packed.spans:
            trunk = slice(span.start, span.end)
            self._mask[trunk, trunk] = torch.ones(span.end - span.start, span.end - span.start).tril().bool()
            for group in span.groups:
                own = slice(group.start, group.end)
                self._mask[own, span.start : span.start + group.visible] = True
                self._mask[own, own] = group.own

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        grouped = query.shape[1] != key.shape[1]
        return F.scaled_dot_product_attention(query, key, value, attn_mask=self._mask, scale=scale, enable_gqa=grouped)
