"""One session as one packed sequence: a trunk, and at each step's fork the branches that were sampled there.

    trunk   system · page_1 · reply_1 · page_2 · … · page_T        (once)
    branch        └─ G replies       └─ G replies    └─ G replies    each sees the trunk up to its fork, and itself

Token q may see token k iff k lies on the trunk at or before q's fork, or in q's own branch at or before q; positions
are those of the unpacked prompt. Log-probabilities and gradients equal those of unpacked rows (tested to 1e-5), at T
pages instead of T·(T+1)/2·G. Several sessions are packed one after the other; they do not see each other.

The unchanged model runs with one of the attentions of train/attention, handed to it as a keyword argument. Dropout of
attention weights, which a configuration may ask for, is not done.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import AttentionInterface

__all__ = [
    "Attention",
    "PackedGroup",
    "PackedSpan",
    "PackedTrees",
    "SessionTree",
    "TreeAttention",
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
        own: (end - start, end - start), True where a token may look among the step's replies.
        targets: Which of the pack's N reply tokens they are.
        replies: Which of its R replies.
    """

    start: int
    end: int
    visible: int
    own: Tensor
    targets: slice
    replies: slice

    @property
    def mask(self) -> Tensor:
        """(end - start, visible + end - start): the same behind the part of the trunk that all of them see."""
        seen = torch.ones(len(self.own), self.visible, dtype=torch.bool, device=self.own.device)
        return torch.cat([seen, self.own], dim=1)


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
        row_tokens: Tokens of the same replies as rows, each behind its whole prompt: L over these is what is left of
            the work, at the least.
    """

    input_ids: Tensor
    position_ids: Tensor
    predicted_from: Tensor
    targets: Tensor
    reply_lengths: list[int]
    spans: tuple[PackedSpan, ...]
    row_tokens: int
    _attentions: dict["TreeAttention", Attention] = field(default_factory=dict, repr=False, compare=False)

    def attended_by(self, attention: "TreeAttention") -> Attention:
        """What attends in every pass over this pack; made once."""
        if attention not in self._attentions:
            self._attentions[attention] = attention(self)
        return self._attentions[attention]

    def to(self, device: torch.device | str) -> "PackedTrees":
        """The same on another device."""
        return self.map(lambda tensor: tensor.to(device))

    def map(self, change: Callable[[Tensor], Tensor]) -> "PackedTrees":
        """The same with `change` of every tensor in its place."""
        spans = tuple(
            replace(span, groups=tuple(replace(group, own=change(group.own)) for group in span.groups))
            for span in self.spans
        )
        return PackedTrees(
            change(self.input_ids),
            change(self.position_ids),
            change(self.predicted_from),
            change(self.targets),
            self.reply_lengths,
            spans,
            self.row_tokens,
        )


TreeAttention = Callable[[PackedTrees], Attention]
"""A way to attend over session trees: train/attention has some. What it makes of a pack must not hold the pack."""


def pack(trees: Sequence[SessionTree]) -> PackedTrees:
    """Packs session trees: trunk, then fork after fork, each with its replies one after the other."""
    tokens: list[int] = []
    positions: list[int] = []
    predicted_from: list[int] = []
    targets: list[int] = []
    lengths: list[int] = []
    spans = []
    row_tokens = 0
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
                row_tokens += fork + len(reply)
            own = _own_mask([len(reply) for reply in replies])
            places = slice(first_target, len(targets)), slice(first_reply, len(lengths))
            groups.append(PackedGroup(first, len(tokens), fork, own, *places))
        spans.append(PackedSpan(start, end, tuple(groups)))
    return PackedTrees(
        input_ids=torch.tensor([tokens]),
        position_ids=torch.tensor([positions]),
        predicted_from=torch.tensor(predicted_from, dtype=torch.long),
        targets=torch.tensor(targets, dtype=torch.long),
        reply_lengths=lengths,
        spans=tuple(spans),
        row_tokens=row_tokens,
    )


def pack_trunks(trunks: Sequence[tuple[Sequence[int], Sequence[tuple[int, int]]]]) -> PackedTrees:
    """Packs trunks alone, whose own replies at the given (start, end) are the targets: SFT on whole sessions."""
    tokens: list[int] = []
    positions: list[int] = []
    predicted_from: list[int] = []
    lengths: list[int] = []
    spans = []
    row_tokens = 0
    for trunk, replies in trunks:
        start, first_target = len(tokens), len(predicted_from)
        tokens += trunk
        positions += range(len(trunk))
        for first, end in replies:
            predicted_from += range(start + first - 1, start + end - 1)
            lengths.append(end - first)
            row_tokens += end
        spans.append(PackedSpan(start, len(tokens), (), predicted_from[first_target:], first_target))
    ids, sources = torch.tensor([tokens]), torch.tensor(predicted_from, dtype=torch.long)
    targets = ids[0, sources + 1]
    return PackedTrees(ids, torch.tensor([positions]), sources, targets, lengths, tuple(spans), row_tokens)


def _own_mask(lengths: Sequence[int]) -> Tensor:
    """(n, n): in the own branch what lies at or before."""
    branch = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    return (branch[:, None] == branch[None, :]).tril()


def enable_tree_attention(model: Any) -> None:
    """Makes `model` attend as it is told for each pass, and by nothing else; train.architectures: which models may."""
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
