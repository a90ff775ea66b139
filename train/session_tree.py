"""One session as one packed sequence: a trunk, and at each step's fork the branches that were sampled there.

    trunk   system · page_1 · reply_1 · page_2 · … · page_T        (once)
    branch        └─ G replies       └─ G replies    └─ G replies    each sees the trunk up to its fork, and itself

Token q may see token k iff k lies on the trunk at or before q's fork, or in q's own branch at or before q; positions
are those of the unpacked prompt. Log-probabilities and gradients equal those of unpacked rows (tested to 1e-5), at T
pages instead of T·(T+1)/2·G. Several sessions are packed one after the other; they do not see each other.

The unchanged model runs with this module's attention and the layout as a keyword argument: each trunk is one causal
attention, and each step's replies are one masked attention against the trunk up to their fork and themselves, so that
almost no masked pair is computed. On GPU the same code runs (untested here). Dropout of attention weights, which a
configuration may ask for, is not done.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AttentionInterface

__all__ = [
    "Attention",
    "PackedGroup",
    "PackedSpan",
    "PackedTrees",
    "SessionTree",
    "attend_by",
    "attend_causally",
    "attention_bias",
    "enable_tree_attention",
    "hidden_states",
    "pack",
    "pack_trunks",
]

IMPLEMENTATION = "session_tree"


@dataclass(frozen=True)
class SessionTree:
    """A session's trunk and the replies that fork from it.

    Attributes:
        trunk: Tokens (L,).
        forks: For each step with replies, how many trunk tokens its prompt has; at least 1.
        replies: For each fork, the tokens of its replies; none is empty.
    """

    trunk: Sequence[int]
    forks: Sequence[int]
    replies: Sequence[Sequence[Sequence[int]]]


class Attention(Protocol):
    """What takes part in a forward pass in place of the model's own attention."""

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """(1, heads, L, d), (1, key-value heads, L, d) twice -> (1, heads, L, d)."""


@dataclass(frozen=True)
class PackedGroup:
    """One step's replies in the packed sequence: tokens [start, end), fork at `visible` tokens of the trunk.

    Attributes:
        mask: (end - start, visible + end - start), True where a token may look.
        targets: Which of the pack's N reply tokens they are.
        replies: Which of its R replies.
    """

    start: int
    end: int
    visible: int
    mask: Tensor
    targets: slice
    replies: slice


@dataclass(frozen=True)
class PackedSpan:
    """One session in the packed sequence: its trunk [start, end), then its groups.

    Attributes:
        sources: The places on the trunk that predict reply tokens on the trunk itself, in order.
        first_target: The first of these reply tokens, of the pack's N.
    """

    start: int
    end: int
    groups: tuple[PackedGroup, ...]
    sources: Sequence[int] = ()
    first_target: int = 0


@dataclass(frozen=True)
class PackedTrees:
    """Several session trees as one sequence of L tokens with N reply tokens in R replies.

    Attributes:
        input_ids, position_ids: (1, L).
        predicted_from: (N,) for each reply token, the place whose hidden state predicts it.
        targets: (N,) the reply tokens, reply after reply in the order of `pack`.
        reply_lengths: R numbers that sum to N.
        biases: The groups' masks as attention adds them, one for all layers: each would make and keep its own.
    """

    input_ids: Tensor
    position_ids: Tensor
    predicted_from: Tensor
    targets: Tensor
    reply_lengths: list[int]
    spans: tuple[PackedSpan, ...]
    biases: dict[tuple[int, torch.dtype], Tensor] = field(default_factory=dict, repr=False, compare=False)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """Trunks causally, each step's replies against the trunk up to their fork and themselves."""
        parts = []
        for span in self.spans:
            trunk = slice(span.start, span.end)
            parts.append(attend_causally(query[:, :, trunk], key[:, :, trunk], value[:, :, trunk], scale))
            for group in span.groups:
                seen, own = slice(span.start, span.start + group.visible), slice(group.start, group.end)
                keys, values = ([of[:, :, seen], of[:, :, own]] for of in (key, value))
                parts.append(attend_by(self._bias(group, query), query[:, :, own], keys, values, scale))
        return torch.cat(parts, dim=2)

    def _bias(self, group: PackedGroup, query: Tensor) -> Tensor:
        key = group.start, attention_dtype(query)
        if key not in self.biases:
            self.biases[key] = attention_bias(group.mask, query)
        return self.biases[key]

    def to(self, device: torch.device | str) -> "PackedTrees":
        """The same on another device."""
        return self.map(lambda tensor: tensor.to(device))

    def map(self, change: Callable[[Tensor], Tensor]) -> "PackedTrees":
        """The same with `change` of every tensor in its place."""
        spans = tuple(
            replace(span, groups=tuple(replace(group, mask=change(group.mask)) for group in span.groups))
            for span in self.spans
        )
        return PackedTrees(
            change(self.input_ids),
            change(self.position_ids),
            change(self.predicted_from),
            change(self.targets),
            self.reply_lengths,
            spans,
        )


def attention_dtype(query: Tensor) -> torch.dtype:
    """What the products of attention are computed in."""
    device = query.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else query.dtype


def attention_bias(mask: Tensor, query: Tensor) -> Tensor:
    """A mask, True where a token may look, as what is added to the scores: 0 there, minus infinity elsewhere."""
    bias = torch.zeros(mask.shape, dtype=attention_dtype(query), device=mask.device)
    return bias.masked_fill_(~mask, -torch.inf)


def attend_by(bias: Tensor, query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], scale: float) -> Tensor:
    """Attention to places that lie in several parts, (1, key-value heads, n, d) each, under a bias over all of them."""
    grouped = query.shape[1] != keys[0].shape[1]
    joined = torch.cat([*keys], dim=2), torch.cat([*values], dim=2)
    return F.scaled_dot_product_attention(query, *joined, attn_mask=bias, scale=scale, enable_gqa=grouped)


def attend_causally(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """Causal attention of one sequence with itself."""
    grouped = query.shape[1] != key.shape[1]
    return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, enable_gqa=grouped)


def pack(trees: Sequence[SessionTree]) -> PackedTrees:
    """Packs session trees: trunk, then fork after fork, each with its replies one after the other."""
    tokens: list[int] = []
    positions: list[int] = []
    predicted_from: list[int] = []
    targets: list[int] = []
    lengths: list[int] = []
    spans = []
    for tree in trees:
        start = len(tokens)
        tokens += tree.trunk
        positions += range(len(tree.trunk))
        end = len(tokens)
        groups = []
        for fork, replies in zip(tree.forks, tree.replies, strict=True):
            first, first_target, first_reply = len(tokens), len(targets), len(lengths)
            for reply in replies:
                predicted_from += [start + fork - 1, *range(len(tokens), len(tokens) + len(reply) - 1)]
                targets += reply
                lengths.append(len(reply))
                tokens += reply
                positions += range(fork, fork + len(reply))
            mask = _group_mask(fork, [len(reply) for reply in replies])
            own = slice(first_target, len(targets)), slice(first_reply, len(lengths))
            groups.append(PackedGroup(first, len(tokens), fork, mask, *own))
        spans.append(PackedSpan(start, end, tuple(groups)))
    return PackedTrees(
        input_ids=torch.tensor([tokens]),
        position_ids=torch.tensor([positions]),
        predicted_from=torch.tensor(predicted_from, dtype=torch.long),
        targets=torch.tensor(targets, dtype=torch.long),
        reply_lengths=lengths,
        spans=tuple(spans),
    )


def pack_trunks(trunks: Sequence[tuple[Sequence[int], Sequence[tuple[int, int]]]]) -> PackedTrees:
    """Packs trunks alone, whose own replies at the given (start, end) are the targets: SFT on whole sessions."""
    tokens: list[int] = []
    positions: list[int] = []
    predicted_from: list[int] = []
    lengths: list[int] = []
    spans = []
    for trunk, replies in trunks:
        start, first_target = len(tokens), len(predicted_from)
        tokens += trunk
        positions += range(len(trunk))
        for first, end in replies:
            predicted_from += range(start + first - 1, start + end - 1)
            lengths.append(end - first)
        spans.append(PackedSpan(start, len(tokens), (), predicted_from[first_target:], first_target))
    packed, sources = torch.tensor([tokens]), torch.tensor(predicted_from, dtype=torch.long)
    return PackedTrees(packed, torch.tensor([positions]), sources, packed[0, sources + 1], lengths, tuple(spans))


def _group_mask(visible: int, lengths: Sequence[int]) -> Tensor:
    """(n, visible + n): the whole visible trunk, and in the own branch what lies at or before."""
    branch = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    own = (branch[:, None] == branch[None, :]).tril()
    return torch.cat([torch.ones(len(branch), visible, dtype=torch.bool), own], dim=1)


def enable_tree_attention(model: Any) -> None:
    """Makes `model` attend by a layout from this module, and by nothing else; train.architectures: which models may."""
    AttentionInterface.register(IMPLEMENTATION, _tree_attention)
    model.set_attn_implementation(IMPLEMENTATION)


def hidden_states(model: Any, input_ids: Tensor, position_ids: Tensor, attention: Attention) -> Tensor:
    """The last hidden states (L, H) of a packed sequence under the given attention."""
    decoder = model.get_decoder()
    output = decoder(input_ids=input_ids, position_ids=position_ids, layout=attention, use_cache=False)
    states: Tensor = output.last_hidden_state
    return states[0]


def _tree_attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, scaling: float, **kwargs: Any
) -> tuple[Tensor, None]:
    layout: Attention | None = kwargs.get("layout")
    if layout is None:
        raise RuntimeError("the session_tree attention needs a layout; use hidden_states(), or another implementation.")
    return layout.attend(module.layer_idx, query, key, value, scaling).transpose(1, 2).contiguous(), None
