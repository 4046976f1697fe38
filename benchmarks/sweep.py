"""Random reductions beside the peers: how often, and how far, is gpureduce slower?

    python benchmarks/sweep.py cpu [--seconds 60] [--seed 1] [--threads 1]    beside NumPy
    python benchmarks/sweep.py gpu [--seconds 60] [--seed 1]                  PyTorch and CuPy
    ... --write benchmarks/results/sweep_gpu.md               adds the distribution to a file
    ... --least 16                                            cases of so many MiB and more alone

A seed draws an operation, a dtype, a shape, the axes, a layout, options (where, dtype) and the kind
of data. The ratio is the best peer's time over ours: below 1 we are slower. Prints the
distribution, then the worst cases, each with the seed that draws it again. Seeds differ from run to
run unless given: there is no list to tune to. The values are not looked at: the tests hold them."""

import argparse
import time
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import gpureduce

OPS = {
    "sum": 5,
    "mean": 3,
    "var": 2,
    "std": 1,
    "max": 3,
    "min": 1,
    "argmax": 2,
    "prod": 1,
    "any": 1,
    "all": 1,
    "count_nonzero": 1,
    "ptp": 1,
    "nansum": 2,
    "nanmean": 1,
    "nanvar": 1,
    "nanmax": 1,
    "nanargmax": 1,
}
DTYPES = {
    "float32": 6,
    "float64": 5,
    "float16": 2,
    "bfloat16": 2,
    "int32": 2,
    "int64": 2,
    "int16": 1,
    "int8": 1,
    "uint8": 1,
    "bool": 2,
    "complex64": 1,
    "complex128": 1,
}
KINDS = ["normal", "normal", "offset", "lognormal2", "lognormal5", "whole numbers", "NaN 1 %"]
WIDENED = ("float32", "float16", "int32")
FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def pick(rng: Any, weights: Any) -> Any:
    names = list(weights)
    p = np.array([weights[n] for n in names], float)
    return names[rng.choice(len(names), p=p / p.sum())]


def shape_of(rng: Any, low: Any, high: Any) -> Any:
    """1 to 6 dimensions, 2^low to 2^high elements, sizes from one to nearly all."""
    rank = int(rng.choice([1, 2, 3, 4, 5, 6], p=[0.2, 0.35, 0.22, 0.13, 0.06, 0.04]))
    total = 2 ** rng.uniform(low, high)
    sizes = [max(1, round(total**part)) for part in rng.dirichlet(np.ones(rank))]
    if rng.random() < 0.3:
        sizes = [1 << (s.bit_length() - 1) for s in sizes]
    return tuple(sizes)


def axes_of(rng: Any, op: Any, rank: Any) -> Any:
    if rng.random() < 0.25:
        return None
    if "arg" in op or rng.random() < 0.65:
        return int(rng.integers(rank))
    return tuple(int(a) for a in np.sort(rng.permutation(rank)[: rng.integers(1, rank + 1)]))


def layout_of(rng: Any, rank: Any) -> Any:
    """A way to look at the array, as (name, function): the same for every library."""
    draw = rng.random()
    if draw < 0.6 or rank == 0:
        return "C", lambda a: a
    if draw < 0.75:
        order = tuple(int(i) for i in rng.permutation(rank))
        return (
            f"axes {order}",
            lambda a: a.transpose(*order) if isinstance(a, np.ndarray) else a.permute(order),
        )
    axis = int(rng.integers(rank))
    cut = (slice(None),) * axis
    if draw < 0.87:
        return f"step 2 on axis {axis}", lambda a: a[(*cut, slice(None, None, 2))]
    return f"cut on axis {axis}", lambda a: a[(*cut, slice(1, -1 if a.shape[axis] > 2 else None))]


def data_of(rng: Any, dtype: Any, size: Any, kind: Any) -> Any:
    if dtype == "bool":
        return rng.integers(0, 2, size).astype(bool)
    if dtype not in FLOATS:
        return rng.integers(0, 100, size).astype(dtype)
    a = rng.standard_normal(size)
    if kind == "offset":
        a += 1e4
    elif kind.startswith("lognormal"):
        a = np.exp(a * float(kind[9:]))
    elif kind == "whole numbers":
        a = np.round(100 * a)
    elif kind == "NaN 1 %":
        a[rng.random(size) < 0.01] = np.nan
    if dtype.startswith("complex"):
        return (a + 1j * a[::-1]).astype(dtype)
    if dtype in ("float16", "bfloat16"):
        a = np.clip(a, -6e4, 6e4)
        if dtype == "bfloat16":
            return a.astype(import_module("ml_dtypes").bfloat16)
    return a.astype(dtype)


class Cpu:
    low, high, dtypes = 0, 24, {k: v for k, v in DTYPES.items() if k != "bfloat16"}

    def __init__(self, threads: Any) -> None:
        if threads:
            gpureduce.set_num_threads(threads)

    def array(self, rng: Any, dtype: Any, shape: Any, kind: Any) -> Any:
        return data_of(rng, dtype, int(np.prod(shape)), kind).reshape(shape)

    def mask(self, rng: Any, shape: Any) -> Any:
        return rng.random(shape) < 0.7

    def peers(self, op: Any, a: Any, axis: Any, options: Any) -> Any:
        def numpy_call() -> Any:
            return getattr(np, op)(a, axis=axis, **options)

        return {"NumPy": numpy_call}

    def time(self, calls: Any) -> Any:
        best = [float("inf")] * len(calls)
        start, rounds = time.perf_counter(), 0
        while rounds < 3 or (time.perf_counter() - start < 0.1 and rounds < 300):
            for i, call in enumerate(calls):
                before = time.perf_counter()
                call()
                best[i] = min(best[i], time.perf_counter() - before)
            rounds += 1
        return best


class Gpu:
    low, high, dtypes = 6, 28, DTYPES

    def __init__(self, _: Any) -> None:
        self.torch, self.cupy = import_module("torch"), import_module("cupy")

    def array(self, rng: Any, dtype: Any, shape: Any, kind: Any) -> Any:
        """Of 2^18 values that repeat: a host would draw 2^28 of them for a minute."""
        size = int(np.prod(shape))
        base = self.put(data_of(rng, dtype, min(size, 1 << 18), kind))
        return base.repeat(-(-size // len(base)))[:size].reshape(shape)

    def put(self, a: Any) -> Any:
        if a.dtype.name != "bfloat16":
            return self.torch.from_numpy(a).cuda()
        return self.torch.from_numpy(a.view(np.int16)).cuda().view(self.torch.bfloat16)

    def mask(self, rng: Any, shape: Any) -> Any:
        return self.torch.rand(shape, device="cuda") < 0.7

    def peers(self, op: Any, a: Any, axis: Any, options: Any) -> Any:
        calls = self.torchs(op, a, axis, options)
        if a.dtype != self.torch.bfloat16 and "where" not in options:
            c = (self.cupy.asarray if a.dtype == self.torch.bool else self.cupy.from_dlpack)(a)
            function = getattr(self.cupy, op)
            if axis is None:  # a number in hand, as ours
                calls["CuPy"] = lambda: function(c, **options).item()
            else:
                calls["CuPy"] = lambda: function(c, axis=axis, **options)
        return calls

    def torchs(self, op: Any, a: Any, axis: Any, options: Any) -> Any:
        torch, name = self.torch, {"max": "amax", "min": "amin"}.get(op, op)
        every = axis if axis is not None else tuple(range(a.ndim))
        function: Any = getattr(torch, name, None)
        if "where" in options:
            if op == "mean" or a.is_complex():
                return {}
            nothing = -float("inf") if op == "max" and a.is_floating_point() else 0
            mask = options["where"]
            return {"torch": lambda: function(torch.where(mask, a, nothing), dim=every)}
        if not function or op in ("nanvar", "ptp", "nanmax"):
            return {}
        extra = {"correction": 0} if op in ("var", "std") else {}
        extra |= {"dtype": torch.float64} if "dtype" in options else {}
        if axis is None:
            return {"torch": lambda: function(a, **extra).item()}
        if op == "prod" and not isinstance(axis, int):
            return {}
        return {"torch": lambda: function(a, dim=axis, **extra)}

    def time(self, calls: Any) -> Any:
        torch, result = self.torch, []
        for call in calls:
            call(), call()
            torch.cuda.synchronize()
            before = time.perf_counter()
            call()
            torch.cuda.synchronize()
            repeats = max(1, min(20, int(3e-3 / max(time.perf_counter() - before, 1e-6))))
            times = []
            for _ in range(5):
                start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                for _ in range(repeats):
                    call()
                stop.record()
                stop.synchronize()
                times.append(start.elapsed_time(stop) / 1e3 / repeats)
            result.append(sorted(times)[2])
        return result


def works(call: Any) -> Any:
    try:
        call()
        return True
    except Exception:  # a peer may have no such function, dtype or axis
        return False


REFUSED = object()


class Small(Exception):
    """A case of fewer bytes than are asked for."""


class Case:
    """All that a seed draws, of so many bytes at least."""

    def __init__(self, seed: Any, place: Any, least: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.seed, self.op = seed, pick(rng, OPS)
        self.dtype = pick(rng, place.dtypes)
        self.kind = KINDS[rng.integers(len(KINDS))]
        high = place.high - 2 if self.dtype == "complex128" else place.high
        shape = shape_of(rng, place.low, high)
        self.axis = axes_of(rng, self.op, len(shape))
        each = 2 if self.dtype == "bfloat16" else np.dtype(self.dtype).itemsize
        if int(np.prod(shape)) * each < least:
            raise Small
        self.layout, view = layout_of(rng, len(shape))
        self.a = view(place.array(rng, self.dtype, shape, self.kind))
        if int(np.prod(self.a.shape)) * each < least:
            raise Small
        self.options = self.options_of(rng, place)

    def options_of(self, rng: Any, place: Any) -> Any:
        options, extra = {}, rng.random()
        if extra < 0.1 and self.op in ("sum", "mean", "max", "var"):
            options["where"] = place.mask(rng, self.a.shape)
            if self.op == "max":
                options["initial"] = 0
        elif extra < 0.2 and self.op in ("sum", "mean") and self.dtype in WIDENED:
            options["dtype"] = np.float64
        return options

    def ours(self) -> Any:
        function, a, axis, options = getattr(gpureduce, self.op), self.a, self.axis, self.options
        return lambda: function(a, axis=axis, **options)

    def __str__(self) -> str:
        kind = self.kind if self.dtype in FLOATS else "-"
        extra = "".join(f", {name}" for name in self.options)
        return (
            f"{self.op} {self.dtype} {tuple(self.a.shape)} axis={self.axis} {self.layout}, "
            f"{kind}{extra} (seed {self.seed})"
        )


def measured(case: Any, place: Any) -> Any:
    """(ratio, text), REFUSED where a peer can do it and we cannot, or None where no peer can."""
    peers = place.peers(case.op, case.a, case.axis, case.options)
    peers = {name: call for name, call in peers.items() if works(call)}
    if not peers:
        return None
    call = case.ours()
    if not works(call):
        return REFUSED
    ours, *others = place.time([call, *peers.values()])
    best = min(range(len(others)), key=others.__getitem__)
    times = f"{ours * 1e6:.1f} us, {list(peers)[best]} {others[best] * 1e6:.1f}"
    return others[best] / ours, f"{case}: {times}"


COLUMNS = [
    "seeds",
    "cases",
    "slower by 3 %",
    "by half",
    "least",
    "1 %",
    "5 %",
    "25 %",
    "median",
    "75 %",
    "mean",
]
HEAD = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}\n"
TITLE = """# Random reductions beside {}

By `benchmarks/sweep.py {}`. A ratio is the fastest peer's time over ours: below 1 we are slower.
Under "1 %" stands the ratio that 1 % of the cases are below; the mean is geometric.

"""


def report(rows: Any, arguments: Any, last: Any) -> None:
    refused = rows.count(REFUSED)
    rows = sorted(row for row in rows if row is not REFUSED)
    ratios = np.array([row[0] for row in rows])
    parts = np.quantile(ratios, (0, 0.01, 0.05, 0.25, 0.5, 0.75))
    slower = [f"{100 * np.mean(ratios < below):.1f} %" for below in (0.97, 0.5)]
    cells = [f"{arguments.seed + 1} to {last}", f"{len(rows)}", *slower]
    cells += [f"{part:.2f}" for part in (*parts, np.exp(np.log(ratios).mean()))]
    line = f"| {' | '.join(cells)} |\n"
    print(f"{HEAD}{line}\nrefused: {refused}\n")
    print("\n".join(f"{ratio:.2f} {text}" for ratio, text in rows[: arguments.worst]))
    if arguments.write:
        path = Path(arguments.write)
        peers = "NumPy" if arguments.where == "cpu" else "PyTorch and CuPy"
        text = path.read_text() if path.exists() else TITLE.format(peers, arguments.where) + HEAD
        path.write_text(text + line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("where", choices=["cpu", "gpu"])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(1000 * time.time()))
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--least", type=float, default=0, help="MiB")
    parser.add_argument("--worst", type=int, default=40)
    parser.add_argument("--write", default="")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    place = (Cpu if arguments.where == "cpu" else Gpu)(arguments.threads)
    rows, seed, end = [], arguments.seed, time.time() + arguments.seconds
    while time.time() < end:
        seed += 1
        with suppress(Small):
            case = Case(seed, place, int(arguments.least * (1 << 20)))
            row = measured(case, place) if 0 not in case.a.shape else None
            rows += [row] if row else []
    report(rows, arguments, seed)


if __name__ == "__main__":
    main()
