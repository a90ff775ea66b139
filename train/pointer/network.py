"""The pointer network: a GRU over past actions gives a query, which scores the choices of the page.

    x_i = e(element_i) + c(role, place, heading)                    past action i
    h   = GRU(x_1 … x_t)
    q   = MLP(h, categories of the step, e(last product))
    s_a = q · k_a / √d + b(name) + w · transitions_a + MLP(k_a, q, relations_a, numbers_a)
    p   = softmax(s) over the choices

e(element) is the embedding of its name plus the mean of those of its words, k_a = e(a) + categories of the choice.
Readers of recommender papers know this as GRU4Rec (Hidasi et al. 2016) with the slate: the softmax runs over what the
page shows, and the choices carry features.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from shop_env.choices.transitions import CONTEXTS
from train.pointer.arrays import Batch
from train.pointer.encoding import NUMBERS, RELATION_COLUMNS, RELATION_VALUES, Encoder

START = 0.1  # standard deviation of embeddings at the start
UNKNOWN_NAMES = 0.05  # share of elements whose name is taken to be unknown in training, because new ones come


@dataclass(frozen=True)
class Sizes:
    """The sizes of a network: of its vocabularies, of embeddings and of hidden layers."""

    names: int
    words: int
    categories: int
    width: int = 48
    hidden: int = 64
    query: int = 96
    dropout: float = 0.2

    @classmethod
    def of(cls, encoder: Encoder) -> "Sizes":
        """Returns the sizes for an encoder's vocabularies."""
        return cls(len(encoder.names) + 1, len(encoder.words) + 1, len(encoder.categories))


class PointerNetwork(nn.Module):
    """Scores choices."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        d, hidden = sizes.width, sizes.hidden
        self.width = d
        self.name = _embedding(sizes.names, d)
        self.word = _embedding(sizes.words, d)
        self.past = _embedding(sizes.categories, d)
        self.step = _embedding(sizes.categories, d)
        self.choice = _embedding(sizes.categories, d + hidden)
        self.relation = nn.Embedding(RELATION_COLUMNS * RELATION_VALUES, hidden)
        nn.init.normal_(self.relation.weight, std=START)
        self.bias = nn.Embedding(sizes.names, 1)
        nn.init.zeros_(self.bias.weight)
        self.gru = nn.GRU(d, d, batch_first=True)
        self.query = nn.Sequential(
            nn.Linear(3 * d, sizes.query), nn.GELU(), nn.Dropout(sizes.dropout), nn.Linear(sizes.query, d)
        )
        self.numbers, self.key = nn.Linear(NUMBERS, hidden), nn.Linear(d, hidden, bias=False)
        self.of_query = nn.Linear(d, hidden, bias=False)
        self.out = nn.Sequential(nn.GELU(), nn.Dropout(sizes.dropout), nn.Linear(hidden, 1))
        self.transitions = nn.Parameter(torch.zeros(len(CONTEXTS)))
        self.dropout = nn.Dropout(sizes.dropout)

    def forward(self, batch: Batch) -> Tensor:
        """Computes the score of each choice of each step, (N, most choices); -inf where a step has fewer."""
        names = batch.element_names
        if self.training:
            names = names * (torch.rand(len(names)) >= UNKNOWN_NAMES)
        elements = self.name(names) + embedding_bag(batch.element_words[0], self.word.weight, batch.element_words[1])
        past = elements[batch.past_elements] + self.past(batch.past_categories).sum(dim=2)
        states, _ = self.gru(self.dropout(past))
        states = torch.cat([torch.zeros_like(states[:, :1]), states], dim=1)[batch.step_at]
        step = _sum_bags(batch.step_categories, self.step)
        query = self.query(torch.cat([states, step, elements[batch.step_products]], dim=1))
        categories = embedding_bag(batch.choice_categories, self.choice.weight, mode="sum", padding_idx=0)
        keys = elements[batch.choice_elements] + categories[:, : self.width]
        of_step = batch.choice_steps
        hidden = (
            self.numbers(batch.choice_numbers) + self.key(keys) + self.of_query(query)[of_step]
            + categories[:, self.width :] + embedding_bag(batch.choice_relations, self.relation.weight, mode="sum")
        )  # fmt: skip
        scores = (query[of_step] * keys).sum(dim=1) / math.sqrt(self.width) + self.out(hidden)[:, 0]
        scores = scores + self.bias(names)[batch.choice_elements, 0]
        scores = scores + batch.choice_numbers[:, : len(CONTEXTS)] @ self.transitions
        columns = torch.arange(len(of_step)) - batch.first_choices[of_step]
        padded = scores.new_full((len(batch.first_choices), int(columns.max()) + 1), -math.inf)
        filled: Tensor = padded.index_put((of_step, columns), scores)
        return filled


def _embedding(count: int, width: int) -> nn.Embedding:
    table = nn.Embedding(count, width, padding_idx=0)
    nn.init.normal_(table.weight[1:], std=START)
    return table


def _sum_bags(bags: tuple[Tensor, Tensor], table: nn.Embedding) -> Tensor:
    return embedding_bag(bags[0], table.weight, bags[1], mode="sum", padding_idx=0)
