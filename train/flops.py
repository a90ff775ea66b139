"""The floating-point operations of passes over packed trees, and the bytes that sampling reads: what time follows from.

    packed trees ─► forward_flops ─► passes of a step (train_passes, the reference, the prompts of rollouts) ─► seconds

A product of n tokens by a matrix of m numbers takes 2·n·m operations, and attention 4·d for each head and pair of
tokens; a backward pass takes twice the forward pass (Kaplan et al. 2001.08361, section 2.1), or as much where weights
are frozen (LoRA). A sampled token's operations are few; it takes the time of reading weights and cache from memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PretrainedConfig

from train.session_tree import PackedTrees, get_head_shape


@dataclass(frozen=True)
class ModelSize:
    """Numbers of a model.

    Attributes:
        layers: In the matrices of all layers.
        head: In the output matrix.
        attention: Layers · heads · the width of a head.
    """

    layers: int
    head: int
    attention: int

    @classmethod
    def of(cls, config: PretrainedConfig) -> "ModelSize":
        """Of the model of this configuration."""
        with torch.device("meta"):
            model: Any = AutoModelForCausalLM.from_config(config)
        heads, _, width = get_head_shape(config)
        depth: int = config.get_text_config().num_hidden_layers
        layers = sum(parameter.numel() for parameter in model.get_decoder().layers.parameters())
        return cls(layers, model.get_output_embeddings().weight.numel(), depth * heads * width)

    def forward_flops(self, packed: PackedTrees) -> float:
        """Of a pass over a pack, with the head on its reply tokens."""
        pairs = 0
        for span in packed.spans:
            pairs += _causal_pairs(span.end - span.start)
            pairs += sum((group.end - group.start) * group.visible + int(group.own.sum()) for group in span.groups)
        return self._flops(packed.input_ids.numel(), pairs, len(packed.targets))

    def prefill_flops(self, trunks: Sequence[int]) -> float:
        """Of reading trunks of these lengths."""
        return self._flops(sum(trunks), sum(map(_causal_pairs, trunks)), len(trunks))

    def _flops(self, tokens: int, pairs: int, predicted: int) -> float:
        return 2.0 * self.layers * tokens + 4.0 * self.attention * pairs + 2.0 * self.head * predicted


def _causal_pairs(tokens: int) -> int:
    return tokens * (tokens + 1) // 2


def train_passes(*, lora: bool, gradient_checkpointing: bool, depth_first: bool) -> int:
    """A forward and backward pass in training, in forward passes."""
    return (2 if lora else 3) + gradient_checkpointing + depth_first
