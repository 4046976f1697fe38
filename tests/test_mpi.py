"""MPI: by ranks that are threads, and by mpiexec where there is one."""

import importlib.util
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from arrays import finite_bits, generator
from table import TOOLS, bits

import gpureduce
from gpureduce import mpi

SECONDS = 60


class World:
    """Ranks that are threads of this process."""

    def __init__(self, size):
        self.size, self.barrier = size, threading.Barrier(size, timeout=SECONDS)
        self.given = [None] * size

    def ranks(self):
        return [Rank(self, number) for number in range(self.size)]

    def exchange(self, rank, value):
        self.given[rank] = value
        self.barrier.wait()
        all_of_them = list(self.given)
        self.barrier.wait()
        return all_of_them


class Rank:
    def __init__(self, world, number):
        self.world, self.number = world, number

    def Get_rank(self):
        return self.number

    def allgather(self, value):
        return self.world.exchange(self.number, value)

    def Allreduce(self, mine, everybody):
        assert mine.dtype == everybody.dtype == np.int64
        everybody[:] = np.add.reduce(self.world.exchange(self.number, mine.copy()))


def on_all(size, work):
    """What each rank gave back or raised."""
    found = [None] * size

    def run(rank):
        try:
            with np.errstate(all="ignore"):  # a thread starts with the default
                found[rank.number] = work(rank)
        except Exception as error:
            found[rank.number] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in World(size).ranks()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


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

    for found in on_all(3, shapes):
        assert isinstance(found, ValueError)
        assert "rank 0 has outputs of shape (3,), rank 2 of (4,)" in str(found)
    for found in on_all(3, dtypes):
        assert isinstance(found, ValueError)
        assert "rank 0 has sum of float64, rank 1 sum of float32" in str(found)
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

# Open MPI refuses root and more ranks than there are cores, unless it is told that this is meant.
LAUNCHING = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
LAUNCHER = shutil.which("mpiexec") or shutil.which("mpiexec", path=Path(sys.executable).parent)


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
