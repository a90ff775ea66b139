"""Compares a kernel or compiled code, which may be missing or wrong on a machine, with equivalent plain code."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from replay_sessions.foundation.errors import first_line

# The largest accepted difference, relative to the largest expected value, by the dtype of matrix products.
TOLERANCES = {torch.float32: 1e-3, torch.bfloat16: 0.05}


def find_difference(
    compute: Callable[[], Sequence[Tensor]],
    expected: Sequence[Tensor],
    names: Sequence[str],
    dtype: torch.dtype,
    tolerances: Mapping[torch.dtype, float] = TOLERANCES,
) -> str | None:
    """Runs `compute` and returns in one line why it cannot be used; None if it returns the expected tensors.

    Args:
        compute: The function to be tested; it may raise any exception.
        expected: The tensors that it should return.
        names: The names of the tensors in the returned line.
        dtype: The dtype of matrix products, which selects the tolerance.
        tolerances: The largest accepted difference, relative to the largest expected value, by dtype.
    """
    try:
        results = compute()
    except Exception as error:  # compilers and drivers raise many types; the caller then uses other code
        return f"{type(error).__name__}: {first_line(error)}"
    for name, result, reference in zip(names, results, expected, strict=True):
        difference = ((result.float() - reference.float()).abs().max() / reference.float().abs().max()).item()
        if not difference < tolerances[dtype]:
            return f"its {name} differ from those of plain code by {difference:.1e} of the largest"
    return None
