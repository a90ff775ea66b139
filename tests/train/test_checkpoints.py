"""Models from disk."""

from pathlib import Path

import pytest
import torch

from replay_sessions.errors import CheckpointMismatch
from tests.train.conftest import Tiny
from train.models import load_model


def test_a_model_saved_in_bfloat16_takes_updates_of_the_papers_size(tiny: Tiny, tmp_path: Path) -> None:
    tiny.plain_model().to(torch.bfloat16).save_pretrained(tmp_path)
    tiny.tokenizer.save_pretrained(tmp_path)
    model, tokenizer = load_model(str(tmp_path), own_tokenizer=True)
    assert len(tokenizer) == len(tiny.tokenizer)
    weight = next(model.parameters())
    before = weight.detach().clone()
    weight.grad = torch.ones_like(weight)
    torch.optim.SGD([weight], lr=1e-7).step()
    changed = (weight.detach() != before)[before.abs() < 0.5]
    assert changed.float().mean() > 0.9


def test_what_is_no_model_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointMismatch, match=r"^[^\n]*Give a folder with config\.json[^\n]*$"):
        load_model(str(tmp_path))
