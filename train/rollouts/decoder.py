"""Decodes replies token by token, all rows of a batch at once; host and device exchange little.

    prefill ─► first tokens ─► step ─► step ─► … ─► check: rows that have ended leave, once they are many
                               └── on a GPU one CUDA graph, replayed ──┘

A step reads and writes tensors that keep their place, so that on a GPU it is captured once for a number of rows, and
replayed; the host asks every few tokens which replies have ended. On CPU a step is the same code, and the host asks
after each token.
"""

import logging
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from replay_sessions.foundation.errors import first_line
from train.config import SamplingConfig
from train.rollouts.branches import Branches, Visible
from train.rollouts.layers import DecoderLayers, Layers
from train.rollouts.sampling import draw_tokens
from train.session_tree import to_device

logger = logging.getLogger(__name__)

CHECKED_ON_CPU, CHECKED_ON_GPU = 1, 8  # tokens between two questions of the host for what has ended
# So many of the rows go on, at the most, when the ended ones leave: on CPU a row costs its share, on a GPU a new graph
# costs more.
LEFT_ON_CPU, LEFT_ON_GPU = 7 / 8, 1 / 2


class Decoder:
    """The replies to the prompts of some trunks.

    Args:
        visible: What each of R replies sees of the trunks.
        branches: Their attention.
        uniforms: (R, T); None: greedy.
    """

    def __init__(
        self,
        layers: Layers,
        branches: Branches,
        visible: Sequence[Visible],
        config: SamplingConfig,
        uniforms: Tensor | None,
    ) -> None:
        self._layers, self._branches, self._config = layers, branches, config
        device, rows, length = layers.device, len(visible), config.max_new_tokens
        self._forks = to_device(torch.tensor([each.length for each in visible]), device)
        self._uniforms = to_device(torch.zeros(rows * length) if uniforms is None else uniforms.flatten(), device)
        self._offsets = torch.arange(rows, device=device) * length  # of a row's tokens among all
        self._tokens = torch.zeros(rows, dtype=torch.long, device=device)
        self._ended = torch.zeros(rows, dtype=torch.bool, device=device)
        self._drawn = torch.zeros(rows * length, dtype=torch.long, device=device)
        self._log_probs = torch.zeros(rows * length, device=device)
        on_cpu = device.type == "cpu"
        self._left = LEFT_ON_CPU if on_cpu else LEFT_ON_GPU
        self._checked_tokens = CHECKED_ON_CPU if on_cpu else CHECKED_ON_GPU
        # Of a model's own modules the casts of the weights would be captured too.
        self._is_captured = isinstance(layers, DecoderLayers) and branches.can_be_captured
        self._graph: Any = None
        self._left_graph: Any = None  # of more rows; its memory serves the next one

    def run(self, logits: Tensor) -> list[tuple[list[int], list[float]]]:
        """The tokens of each reply and their log-probabilities, from the logits (R, V) of the first ones on."""
        self._draw(logits)
        done, most = 1, self._config.max_new_tokens
        while done < most:
            ended = self._ended.tolist()
            continuing = [row for row, has_ended in enumerate(ended) if not has_ended]
            if not continuing:
                break
            if len(continuing) <= self._left * len(ended):
                self._select(continuing)
            steps = min(self._checked_tokens, most - done)
            for _ in range(steps):
                self._next()
            done += steps
        # One copy to the host: numbers of tokens are exact in float64.
        numbers = torch.stack([self._drawn.double(), self._log_probs.double()])
        tokens, log_probs = numbers.view(2, -1, most)[:, :, :done].tolist()
        return [self._until_end(*row) for row in zip(tokens, log_probs, strict=True)]

    def _until_end(self, tokens: list[float], log_probs: list[float]) -> tuple[list[int], list[float]]:
        end = self._config.end_token
        length = tokens.index(end) + 1 if end in tokens else len(tokens)
        return list(map(int, tokens[:length])), log_probs[:length]

    def _draw(self, logits: Tensor) -> None:
        at = self._offsets + self._branches.count
        drawn, log_probs = draw_tokens(logits, self._config.temperature, self._uniforms.index_select(0, at))
        self._drawn.index_copy_(0, at, drawn)
        self._log_probs.index_copy_(0, at, log_probs)
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
        self._forks, self._offsets = self._forks[indices], self._offsets[indices]
        self._tokens, self._ended = self._tokens[indices], self._ended[indices]
        self._graph, self._left_graph = None, self._graph or self._left_graph
