"""Writes the GPUs that a run may use into the file of its first argument."""

import os
import sys
import time
from pathlib import Path

time.sleep(0.2)  # so that two runs overlap
if __name__ == "__main__":  # pytest imports every module for its doctests
    Path(sys.argv[1]).write_text(os.environ.get("CUDA_VISIBLE_DEVICES", "all"))
