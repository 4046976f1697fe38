"""Do a device and the CPU agree to the last bit? Random reductions, by many processes.

    python tests/agree.py [--seconds 200] [--processes 16] [--seed 1]

A seed draws operator, dtype, shape, axes, layout, mask, options, data and perhaps a variant, which
is used if it takes the layout; the same view of the same memory is reduced by the device and the
CPU. Ends with 1 if some differ, each of which is shown with the seed that draws it again (--seed
SEED --seconds 0). Sixteen processes compare 43,000 cases a second on an H200 with a pack of
all kernels, where `nvidia-cuda-mps-control -d` lets all in at once."""

import argparse
import re
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from arrays import draw, finite_bits, near_one, random_bits, subnormals
from device import Interface, Memory, copy_in, copy_out_all, interface_of
from table import OPS, ROWS, bits, show

import gpureduce
from gpureduce import _core, pack

ROOT = Path(__file__).parent.parent
POOL = 1 << 17  # elements
NO = np._NoValue
INDEX = {op["name"]: i for i, op in enumerate(gpureduce.operators())}
VARIANTS = re.findall(r'X\(\w+, "(\w+)"', (ROOT / "kernels/abi/variants.h").read_text())
DTYPES = [name for name in gpureduce.dtypes() if name != "bfloat16"]  # which has no typestr
PAIRS = [(op, name) for op, name, *_ in ROWS if name in DTYPES]
UNITS = {"datetime64": "M8[s]", "timedelta64": "m8[s]"}
EXTRAS = ("where", "dtype", "keepdims", "initial", "ddof")
pack.BLOCKS_OPEN = None  # kernels of all kinds come by turns
BATCH = 256  # cases on their way at a time: processes take turns on a device
SHOWN = 20  # of a process


def kinds(rng, dtype):
    """Arrays of POOL elements of each kind of data."""
    yield draw(rng, dtype, POOL)
    yield random_bits(rng, dtype, POOL)
    few = draw(rng, dtype, POOL)
    few[rng.random(POOL) < 0.7] = 0
    yield few
    if dtype.kind not in "fc":
        return
    yield finite_bits(rng, dtype, POOL)
    least = subnormals(rng, dtype, POOL)
    yield least
    yield np.where(rng.random(POOL) < 0.5, least, near_one(rng, dtype, POOL))
    yield near_one(rng, dtype, POOL)
    seldom = draw(rng, dtype, POOL)
    seldom[rng.random(POOL) < 0.001] = np.nan
    yield seldom
    yield (draw(rng, dtype, POOL) * 100).round()
    yield np.exp(5 * rng.standard_normal(POOL)).astype(dtype)


class Both:
    """The same elements here and on the device."""

    def __init__(self, array):
        self.array = array
        self.memory = Memory(array.nbytes)
        copy_in(self.memory.address, array.ctypes.data, array.nbytes)

    def there(self, view):
        start = view.__array_interface__["data"][0] - self.array.ctypes.data
        return Interface(interface_of(view, self.memory.address + start), self.memory)


def shape_of(rng):
    rank = int(rng.choice([1, 2, 3, 4, 5, 6], p=[0.25, 0.3, 0.2, 0.13, 0.07, 0.05]))
    total = 2 ** rng.uniform(0, 17 if rng.random() < 0.1 else 13)
    return [max(1, round(total**part)) for part in rng.dirichlet(np.ones(rank))]


def view_of(rng, pool, shape):
    """Some of the pool: cut, stepped, turned, with its axes in any order, or standing still."""
    steps = [int(rng.choice([1, 1, 1, 2, 3])) if rng.random() < 0.3 else 1 for _ in shape]
    whole = [n * s + int(rng.random() < 0.2) for n, s in zip(shape, steps, strict=True)]
    size = int(np.prod(whole))
    while size > len(pool):
        whole[whole.index(max(whole))] //= 2
        size = int(np.prod(whole))
    start = int(rng.integers(0, min(len(pool) - size, 64) + 1))
    a = pool[start : start + size].reshape(whole)
    cut = tuple(slice(0, n * s, s) for n, s in zip(shape, steps, strict=True))  # or less
    a = a[cut]
    if rng.random() < 0.3:
        a = a.transpose(rng.permutation(a.ndim))
    if rng.random() < 0.15:
        a = np.flip(a, int(rng.integers(a.ndim)))
    if rng.random() < 0.05:
        a = np.broadcast_to(a, (int(rng.integers(1, 5)), *a.shape))
    return a


class Case:
    """All that a seed draws."""

    def __init__(self, seed, pools):
        rng = np.random.default_rng(seed)
        self.op, self.dtype = PAIRS[rng.integers(len(PAIRS))]
        about, pool = OPS[self.op], pools[self.dtype]
        self.data = pool[rng.integers(len(pool))]
        self.a = view_of(rng, self.data.array, shape_of(rng))
        self.axis = self.axes(rng, about)
        self.mask = self.options = None
        self.variant = str(rng.choice(VARIANTS)) if rng.random() < 0.5 else None
        self.draw_options(rng, about, pools["bool"][0])

    def axes(self, rng, about):
        if rng.random() < 0.1:
            return None
        if about["position"] or rng.random() < 0.5:
            return int(rng.integers(self.a.ndim))
        return tuple(rng.permutation(self.a.ndim)[: rng.integers(1, self.a.ndim + 1)].tolist())

    def draw_options(self, rng, about, masks):
        options = dict.fromkeys(EXTRAS, NO) | {"dtype": None, "ddof": 0}
        is_reduced = not about["function"]
        if rng.random() < 0.2 and (about["takes_where"] or is_reduced):
            self.mask, options["where"] = masks, self.mask_of(rng, masks.array)
        if rng.random() < 0.1 and about["takes_dtype"]:
            options["dtype"] = np.dtype(str(rng.choice(["float64", "float32", "int64"])))
        options["keepdims"] = bool(rng.random() < 0.2)
        can_start = self.a.dtype.kind not in "mM" and (about["takes_initial"] or is_reduced)
        if rng.random() < 0.1 and can_start:
            options["initial"] = int(rng.integers(0, 5))
        if about["spread"]:
            options["ddof"] = int(rng.integers(0, 3))
        self.options = options

    def mask_of(self, rng, masks):
        """Of the array's shape, along some axes standing still."""
        shape = [n if rng.random() < 0.8 else 1 for n in self.a.shape]
        shape = shape if np.prod(shape) < len(masks) else [1] * len(shape)
        if rng.random() < 0.3:
            mask = masks[: np.prod(shape)].reshape(shape[::-1]).T
        else:
            mask = masks[1 : np.prod(shape) + 1].reshape(shape)
        return np.broadcast_to(mask, self.a.shape)

    def run(self, a, where, device, variant=None):
        o = self.options
        return _core.reduce(
            INDEX[self.op], a, self.axis, o["dtype"], None, o["keepdims"], o["initial"], where,
            o["ddof"], NO, device, variant, None,
        )  # fmt: skip

    def here(self):
        return self.run(self.a, self.options["where"], "cpu")

    def there(self):
        where = self.options["where"]
        where = where if where is NO else self.mask.there(where)
        a = self.data.there(self.a)
        try:
            return self.run(a, where, "auto", self.variant)
        except ValueError as error:
            if "does not take this layout" not in str(error):
                raise
        self.variant = None
        return self.run(a, where, "auto")

    def __str__(self):
        given = ", ".join(
            f"{name}={value.shape, value.strides}" if name == "where" else f"{name}={value}"
            for name, value in self.options.items()
            if value is not NO and value is not None
        )
        a = self.a
        by = f" by {self.variant}" if self.variant else ""
        return f"{self.op} {a.dtype} {a.shape} {a.strides} axis={self.axis} {given}{by}"


def outcome(call):
    """Results, or the type of what was raised."""
    try:
        results = call()
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        return [type(error).__name__]
    return list(results) if isinstance(results, tuple) else [results]


def fetched(outcomes):
    """The same outcomes with results as arrays here, which the device is waited for once."""
    there = [r for rs in outcomes for r in rs if hasattr(r, "__cuda_array_interface__")]
    about = [r.__cuda_array_interface__ for r in there]
    dtypes = [np.dtype(each["typestr"]) for each in about]
    sizes = [int(np.prod(a["shape"])) * t.itemsize for a, t in zip(about, dtypes, strict=True)]
    places = [(each["data"][0], size) for each, size in zip(about, sizes, strict=True)]
    raw = copy_out_all(places)
    here = iter(
        np.ndarray(each["shape"], dtype, bytes_, strides=each["strides"] or None)
        for each, dtype, bytes_ in zip(about, dtypes, raw, strict=True)
    )
    return [
        [next(here) if hasattr(r, "__cuda_array_interface__") else r for r in rs] for rs in outcomes
    ]


def comparable(result):
    if isinstance(result, str):
        return result
    return result.shape, result.dtype.kind, result.dtype.itemsize, bits(result)[2]


def difference(want, got):
    """What to tell of it, or None."""
    got, want = ([r if isinstance(r, str) else np.asarray(r) for r in rs] for rs in (got, want))
    if [comparable(r) for r in want] == [comparable(r) for r in got]:
        return None
    return " | ".join(r if isinstance(r, str) else show(r.reshape(-1)[:4]) for r in (*got, *want))


def work(first, step, end):
    """How many cases, how many of them raised, and what differed."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    gpureduce.set_num_threads(1)
    rng = np.random.default_rng(20240229)  # every process has the same pools, and any seed its case
    pools = {}
    for name in DTYPES:
        dtype = np.dtype(UNITS.get(name, name))
        pools[name] = [Both(np.ascontiguousarray(a)) for a in kinds(rng, dtype)]
    cases, raised, differ = 0, 0, []
    while not cases or (time.time() < end and len(differ) < SHOWN):
        seeds = [first + (cases + i) * step for i in range(BATCH if end else 1)]
        batch = [(seed, Case(seed, pools)) for seed in seeds]
        there = [outcome(case.there) for _, case in batch]  # the device works on all of them
        here = [outcome(case.here) for _, case in batch]
        for (seed, case), want, got in zip(batch, here, fetched(there), strict=True):
            told = difference(want, got)
            cases, raised = cases + 1, raised + isinstance(want[0], str)
            if told:
                differ.append(f"seed {seed}: {case}: {told}")
    return cases, raised, differ


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--seed", type=int, default=int(1000 * time.time()))
    asked = parser.parse_args()
    many, end = (asked.processes, time.time() + asked.seconds) if asked.seconds else (1, 0)
    with ProcessPoolExecutor(many, get_context("spawn")) as pool:  # CUDA survives no fork
        seeds = [asked.seed + i for i in range(many)]
        done = list(pool.map(partial(work, step=many, end=end), seeds))
    cases, raised = (sum(part[i] for part in done) for i in (0, 1))
    differ = [told for part in done for told in part[2]]
    print("\n".join(differ))
    print(f"{cases} cases from seed {asked.seed}, of which {raised} raise: {len(differ)} differ")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
