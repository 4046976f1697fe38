"""MPI: by ranks that are threads, and by mpiexec where there is one."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from arrays import finite_bits, generator
from ranks import LAUNCHER, LAUNCHING, SECONDS, on_all
from table import TOOLS, bits

import gpureduce
from gpureduce import mpi


@pytest.mark.parametrize("size", range(1, 8))
@pytest.mark.parametrize("op", ["sum", "mean", "nanstd", "max", "argmin", "prod", "any", "ptp"])
def test_all_ranks_have_the_bits_of_the_whole(op, size):
    rng = generator("mpi", op, size)
    x = finite_bits(rng, np.dtype("f4"), 120 * 3).reshape(120, 3)
    cuts = np.sort([0, *rng.integers(0, 121, size - 1), 120])
    for axis in (0, None, (0, 1)):
        if op == "argmin" and axis == (0, 1):
            continue
        want = bits(getattr(gpureduce, op)(x, axis=axis))

        def work(rank, axis=axis):
            part = x[cuts[rank.number] : cuts[rank.number + 1]]
            return mpi.allreduce(rank, part, op, axis=axis)

        for found in on_all(size, work):
            assert not isinstance(found, Exception), found
            assert bits(found) == want


def test_an_operator_of_ones_own():
    operator = gpureduce.Operator("f8", combine="a * 0.5 + b", name="leaky")
    x = generator("mpi own").standard_normal(90)
    found = on_all(3, lambda r: mpi.allreduce(r, x[30 * r.number : 30 * r.number + 30], operator))
    assert [bits(f) for f in found] == [bits(operator(x))] * 3
    dot = gpureduce.Operator("f8", inputs="x, y", lift="x * y", combine="a + b", name="dot")
    both = x.reshape(30, 3), x.reshape(30, 3)[::-1]
    for axis in (0, None):

        def work(rank, axis=axis):
            rows = slice(7 * rank.number, 7 * rank.number + 7 if rank.number < 3 else 30)
            return mpi.allreduce(rank, tuple(a[rows] for a in both), dot, axis=axis)

        found = on_all(4, work)
        assert [bits(f) for f in found] == [bits(dot(*both, axis=axis))] * 4


@pytest.mark.parametrize("op", ["mean", "argmax", "prod"])
def test_no_part_is_reduced_twice(op, monkeypatch):
    taken, take = [], mpi.partials

    def counted(*given, **how):
        taken.append(how["offset"])
        return take(*given, **how)

    monkeypatch.setattr(mpi, "partials", counted)
    on_all(3, lambda rank: mpi.allreduce(rank, np.ones(4), op))
    assert sorted(taken) == [0, 4, 8]


def test_partials_that_are_there_already():
    x = finite_bits(generator("mpi partials"), np.dtype("f8"), 100)

    def work(rank):
        p = gpureduce.partials(x[rank.number :: 4], "var")
        return gpureduce.finish(mpi.allreduce_partials(rank, p), "var")

    assert [bits(f) for f in on_all(4, work)] == [bits(gpureduce.var(x))] * 4


def test_ranks_that_disagree_are_told_so_everywhere():
    def shapes(rank):
        return mpi.allreduce(rank, np.ones((4, 3 + (rank.number == 2))), "sum", axis=0)

    def dtypes(rank):
        return mpi.allreduce(rank, np.ones(4, "f4" if rank.number else "f8"), "sum")

    def failure(rank):
        return mpi.allreduce(rank, np.array(["no"]) if rank.number == 1 else np.ones(3), "sum")

    def axes(rank):
        return mpi.allreduce(rank, np.ones((4, 3)), "sum", axis=rank.number)

    def operators(rank):
        return mpi.allreduce(rank, np.ones(4), ["sum", "argmax", "prod"][rank.number])

    for found in on_all(3, axes):
        assert isinstance(found, (ValueError, np.exceptions.AxisError))
    for found in on_all(3, operators):
        assert isinstance(found, ValueError) and "rank 1 has partials of another kind" in str(found)
    for found in on_all(3, shapes):
        assert isinstance(found, ValueError)
        assert "rank 2 has partials of another shape: (4,), not (3,)" in str(found)
    for found in on_all(3, dtypes):
        assert isinstance(found, ValueError)
        assert "rank 1 has partials of another dtype: sum of float32" in str(found)
    first, own, last = on_all(3, failure)
    assert isinstance(own, TypeError) and isinstance(first, ValueError)
    assert str(first) == str(last) and "rank 1 failed: TypeError" in str(first)


PROGRAM = """
import numpy as np, gpureduce.mpi
from mpi4py import MPI
comm = MPI.COMM_WORLD
x = np.random.default_rng(1).normal(size=(500, 3)).astype("f4") * np.float32([1, 1e20, 1e-20])
cuts = np.linspace(0, 500, comm.Get_size() + 1).astype(int)
part = x[cuts[comm.Get_rank()]:cuts[comm.Get_rank() + 1]]
for op in ("sum", "std", "argmax", "prod"):
    found = gpureduce.mpi.allreduce(comm, part, op, axis=0)
    assert found.tobytes() == getattr(gpureduce, op)(x, axis=0).tobytes(), op
try:
    gpureduce.mpi.allreduce(comm, np.ones((4, 3 + comm.Get_rank())), "sum", axis=0)
except ValueError:
    print("fine", flush=True)
"""


@pytest.mark.skipif(
    not LAUNCHER or not importlib.util.find_spec("mpi4py"),
    reason="mpi4py and mpiexec are not installed: pip install mpi4py mpich",
)
@pytest.mark.parametrize("size", [2, 3])
def test_by_mpiexec(size):
    done = subprocess.run(
        [LAUNCHER, "-n", str(size), sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=TOOLS | LAUNCHING | {"PYTHONPATH": str(Path(gpureduce.__file__).parents[1])},
    )
    assert done.returncode == 0, done.stderr
    assert "".join(done.stdout.split()) == "fine" * size


# --- examples/partials_mpi.c ----------------------------------------------------------------------

ROOT = Path(__file__).resolve().parent.parent
FLAGS = ROOT / "build/objects/libgpureduce.flags"
MPICC = shutil.which("mpicc") or shutil.which("mpicc", path=Path(sys.executable).parent)
STRICT = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]


def example(target, compiler, *flags):
    command = [compiler, *STRICT, *flags, ROOT / "examples/partials_mpi.c", f"@{FLAGS}"]
    subprocess.run([*command, "-o", target], check=True, env=TOOLS)


def lines_of(*command):
    done = subprocess.run(
        [*command, "10000"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=TOOLS | LAUNCHING,
    )
    assert done.returncode == 0, done.stderr
    return [float(line.split()[1]) for line in done.stdout.splitlines()]


@pytest.mark.skipif(not FLAGS.exists() or not shutil.which("gcc"), reason="no library or no gcc")
def test_the_c_example(tmp_path):
    """By MPI of one rank and, where it is installed, of several."""
    i = np.arange(10000)
    sign, size = np.where(i % 3, 1.0, -1.0), np.where(i % 5, 1.0, 1e12)
    x = sign * (i * 2654435761 % 1000003) * size
    want = [float(getattr(gpureduce, op)(x)) for op in ("sum", "mean", "std")]
    example(tmp_path / "one", "gcc", f"-I{ROOT / 'tests/c/one_rank'}")
    assert lines_of(tmp_path / "one") == want
    if not MPICC or not LAUNCHER:
        return
    example(tmp_path / "many", MPICC)
    for ranks in ("2", "3"):
        assert lines_of(LAUNCHER, "-n", ranks, tmp_path / "many") == want
