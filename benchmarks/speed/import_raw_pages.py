"""An import that simplifies: sessions of raw pages of real shops, private data taken out, in MB/s and peak memory.

    python -m benchmarks.speed.import_raw_pages --data ../shared/data --sessions 2000 --out benchmarks/results/speed/import_raw_pages.json

Each session is eight steps on pages of `raw_pages`, drawn by a seed; each page in turn is varied in a comment-free way, so
that none is simplified once for many. The pages lie in one folder, packed, as a recorder would leave them; a step acts on
an element that the page has, found by its text.
"""

import argparse
import gzip
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.speed.import_at_scale import memory_of_session
from replay_sessions.provenance import provenance
from replay_sessions.simplify import simplify
from replay_sessions.store import SessionStore

_STEPS = 8
