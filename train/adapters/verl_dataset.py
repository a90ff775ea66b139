"""verl's dataset of prompts in the order of our batches; only verl loads this module.

data.custom_cls.path=pkg://train.adapters.verl_dataset data.custom_cls.name=PlannedDataset data.shuffle=false
"""

import json
from pathlib import Path
from typing import Any

from verl.utils.dataset.rl_dataset import RLHFDataset

from train.adapters.steps import order_file


class PlannedDataset(RLHFDataset):  # type: ignore[misc]
    """A dataset with the rows, repetitions and order of the order file beside it; without one, in the file's order."""

    def maybe_filter_out_long_prompts(self, dataframe: Any = None) -> Any:
        """Selects the rows by the order file; filters none, because every prompt fits (steps.step_rows)."""
        files = [Path(file) for file in self.original_data_files]
        if len(files) != 1 or not order_file(files[0]).exists():
            return dataframe
        return dataframe.select(json.loads(order_file(files[0]).read_text(encoding="utf-8")))
