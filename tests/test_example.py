"""examples/sum.c, built as `make example` does, against the library that setup.py leaves."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from arrays import finite_bits, generator

import gpureduce
from gpureduce import _core

ROOT = Path(__file__).resolve().parent.parent
FLAGS = ROOT / "build/objects/libgpureduce.flags"
CC = os.environ.get("CC", "gcc")
SECONDS = 120
COUNT, WHY = _core.device_count()
OFTEN = ["sum", "mean", "prod", "min", "max", "argmin", "argmax", "count_nonzero"]

pytestmark = pytest.mark.skipif(
    not FLAGS.exists() or not shutil.which(CC), reason=f"no {FLAGS.name} or no {CC}"
)
DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")]
    ),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    target = tmp_path_factory.mktemp("example") / "sum"
    strict = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]
    command = [CC, *strict, ROOT / "examples/sum.c", f"@{FLAGS}", "-o", target]
    subprocess.run(command, check=True)
    return target


def run(program, *arguments, code=0):
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [1, 1000, 3_000_001])
def test_prints_what_python_gives(program, tmp_path, device, n):
    a = finite_bits(generator("example", n), np.dtype("f8"), n)
    a.tofile(tmp_path / "numbers")
    printed = dict(
        line.split() for line in run(program, tmp_path / "numbers", "--device", device).splitlines()
    )
    assert list(printed) == OFTEN
    for op, text in printed.items():
        want = getattr(gpureduce, op)(a, device="cpu")
        got = type(want)(float(text) if want.dtype.kind == "f" else int(text))
        assert np.array_equal(got, want, equal_nan=want.dtype.kind == "f"), op
    single = run(program, tmp_path / "numbers", "any", "--device", device)
    assert single.split() == ["any", "1"]


def test_refuses_what_is_wrong(program, tmp_path):
    (tmp_path / "empty").touch()
    assert run(program, tmp_path / "empty", "sum").split() == ["sum", "0"]
    assert "zero-size" in run(program, tmp_path / "empty", "max", code=1)
    assert "nonsense" in run(program, tmp_path / "empty", "nonsense", code=1)
    assert "No such file" in run(program, tmp_path / "missing", code=1)
    for arguments in ([], ["a", "b", "c"], ["a", "--device"], ["a", "--device", "tpu"]):
        assert "usage" in run(program, *arguments, code=2)
    if not COUNT:
        assert "CUDA" in run(program, tmp_path / "empty", "sum", "--device", "cuda", code=1)
