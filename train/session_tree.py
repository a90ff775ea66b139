"""Packs a session into one sequence: a trunk, and at each step's fork the branches that were sampled at that step.

    trunk   system · page_1 · reply_1 · page_2 · … · page_T        (once)
    branch        └─ G replies       └─ G replies    └─ G replies    each sees the trunk up to its fork, and itself

Token q may see token k iff k lies on the trunk at or before q's fork, or in q's own branch at or before q. Positions
are those of the unpacked prompt. A reply may fork once more: a continuation replaces the tokens behind its first ones
(prompt, sampled rationale, then the sampled action or the logged one), and is packed directly behind the reply.
Log-probabilities and gradients equal those of unpacked rows (tested to 1e-5), for T pages instead of T·(T+1)/2·G.
Several sessions are packed one after the other; they do not see each other.

The model is unchanged; it receives one of the attentions of train/attention as a keyword argument. Dropout of attention
weights is not applied, even if the model's configuration sets it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import AttentionInterface

IMPLEMENTATION = "session_tree"


@dataclass(frozen=True)
class SessionTree:
    """A session's trunk and the replies that fork from it.

    Attributes:
        trunk: Tokens of the trunk, (L,).
        forks: For each step with replies, the number of trunk tokens of its prompt, at least 1.
        replies: For each fork, the tokens of its replies; none is empty.
        targets: The (start, end) of replies on the trunk itself that are targets too, in order. SFT on whole sessions
            uses them.
        continuations: For each fork and each of its replies, (n, tokens): alternative tokens that follow the reply's
            first n tokens; None if the reply has no continuation. Empty if no reply has one.
        paths: For each fork whose n replies of one token each are the nodes of a trie, a matrix (n, n): True where the
            node of a row sees the node of a column. Tries have no backward pass. Empty if each reply sees only itself.
        prompts: For each fork, the number of first tokens of its replies that belong to the prompt. Empty if none do.
    """

    trunk: Sequence[int]
    forks: Sequence[int] = ()
    replies: Sequence[Sequence[Sequence[int]]] = ()
    targets: Sequence[tuple[int, int]] = ()
    continuations: Sequence[Sequence["Continuation | None"]] = ()
    paths: Sequence[Tensor] = ()
    prompts: Sequence[int] = ()


Continuation = tuple[int, Sequence[int]]


class Attention(Protocol):
    """Replaces a model's own attention in one forward pass."""

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """Computes the attention of a layer: (1, heads, L, d), (1, key-value heads, L, d) twice -> (1, heads, L, d)."""


@dataclass(frozen=True)
class PackedGroup:
    """The replies of one step in the packed sequence.

    Attributes:
        start: Index of the first token.
        end: Index behind the last token.
        visible: Number of tokens of the trunk that the replies see.
        paths: (end - start, end - start), True where a node of a trie sees another node. If None, each reply sees only
            itself.
        targets: The group's slice of the pack's N reply tokens.
        replies: The group's slice of the pack's R replies.
        prompt: Number of tokens before each reply that only it sees.
    """

    start: int
    end: int
    visible: int
    paths: Tensor | None
    targets: slice
    replies: slice
    prompt: int = 0


@dataclass(frozen=True)
class PackedSpan:
    """One session in the packed sequence: its trunk, tokens [start, end), then its groups.

    Attributes:
        sources: The positions on the trunk that predict targets on the trunk itself, in order.
        first_target: The index of the first of these targets among the pack's N.
    """

    start: int
    end: int
    groups: tuple[PackedGroup, ...]
    sources: Sequence[int]
    first_target: int


@dataclass(frozen=True)
class PackedTrees:
    """Several session trees as one sequence of L tokens with N reply tokens in R replies.

    Attributes:
        input_ids, position_ids: (1, L).
        predicted_from: (N,). For each reply token, the position of the hidden state that predicts it.
        targets: (N,). The reply tokens, in the order of `pack`, each reply with its continuation behind it.
        reply_lengths: The number of tokens of each of the R replies, with its continuation; they sum to N.
        replaced: For each of the R replies, the range of its tokens that its continuation replaces; the continuation
            begins where the range ends. An empty range at the end if the reply has no continuation.
        spans: The sessions.
        row_tokens: Number of tokens of the same replies as rows, each behind its whole prompt. L divided by this is the
            least share of the work that remains.
    """

    input_ids: Tensor
    position_ids: Tensor
    predicted_from: Tensor
    targets: Tensor
    reply_lengths: list[int]
    replaced: list[range]
    spans: tuple[PackedSpan, ...]
    row_tokens: int
    _attentions: dict["TreeAttention", Attention] = field(default_factory=dict, repr=False, compare=False)

    def attended_by(self, attention: "TreeAttention") -> Attention:
        """Returns the attention prepared for this pack, which is built once for all passes over it."""
        if attention not in self._attentions:
            self._attentions[attention] = attention(self)
        return self._attentions[attention]

    @property
    def is_continuation(self) -> Tensor:
        """A mask (N,), True for reply tokens that belong to a continuation."""
        lengths = [
            part
            for length, replaced in zip(self.reply_lengths, self.replaced, strict=True)
            for part in (replaced.stop, length - replaced.stop)
        ]
        kinds = torch.tensor([False, True]).repeat(len(self.reply_lengths))
        return kinds.repeat_interleave(torch.tensor(lengths, dtype=torch.long)).to(self.targets.device)

    def branches(self) -> Iterator[tuple[PackedSpan, PackedGroup, range, range]]:
        """Yields each reply that forks from a trunk.

        Yields:
            Its session, its step, its positions in the pack with those of its own prompt and its continuation, and
            those among them that the continuation replaces.
        """
        for span in self.spans:
            for group in span.groups:
                start = group.start
                replies = zip(self.reply_lengths[group.replies], self.replaced[group.replies], strict=True)
                for length, replaced in replies:
                    first, start = start, start + group.prompt + length
                    reply = range(first + group.prompt, start)
                    yield span, group, range(first, start), reply[replaced.start : replaced.stop]

    def to(self, device: torch.device | str) -> "PackedTrees":
        """Returns a copy on another device."""

        def of_group(group: PackedGroup) -> PackedGroup:
            return group if group.paths is None else replace(group, paths=to_device(group.paths, device))

        spans = tuple(replace(span, groups=tuple(map(of_group, span.groups))) for span in self.spans)
        names = ("input_ids", "position_ids", "predicted_from", "targets")
        tensors: dict[str, Any] = {name: to_device(getattr(self, name), device) for name in names}
        # Attentions that were prepared for the old tensors must not be used with the new ones.
        return replace(self, **tensors, spans=spans, _attentions={})


TreeAttention = Callable[[PackedTrees], Attention]
"""Builds the attention of a pack (train/attention). The result must not refer to the pack, which would be a cycle."""


def pack(trees: Sequence[SessionTree]) -> PackedTrees:
    """Packs session trees one after the other: the trunk, then for each fork its replies."""
    tokens: list[int] = []
    positions: list[int] = []
    predicted_from: list[int] = []
    targets: list[int] = []
    lengths: list[int] = []
    replaced: list[range] = []
    spans = []
    row_tokens = 0
    for tree in trees:
        start, first_of_span = len(tokens), len(targets)
        tokens += tree.trunk
        positions += range(len(tree.trunk))
        end = len(tokens)
        for first, last in tree.targets:
            predicted_from += range(start + first - 1, start + last - 1)
            targets += tree.trunk[first:last]
            lengths.append(last - first)
            replaced.append(range(last - first, last - first))
            row_tokens += last
        sources = predicted_from[first_of_span:]
        groups = []
        continuations = tree.continuations or [[None] * len(replies) for replies in tree.replies]
        paths: Sequence[Tensor | None] = tree.paths or [None] * len(tree.forks)
        prompts = tree.prompts or [0] * len(tree.forks)
        branches = zip(tree.forks, tree.replies, continuations, paths, prompts, strict=True)
        for fork, replies, others, group_paths, prompt in branches:
            first, first_target, first_reply = len(tokens), len(targets), len(lengths)
            for reply, other in zip(replies, others, strict=True):
                reply_start = len(tokens)
                shared, continuation = other or (len(reply), ())
                lengths.append(len(reply) - prompt + len(continuation))
                replaced.append(range(shared - prompt, len(reply) - prompt))
                for before, branch, given in ((0, reply, prompt), (shared, continuation, 0)):
                    if branch:
                        # The last token of the trunk's prompt predicts the first one of every branch.
                        source = reply_start + before - 1 if before else start + fork - 1
                        predicted_from += [source, *range(len(tokens), len(tokens) + len(branch) - 1)][given:]
                        targets += branch[given:]
                        tokens += branch
                        positions += range(fork + before, fork + before + len(branch))
                        row_tokens += fork + before + len(branch)
            slices = slice(first_target, len(targets)), slice(first_reply, len(lengths))
            groups.append(PackedGroup(first, len(tokens), fork, group_paths, *slices, prompt))
        spans.append(PackedSpan(start, end, tuple(groups), sources, first_of_span))
    return PackedTrees(
        input_ids=torch.tensor([tokens]),
        position_ids=torch.tensor([positions]),
        predicted_from=torch.tensor(predicted_from, dtype=torch.long),
        targets=torch.tensor(targets, dtype=torch.long),
        reply_lengths=lengths,
        replaced=replaced,
        spans=tuple(spans),
        row_tokens=row_tokens,
    )


def to_device(tensor: Tensor, device: torch.device | str) -> Tensor:
    """Copies a tensor from the host to a device, without waiting for the copy."""
    if torch.device(device).type == "cpu" or tensor.device.type != "cpu":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def enable_tree_attention(model: Any) -> None:
    """Makes `model` use the attention passed as `layout` in each pass; train.models checks which models support it."""
    AttentionInterface.register(IMPLEMENTATION, _tree_attention)
    model.set_attn_implementation(IMPLEMENTATION)


def get_head_shape(config: Any) -> tuple[int, int, int]:
    """Returns the numbers of query heads and key-value heads, and the width of a head, from a model's configuration."""
    config = config.get_text_config()
    heads: int = config.num_attention_heads
    width: int = getattr(config, "head_dim", None) or config.hidden_size // heads
    return heads, getattr(config, "num_key_value_heads", None) or heads, width


def hidden_states(model: Any, input_ids: Tensor, position_ids: Tensor, attention: Attention) -> Tensor:
    """Computes the last hidden states (L, H) of a packed sequence with the given attention."""
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
