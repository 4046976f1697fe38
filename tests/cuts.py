"""Random reductions, and ways to reduce the same array in parts: any cut, any order, other threads,
processes and ranks. All are to give the bits of the whole.

    PYTHONPATH=. python tests/cuts.py [--cases 10000] [--seed 1] [--ways ranks,dask-processes]

So many in all, by every way as many. Cases that differ are printed, and the exit status is 1.
"""

import argparse
import io
import json
import multiprocessing
import pickle
import subprocess
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from arrays import draw, finite_bits, generator, is_float, random_bits
from ranks import LAUNCHER, LAUNCHING, on_all
from table import OPS, TOOLS, bits, call, dtype_names, numpy_dtype

import gpureduce
from gpureduce import Partials, finish, from_words, merge, mpi, partials, words

NAMES = sorted(OPS)
# Where the whole has no element, partials cannot tell why.
SAME_ERROR = (ValueError, TypeError)
# An operator of users: each element halves what came before it.
LEAKY = {
    "state": "m: f8, c: f8",
    "lift": "m = 0.5; c = x",
    "combine": "m = a.m * b.m; c = a.c * b.m + b.c",
    "identity": (1.0, 0.0),
    "finish": "c",
}


# --- what is drawn --------------------------------------------------------------------------------


def nasty(rng, dtype, shape):
    n = int(np.prod(shape))
    kind = rng.integers(6)
    if not is_float(dtype) and dtype.kind != "c":
        x = random_bits(rng, dtype, n) if kind < 3 and dtype.kind != "b" else draw(rng, dtype, n)
    elif kind == 0:
        x = random_bits(rng, dtype, n)
    elif kind == 1:
        x = finite_bits(rng, dtype, n)
    else:
        x = draw(rng, dtype, n)
        if kind == 2:
            x[rng.random(n) < 0.3] = dtype.type(np.inf)
        if kind == 3:
            x[rng.random(n) < 0.5] = dtype.type(-0.0)
        if kind == 4:
            x[rng.random(n) < 0.1] = dtype.type(np.nan)
        if kind == 5 and rng.random() < 0.3:
            x[:] = dtype.type(-0.0)
    x = x.reshape(shape)
    if rng.random() < 0.2:
        x = np.asfortranarray(x)
    return x.astype(x.dtype.newbyteorder(">")) if rng.random() < 0.1 and dtype.kind != "V" else x


def outcome(work):
    """Bits of all results, or what was raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = work()
        except SAME_ERROR as error:
            return type(error)
    return [(np.shape(f), *bits(f)) for f in (found if isinstance(found, tuple) else (found,))]


class Case(NamedTuple):
    """axis: one, or several; cut: the first of them."""

    key: tuple
    x: np.ndarray
    op: str
    axis: int | tuple
    cut: int
    where: object
    keepdims: bool

    def __str__(self):
        x = self.x
        return f"{self.key}: {self.op} of {x.dtype} {x.shape}, axis {self.axis}"

    @property
    def how(self):
        masked = {} if self.where is True else {"where": self.where}
        return {"axis": self.axis, "keepdims": self.keepdims, **masked}

    def whole(self):
        return outcome(lambda: call(self.op, self.x, **self.how))

    def rng(self, way):
        return generator("way", way, *self.key)


def is_tree(op, dtype):
    return op in ("prod", "nanprod") and (is_float(dtype) or dtype.kind == "c")


class Store:
    """What zarr's and h5py's arrays have in common, and what was read of it."""

    def __init__(self, x, chunks):
        self.x, self.chunks, self.reads = x, chunks, []
        self.shape, self.dtype, self.ndim = x.shape, x.dtype, x.ndim

    def __getitem__(self, index):
        block = self.x[index]
        self.reads.append(block.size)
        return block


Store.__module__ = "zarr.core.array"


def axes_of(rng, op, dims, tree):
    axis = int(rng.integers(dims))
    if OPS[op]["position"] or tree or rng.random() < 0.5:
        return axis, axis
    several = tuple(sorted(rng.choice(dims, rng.integers(1, dims + 1), replace=False).tolist()))
    return several, several[0]


def case_of(*key):
    """None where an operator has nothing to take the extreme of: whole and parts then say so in
    other words."""
    rng = generator("cuts", *key)
    dtype, op = numpy_dtype(rng.choice(dtype_names())), str(rng.choice(NAMES))
    dims = int(rng.integers(1, 4))
    shape = tuple(rng.integers(rng.random() > 0.1, [0, 300, 25, 9][dims], dims).tolist())
    x = nasty(rng, dtype, shape)
    axis, cut = axes_of(rng, op, dims, is_tree(op, dtype))
    takes = OPS[op]["takes_where"] and not OPS[op]["nonempty"]
    where = rng.random(shape) < 0.6 if takes and rng.random() < 0.3 else True
    case = Case(key, x, op, axis, cut, where, bool(rng.random() < 0.3))
    axes = axis if isinstance(axis, tuple) else (axis,)
    empty = any(not shape[d] for d in axes)
    return None if OPS[op]["nonempty"] and empty else case


# --- cuts along an axis ---------------------------------------------------------------------------


def cuts_of(rng, n):
    return sorted({0, n, *rng.integers(0, n + 1, rng.integers(0, 6)).tolist()})


def pieces_of(rng, case):
    """(start, part, mask of it) along the axis that is cut."""
    for start, stop in list(pairwise(cuts_of(rng, case.x.shape[case.cut]))) or [(0, 0)]:
        at = (*[slice(None)] * case.cut, slice(start, stop))
        yield start, case.x[at], case.where if case.where is True else case.where[at]


def parts_of(rng, case):
    """Partials of pieces along an axis, some of which have been sent."""
    found = []
    needs_place = OPS[case.op]["position"] or is_tree(case.op, case.x.dtype)
    for start, x, mask in pieces_of(rng, case):
        offset = start if needs_place else 0
        how = {"where": mask, "offset": offset, "keepdims": case.keepdims}
        p = partials(x, case.op, case.axis, **how)
        if rng.random() < 0.3:
            p = Partials.frombytes(p.tobytes())
        if rng.random() < 0.1:
            p = pickle.loads(pickle.dumps(p))
        found.append(p)
    return found


def merged_somehow(rng, parts):
    parts = list(parts)
    if parts[0].kind.tree:
        while len(parts) > 1:
            i = int(rng.integers(len(parts) - 1))
            parts[i : i + 2] = [merge(parts[i : i + 2])]
        return parts[0]
    rng.shuffle(parts)
    if parts[0].additive and rng.random() < 0.5:
        return from_words(sum(words(p) for p in parts), parts[0].op, parts[0].dtype)
    while len(parts) > 1:
        n = int(rng.integers(2, len(parts) + 1))
        parts[:n] = [merge(parts[:n])]
    return parts[0]


# --- ways -----------------------------------------------------------------------------------------


def merged(case):
    """Sent, merged in any order and grouping, or added by plain +."""
    rng = case.rng("merged")
    return finish(merged_somehow(rng, parts_of(rng, case)))


def resumed(case):
    """An accumulator that is saved and loaded between blocks."""
    rng, axis = case.rng("resumed"), case.cut
    shape = tuple(n for d, n in enumerate(case.x.shape) if d != axis)
    acc = gpureduce.Accumulator(case.op, shape, case.x.dtype)
    for _, x, mask in pieces_of(rng, case):
        mask = mask if mask is True else np.moveaxis(mask, axis, 0)
        acc.add(np.moveaxis(x, axis, 0), where=mask)
        if rng.random() < 0.4:
            file = io.BytesIO()
            acc.save(file)
            acc = gpureduce.Accumulator.load(io.BytesIO(file.getvalue()))
    return acc.result()


def one_rank(case, comm):
    """A rank's share of the cut that all of them draw."""
    n, rank = case.x.shape[case.cut], comm.Get_rank()
    cuts = [0, *np.sort(case.rng("ranks").integers(0, n + 1, comm.Get_size() - 1)).tolist(), n]
    at = (*[slice(None)] * case.cut, slice(cuts[rank], cuts[rank + 1]))
    mask = case.where if case.where is True else case.where[at]
    return mpi.allreduce(
        comm, case.x[at], case.op, axis=case.axis, where=mask, keepdims=case.keepdims
    )


def by_threads(case):
    """As MPI's ranks."""
    size = int(case.rng("size").integers(1, 8))
    found = on_all(size, lambda comm: one_rank(case, comm))
    failed = [error for error in found if isinstance(error, Exception)]
    if failed:
        raise next((error for error in failed if isinstance(error, TypeError)), failed[0])
    assert len({str(outcome(lambda one=one: one)) for one in found}) == 1, case
    return found[0]


def in_store(case):
    chunks = tuple(case.rng("store").integers(1, np.add(case.x.shape, 2)).tolist())
    return call(case.op, Store(case.x, chunks), **case.how)


def random_chunks(rng, shape):
    return tuple(tuple(np.diff(cuts_of(rng, n)).tolist()) or (0,) for n in shape)


def by_dask(case):
    """By the scheduler that is set."""
    import dask
    import dask.array as da

    rng, how = case.rng("dask"), dict(case.how)
    lazy = da.from_array(case.x, chunks=random_chunks(rng, case.x.shape))
    if "where" in how and rng.random() < 0.5:
        how["where"] = da.from_array(how["where"], chunks=random_chunks(rng, case.x.shape))
    with dask.config.set(split_every=int(rng.integers(2, 9))):
        return dask.compute(call(case.op, lazy, **how))[0]


@contextmanager
def in_this_process():
    yield


@contextmanager
def scheduler(**settings):
    import dask

    with dask.config.set(**settings):
        yield


@contextmanager
def processes():
    pool = ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))
    with pool, scheduler(scheduler="processes", pool=pool):
        yield


@contextmanager
def workers():
    import distributed

    cluster = distributed.LocalCluster(
        n_workers=4, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster):
        yield


# What reduces a case, and what it is done within.
WAYS = {
    "merged": (merged, in_this_process),
    "resumed": (resumed, in_this_process),
    "ranks": (by_threads, in_this_process),
    "store": (in_store, in_this_process),
    "dask": (by_dask, lambda: scheduler(scheduler="threads")),
    "dask-processes": (by_dask, processes),
    "dask-workers": (by_dask, workers),
}


def differing(way, keys):
    """Cases, how many were drawn."""
    work, within = WAYS[way]
    cases = list(filter(None, (case_of(*key) for key in keys)))
    if way == "resumed":
        cases = [case._replace(axis=case.cut, keepdims=False) for case in cases]
    with within():
        found = [case for case in cases if outcome(lambda case=case: work(case)) != case.whole()]
    return found, len(cases)


# --- by mpiexec -----------------------------------------------------------------------------------


def as_rank(keys):
    """What each of mpiexec's processes does."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    cases = [case for key in keys if (case := case_of(*key))]
    wrong = [str(c) for c in cases if outcome(lambda c=c: one_rank(c, comm)) != c.whole()]
    told = comm.gather(wrong)
    if not comm.Get_rank():
        print(json.dumps([len(cases), sorted({case for one in told for case in one})]))


def by_mpiexec(size, seed, count):
    command = [LAUNCHER, "-n", str(size), sys.executable, __file__, "--ranks"]
    done = subprocess.run(
        [*command, "--seed", str(seed), "--cases", str(count)],
        capture_output=True,
        text=True,
        env=TOOLS | LAUNCHING,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    cases, wrong = json.loads(done.stdout)
    return wrong, cases


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", type=lambda text: text.split(","), default=[*WAYS, "mpiexec"])
    parser.add_argument("--ranks", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ranks:
        return as_rank([(given.seed, "mpiexec", n) for n in range(given.cases)])
    each, all_wrong, total = -(-given.cases // len(given.ways)), [], 0
    for way in given.ways:
        start = time.perf_counter()
        if way == "mpiexec":
            told = [by_mpiexec(size, given.seed, -(-each // 7)) for size in range(1, 8)]
            wrong, count = [case for one in told for case in one[0]], sum(n for _, n in told)
        else:
            wrong, count = differing(way, [(given.seed, way, n) for n in range(each)])
        print(f"{way:15} {count:6} cases, {len(wrong)} differ, {time.perf_counter() - start:.0f} s")
        for case in wrong:
            print(f"    {case}")
        all_wrong, total = all_wrong + wrong, total + count
    print(f"seed {given.seed}: {total} cases, {len(all_wrong)} differ")
    sys.exit(bool(all_wrong))


if __name__ == "__main__":
    main()
