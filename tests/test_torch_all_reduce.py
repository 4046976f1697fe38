"""examples/torch_all_reduce.py: by two processes on the CPU."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from table import TOOLS

import gpureduce

EXAMPLE = Path(__file__).resolve().parent.parent / "examples/torch_all_reduce.py"


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not beside the tests")
def test_by_gloo():
    pytest.importorskip("torch", reason="torch is not installed")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", EXAMPLE]
    here = [str(Path(gpureduce.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    paths = {"PYTHONPATH": os.pathsep.join(here), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=TOOLS | paths)
    assert done.returncode == 0, done.stderr
    parts = [
        (np.random.default_rng(rank).normal(size=(1000, 3)) * [1, 1e10, 1e-10]).astype("f4")
        for rank in range(2)
    ]
    mean = gpureduce.mean(np.concatenate(parts), axis=0)
    assert sorted(done.stdout.splitlines()) == [f"{rank} {mean}" for rank in range(2)]
