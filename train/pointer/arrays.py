"""Encoded sessions as arrays, and batches of them as tensors.

    Encoder (encoding.py) ─► Encoded ─► batches: Batch ─► PointerNetwork (network.py)

A session's past actions are contiguous, and so are its steps and the choices of a step: `…_ends` are the ends of each
range, with 0 in front.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Ints = NDArray[np.int64]
POOL = 8  # batches within which sessions are sorted by their length


class Bags(NamedTuple):
    """Lists of numbers, concatenated: list i is `numbers[ends[i] : ends[i + 1]]`."""

    numbers: Ints
    ends: Ints

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> "Bags":
        """Concatenates lists."""
        return cls(np.array([number for numbers in lists for number in numbers], dtype=np.int64), ends_of(lists))

    def take(self, indices: Ints) -> "Bags":
        """Returns the lists at these indices."""
        sizes = np.diff(self.ends)[indices]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        return Bags(self.numbers[np.arange(ends[-1]) + np.repeat(self.ends[indices] - ends[:-1], sizes)], ends)

    def tensors(self) -> tuple[Tensor, Tensor]:
        """Returns the numbers and the start of each list, as torch's embedding bags take them."""
        return torch.from_numpy(self.numbers), torch.from_numpy(self.ends[:-1])


def ends_of(lists: Sequence[Sequence[int]]) -> Ints:
    """Returns 0 and the ends of the lists in their concatenation."""
    return np.cumsum([0, *map(len, lists)])


@dataclass(frozen=True)
class Encoded:
    """Encoded sessions.

    Attributes:
        element_names: The number of each element's name, (elements,), and `element_words` those of its words.
        past_elements, past_categories: The element of each past action, (past,), and its categories; `past_ends` by
            session.
        step_past: How many past actions of its session come before each step, (steps,); `step_ends` by session.
        step_products: The element of the last product that was clicked, (steps,); 0, the unknown element, for none.
        step_categories: The categories of each step.
        chosen: The choice that was taken at each step, counted from its first one, (steps,); -1 if it is none of them.
        choice_elements, choice_categories, choice_relations, choice_numbers: Each choice, (choices,), (choices, 4),
            (choices, relations) and (choices, numbers); `choice_ends` by step.
        choice_rewards: The reward of each choice, (choices,); 0 where none is trained on.
        users: The user of each session.
    """

    element_names: Ints
    element_words: Bags
    past_elements: Ints
    past_categories: Ints
    past_ends: Ints
    step_past: Ints
    step_products: Ints
    step_categories: Bags
    step_ends: Ints
    chosen: Ints
    choice_elements: Ints
    choice_categories: Ints
    choice_relations: NDArray[np.int16]
    choice_numbers: NDArray[np.float16]
    choice_rewards: NDArray[np.float32]
    choice_ends: Ints
    users: Sequence[str]

    def with_choices(self, stays: NDArray[np.bool_]) -> "Encoded":
        """Returns the same with these choices alone, (choices,); a step whose choice is left out has chosen -1."""
        position = np.concatenate([[0], np.cumsum(stays)])
        starts = self.choice_ends[:-1]
        taken = starts + np.maximum(self.chosen, 0)
        is_there = (self.chosen >= 0) & stays[taken]
        return replace(
            self,
            chosen=np.where(is_there, position[taken] - position[starts], -1),
            choice_elements=self.choice_elements[stays],
            choice_categories=self.choice_categories[stays],
            choice_relations=self.choice_relations[stays],
            choice_numbers=self.choice_numbers[stays],
            choice_rewards=self.choice_rewards[stays],
            choice_ends=position[self.choice_ends],
        )


class Batch(NamedTuple):
    """Some sessions as tensors: B sessions of at most T past actions, N steps, C choices, E elements.

    Attributes:
        element_names, element_words: (E,) and a bag for each.
        past_elements, past_categories: (B, T) and (B, T, 3).
        step_at: The row and column of each step's last past action in the output of the GRU with a start in front, (N,)
            each.
        step_products, step_categories: (N,) and a bag for each.
        choice_steps: The step of each choice, (C,), from 0.
        choice_elements, choice_categories, choice_relations, choice_numbers, choice_rewards: (C, …).
        first_choices: The first choice of each step, (N,).
        chosen: The choice that was taken at each step, counted from its first one, (N,); -1 if it is none of them.
    """

    element_names: Tensor
    element_words: tuple[Tensor, Tensor]
    past_elements: Tensor
    past_categories: Tensor
    step_at: tuple[Tensor, Tensor]
    step_products: Tensor
    step_categories: tuple[Tensor, Tensor]
    choice_steps: Tensor
    choice_elements: Tensor
    choice_categories: Tensor
    choice_relations: Tensor
    choice_numbers: Tensor
    choice_rewards: Tensor
    first_choices: Tensor
    chosen: Tensor


def batches(encoded: Encoded, sessions: Ints, size: int, draw: np.random.Generator | None) -> Iterator[Batch]:
    """Yields batches of sessions; with `draw` in random order, and sessions of similar lengths together."""
    parts = [sessions[start : start + size] for start in range(0, len(sessions), size)]
    if draw is not None:
        lengths, order = np.diff(encoded.past_ends), draw.permutation(sessions)
        pools = [order[start : start + POOL * size] for start in range(0, len(order), POOL * size)]
        pools = [pool[np.argsort(lengths[pool], kind="stable")] for pool in pools]
        parts = [pool[start : start + size] for pool in pools for start in range(0, len(pool), size)]
        parts = [parts[number] for number in draw.permutation(len(parts))]
    for part in parts:
        yield batch_of(encoded, part)


def batch_of(encoded: Encoded, sessions: Ints) -> Batch:
    """Builds the batch of these sessions."""
    past_of, steps_of = ranges(encoded.past_ends, sessions), ranges(encoded.step_ends, sessions)
    past_sizes = np.diff(encoded.past_ends)[sessions]
    rows = np.repeat(np.arange(len(sessions)), past_sizes)
    columns = np.arange(len(rows)) - np.repeat(np.cumsum(past_sizes) - past_sizes, past_sizes)
    choices_of, choice_sizes = ranges(encoded.choice_ends, steps_of), np.diff(encoded.choice_ends)[steps_of]
    used, numbered = np.unique(
        np.concatenate([
            [0], encoded.past_elements[past_of], encoded.step_products[steps_of], encoded.choice_elements[choices_of],
        ]),
        return_inverse=True,
    )  # fmt: skip
    past, products, choices = np.split(numbered[1:], np.cumsum([len(past_of), len(steps_of)]))
    past_elements = np.zeros((len(sessions), max(1, past_sizes.max(initial=0))), dtype=np.int64)
    past_elements[rows, columns] = past
    past_categories = np.zeros((*past_elements.shape, encoded.past_categories.shape[1]), dtype=np.int64)
    past_categories[rows, columns] = encoded.past_categories[past_of]
    t = torch.from_numpy
    step_rows = np.repeat(np.arange(len(sessions)), np.diff(encoded.step_ends)[sessions])
    return Batch(
        element_names=t(encoded.element_names[used]),
        element_words=encoded.element_words.take(used).tensors(),
        past_elements=t(past_elements),
        past_categories=t(past_categories),
        step_at=(t(step_rows), t(encoded.step_past[steps_of])),
        step_products=t(products),
        step_categories=encoded.step_categories.take(steps_of).tensors(),
        choice_steps=t(np.repeat(np.arange(len(steps_of)), choice_sizes)),
        choice_elements=t(choices),
        choice_categories=t(encoded.choice_categories[choices_of]),
        choice_relations=t(encoded.choice_relations[choices_of].astype(np.int64)),
        choice_numbers=t(encoded.choice_numbers[choices_of].astype(np.float32)),
        choice_rewards=t(encoded.choice_rewards[choices_of]),
        first_choices=t(np.cumsum(choice_sizes) - choice_sizes),
        chosen=t(encoded.chosen[steps_of]),
    )


def ranges(ends: Ints, indices: Ints) -> Ints:
    """Returns the concatenated ranges `ends[i] … ends[i + 1] - 1` of these indices."""
    return Bags(np.arange(ends[-1]), ends).take(indices).numbers
