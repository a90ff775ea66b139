"""Decodes replies token by token, all rows of a batch at once; host and device exchange little.

    prefill ─► first tokens ─► step ─► step ─► … ─► check: rows that have ended leave, once they are many
                               └── on a GPU one CUDA graph, replayed ──┘

A step reads and writes tensors that keep their place, so that on a GPU it is captured once for a number of rows, and
replayed; the host asks every few tokens which replies have ended. On CPU a step is the same code, and the host asks
after each token.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from replay_sessions.foundation.errors import first_line
from train.config import SamplingConfig
from train.rollouts.branches import Branches
from train.rollouts.layers import DecoderLayers, Layers
from train.rollouts.sampling import draw_tokens
from train.session_tree import to_device

logger = logging.getLogger(__name__)

# Tokens between two questions of the host for what has ended; so many of the rows go on, at the most, when the ended
# ones leave: on CPU a row costs its share, on a GPU a new graph costs more.
ON_CPU, ON_GPU = (1, 7 / 8), (8, 1 / 2)


class Decoder:
    """The replies to the prompts of some trunks.

    Args:
        branches: Their attention.
        uniforms: (R, T).
    """

    def __init__(self, layers: Layers, branches: Branches, config: SamplingConfig, uniforms: Tensor) -> None:
        self._layers, self._branches, self._config = layers, branches, config
        device, (rows, length) = layers.device, uniforms.shape
        self._forks = to_device(torch.tensor([each.length for each in branches.visible]), device)
        self._uniforms = to_device(uniforms.flatten(), device)
        self._offsets = torch.arange(rows, device=device) * length  # of a row's tokens among all
        self._tokens = torch.zeros(rows, dtype=torch.long, device=device)
        self._ended = torch.zeros(rows, dtype=torch.bool, device=device)
        # Tokens and their log-probabilities, for one copy to the host: numbers of tokens are exact in float64.
        self._drawn = torch.zeros(2, rows * length, dtype=torch.float64, device=device)
        # Of a model's own modules the casts of the weights would be captured too.
        self._is_captured = isinstance(layers, DecoderLayers) and branches.can_be_captured
        self._graph: Any = None
        self._left_graph: Any = None  # of more rows; its memory serves the next one

    def run(self, logits: Tensor) -> Iterator[tuple[list[int], list[float]]]:
        """T tokens of each reply and their log-probabilities, from the logits (R, V) of the first ones on.

        What follows a reply's end is of no meaning.
        """
        self._draw(logits)
        every, left = ON_CPU if self._layers.device.type == "cpu" else ON_GPU
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
        drawn, log_probs = draw_tokens(logits, self._config.temperature, self._uniforms.index_select(0, at))
        self._drawn.index_copy_(1, at, torch.stack([drawn.double(), log_probs.double()]))
        self._ended.logical_or_(drawn == self._config.end_token)
        self._tokens.copy_(drawn)

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
        """Captures a step behind one that ran: what is loaded or compiled at first use is there by then."""
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
        """Continues with some rows; the next step is captured anew, in the memory of the graph before."""
        indices = to_device(torch.tensor(rows), self._layers.device)
        self._branches.select(rows, indices)
        self._forks, self._offsets, self._tokens, self._ended = (
            each[indices] for each in (self._forks, self._offsets, self._tokens, self._ended)
        )
        self._graph, self._left_graph = None, self._graph or self._left_graph
