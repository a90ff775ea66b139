"""verl's dataset of prompts in the order of our batches; only verl loads this module.

data.custom_cls.path=pkg://train.adapters.verl_dataset data.custom_cls.name=PlannedDataset data.shuffle=false
"""

import json
from pathlib import Path
from typing import Any

from verl.utils.dataset.rl_dataset import RLHFDataset

from train.adapters.steps import order_file


class PlannedDataset(RLHFDataset):  # type: ignore[misc]
    """Rows as often and in the order that the file beside them says; where there is none, as they lie."""

    def maybe_filter_out_long_prompts(self, dataframe: Any = None) -> Any:
        """Every prompt fits (train.adapters.steps.step_rows); verl calls this for the rows."""
        files = [Path(file) for file in self.original_data_files]
        if len(files) != 1 or not order_file(files[0]).exists():
            return dataframe
        return dataframe.select(json.loads(order_file(files[0]).read_text(encoding="utf-8")))
