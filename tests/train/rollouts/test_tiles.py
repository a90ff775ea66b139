"""Without a GPU: the kernel's tiles fit the shared memory of recent GPUs, and the kernels give torch's results."""

import json
import os
from pathlib import Path

import pytest

from tests.processes import ROOT, run_python
from train.rollouts.tiles import choose_tiles

KB = 1024
SHARED = {80: 163 * KB, 86: 99 * KB, 89: 99 * KB, 90: 227 * KB, 100: 227 * KB, 120: 99 * KB}  # by compute capability


@pytest.mark.parametrize("width", [64, 96, 128, 256])
def test_tiles_fit_and_are_those_of_before_where_these_fit(width):
    for shared in SHARED.values():
        tokens, stages = choose_tiles(width, 64, 2, shared)
        assert 2 * (2 * stages * tokens * width + 64 * (width + tokens)) <= shared
    assert choose_tiles(64, 64, 2, SHARED[86]) == choose_tiles(128, 64, 2, SHARED[90]) == (64, 4)
    assert choose_tiles(128, 64, 2, SHARED[86]) == (64, 2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("width", [64, 96, 128])
@pytest.mark.parametrize("capability", SHARED)
def test_ptxas_reserves_shared_memory_that_fits(capability, width):
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415 - as triton

    from train.rollouts import kernels  # noqa: PLC0415 - as triton

    span = triton.next_power_of_2(width)
    tokens, stages = choose_tiles(span, 64, 2, SHARED[capability])
    sizes = {"kv_heads": 2, "group": 8, "padded": 64, "width": width, "span": span, "step": tokens, "parts": 4}
    types = dict.fromkeys(("query", "keys", "values"), "*bf16") | {"blocks": "*i32", "output": "*fp32"}
    types |= {"log_sums": "*fp32", "scale": "fp32", "rows": "i32", "tokens": "i32"} | dict.fromkeys(sizes, "constexpr")
    aligned = {(place,): [["tt.divisibility", 16]] for place in range(6)}
    source = triton.compiler.ASTSource(kernels._trunk, types, sizes, aligned)
    options = {"num_warps": 4, "num_stages": stages}
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    assert compiled.metadata.shared <= SHARED[capability]


@pytest.mark.slow
def test_kernels_give_torch_s_results_in_triton_s_interpreter():
    """On trees, for heads whose width is a power of two and for those that are padded to one."""
    triton = pytest.importorskip("triton")
    path = os.pathsep.join([str(ROOT), str(Path(triton.__file__).parents[1])])
    done = run_python("-m", "tests.train.rollouts.in_interpreter", PYTHONPATH=path, TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr
    differences = json.loads(done.stdout)
    assert differences and max(differences.values()) < 1e-5, differences
