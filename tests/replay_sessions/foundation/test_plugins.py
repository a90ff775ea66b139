"""Plugins and extras: an import that fails is told as a mistake of the installation."""

import pytest

from replay_sessions.foundation.errors import MissingExtra
from replay_sessions.foundation.plugins import requires_extra


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ModuleNotFoundError("No module named 'peft'", name="peft"), "this needs the package 'peft'"),
        (ModuleNotFoundError("Could not import module 'Attention'."), r"\(Could not import module 'Attention'\.\)"),
    ],
)
def test_a_failed_import_is_told_with_the_extra_that_brings_it(error, told):
    with pytest.raises(MissingExtra, match=rf"{told}.*pip install 'shop-r1\[train\]'"), requires_extra("train"):
        raise error
