"""Decodes replies token by token, all rows of a batch at once, with little exchange between host and device.

    prefill ─► first tokens ─► step ─► step ─► … ─► check: ended rows are removed, once they are many
                               └── on a GPU one CUDA graph, replayed ──┘

A step reads and writes tensors at fixed addresses. On a GPU it is therefore captured once for a number of rows, and
replayed; the host checks every few tokens which replies have ended. On CPU a step is the same code, and the host checks
after each token.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from replay_sessions.foundation.errors import first_line
from train.candidates import Guide
from train.config import SamplingConfig
from train.rollouts.branches import Branches
from train.rollouts.layers import DecoderLayers, Layers
from train.rollouts.sampling import draw_tokens
from train.session_tree import to_device

logger = logging.getLogger(__name__)

# Tokens between two checks of the host; and the share of rows still sampled below which ended rows are removed. A row
# costs its share of the time on CPU, so they are removed early. On a GPU a new graph costs more than some rows.
ON_CPU, ON_GPU = (1, 7 / 8), (8, 1 / 2)


class Decoder:
    """Samples the replies to the prompts of one batch of trunks.

    Args:
        layers: The policy's layers.
        branches: The attention of the replies.
        config: The options of sampling.
        uniforms: Uniform numbers in [0, 1), (R, T), one for each token.
        guides: For each reply of a restricted policy, the tokens that may follow; empty for other policies.
    """

    def __init__(
        self,
        layers: Layers,
        branches: Branches,
        config: SamplingConfig,
        uniforms: Tensor,
        guides: Sequence[Guide] = (),
    ) -> None:
        self._guides = guides
        self._layers, self._branches, self._config = layers, branches, config
        device, (rows, length) = layers.device, uniforms.shape
        self._forks = to_device(torch.tensor([each.length for each in branches.visible]), device)
        self._uniforms = to_device(uniforms.flatten(), device)
        self._offsets = torch.arange(rows, device=device) * length  # of a row's first token in the flat tensors
        self._tokens = torch.zeros(rows, dtype=torch.long, device=device)
        self._ended = torch.zeros(rows, dtype=torch.bool, device=device)
        # Tokens and their log-probabilities in one tensor, for one copy to the host: token ids are exact in float64.
        self._drawn = torch.zeros(2, rows * length, dtype=torch.float64, device=device)
        # In a model's own modules a graph would also capture the casts of the weights.
        self._is_captured = isinstance(layers, DecoderLayers) and branches.can_be_captured and not guides
        self._graph: Any = None
        self._left_graph: Any = None  # the graph for more rows than now; the next one uses its memory

    def run(self, logits: Tensor) -> Iterator[tuple[list[int], list[float]]]:
        """Samples all replies, and yields for each its T tokens and their log-probabilities.

        Entries behind the end of a reply are meaningless.

        Args:
            logits: The logits of the first tokens, (R, V).
        """
        self._draw(logits)
        every, left = ON_CPU if self._guides or self._layers.device.type == "cpu" else ON_GPU
        most = self._config.max_new_tokens
        for done in range(1, most, every):
            ended = self._ended.tolist()
            continuing = [row for row, has_ended in enumerate(ended) if not has_ended]
            if not continuing:
                break
            if len(continuing) <= left * len(ended):
                self._select(continuing)
            for _ in range(min(every, most - done)):
                self._next()
        for tokens, log_probs in zip(*self._drawn.view(2, -1, most).tolist(), strict=True):
            yield list(map(int, tokens)), log_probs

    def _draw(self, logits: Tensor) -> None:
        at = self._offsets + self._branches.count
        if self._guides:
            logits = self._restrict(logits)
        drawn, log_probs = draw_tokens(logits, self._config.temperature, self._uniforms.index_select(0, at))
        self._drawn.index_copy_(1, at, torch.stack([drawn.double(), log_probs.double()]))
        self._ended.logical_or_(drawn == self._config.end_token)
        self._tokens.copy_(drawn)
        for guide, token in zip(self._guides, drawn.tolist() if self._guides else (), strict=True):
            guide.append(token)

    def _restrict(self, logits: Tensor) -> Tensor:
        """Returns the logits (R, V) with -inf at the tokens that may not follow."""
        allowed = [guide.allowed for guide in self._guides]
        places = [(row, token) for row, tokens in enumerate(allowed) for token in tokens or ()]
        is_refused = torch.tensor([[tokens is not None] for tokens in allowed]).repeat(1, logits.shape[1])
        if places:
            is_refused[tuple(torch.tensor(places).T)] = False
        return logits.masked_fill(to_device(is_refused, logits.device), -torch.inf)

    def _step(self) -> None:
        branches = self._branches
        logits = self._layers.logits(self._tokens[None], (self._forks + branches.count)[None], branches)
        branches.count.add_(1)
        self._draw(logits)

    def _next(self) -> None:
        if self._graph is None:
            self._step()
            if self._is_captured:
                self._capture()
        else:
            self._graph.replay()
        self._branches.length += 1

    def _capture(self) -> None:
        """Captures a step, after one that ran without capture and so loaded or compiled what it needs."""
        graph = torch.cuda.CUDAGraph()
        pool = None if self._left_graph is None else self._left_graph.pool()
        try:
            with torch.cuda.graph(graph, pool=pool):
                self._step()
        except RuntimeError as error:
            logger.warning("sampling: without a CUDA graph, and slowly: %s", first_line(error))
            self._is_captured = False
            return
        self._graph, self._left_graph = graph, None

    def _select(self, rows: Sequence[int]) -> None:
        """Continues with some rows only; the next step is captured anew, in the memory of the former graph."""
        indices = to_device(torch.tensor(rows), self._layers.device)
        self._branches.select(rows, indices)
        self._guides = [self._guides[row] for row in rows] if self._guides else ()
        self._forks, self._offsets, self._tokens, self._ended = (
            each[indices] for each in (self._forks, self._offsets, self._tokens, self._ended)
        )
        self._graph, self._left_graph = None, self._graph or self._left_graph
