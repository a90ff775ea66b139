"""Tries what may be missing or wrong on a machine, a kernel or compiled code, beside plain code of the same result."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from replay_sessions.foundation.errors import first_line

# Of the largest expected value; by the bits of a number that products keep.
TOLERANCES = {torch.float32: 1e-3, torch.bfloat16: 0.05}


def find_difference(
    compute: Callable[[], Sequence[Tensor]],
    expected: Sequence[Tensor],
    names: Sequence[str],
    dtype: torch.dtype,
    tolerances: Mapping[torch.dtype, float] = TOLERANCES,
) -> str | None:
    """The reason, in one line, why `compute` cannot be used; None: it gives what is expected.

    Args:
        names: Of the tensors.
        dtype: Of products.
        tolerances: Of the largest expected value, by dtype.
    """
    try:
        found = compute()
    except Exception as error:  # whatever a compiler or a driver raises, other code can do the work
        return f"{type(error).__name__}: {first_line(error)}"
    for name, own, wanted in zip(names, found, expected, strict=True):
        difference = ((own.float() - wanted.float()).abs().max() / wanted.float().abs().max()).item()
        if not difference < tolerances[dtype]:
            return f"its {name} differ from those of plain code by {difference:.1e} of the largest"
    return None
