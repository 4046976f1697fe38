"""The GPU half against the read limit of the device, CUB, PyTorch, CuPy and JAX, in one run.

Medians. What is held against the read limit and CUB is timed as they are, by events around the
kernel while the one before it still runs; what is held against the libraries, by whole calls as
theirs. Prints what misses its bar; writes benchmarks/results/gpu.md and gpu.png. Needs
CuPy for the data and nvcc for the limit.
"""

import ctypes
import importlib
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import gpureduce
from gpureduce import _core

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
HERE = Path(__file__).parent
RESULTS = HERE / "results"
GIB = 1 << 30
LARGE = 4 * GIB  # bytes of the arrays on the device
RUNS, FEW = 15, 5
KERNEL_RUNS = 41  # a kernel is timed in a row, and the first ones may find slower clocks
# Under a load like this a device slows down now and then, for a tenth of a second, by 5 to 20 %:
# that falls on a few rows of one round.
ROUNDS = 3
LATENCY_RUNS = 301
TURNS, TURN_RUNS, WARM = 41, 21, 10


@dataclass
class Row:
    section: str
    case: str
    value: float
    unit: str  # GB/s, % of the read limit beside it; or µs, MiB: the less, the better
    bar: float = 0.0  # in the unit, or a fraction of the limit
    limit: float = 0.0  # GB/s
    call: float = 0.0  # GB/s of whole calls, where the value is the kernel's
    peers: dict[str, float] = field(default_factory=dict)
    peer_bar: float = 0.0  # times the best peer's speed

    @property
    def fraction(self) -> float:
        return self.value / self.limit if self.limit else 0.0

    @property
    def ratio(self) -> float:
        """How many times as fast as the best peer."""
        if not self.peers:
            return 0.0
        if self.unit != "GB/s":
            return min(self.peers.values()) / self.value
        return min(
            (self.call if self.call and not name.startswith("CUB") else self.value) / value
            for name, value in self.peers.items()
        )

    @property
    def miss(self) -> bool:
        reached = self.fraction if self.limit else self.value
        below = reached < self.bar if self.unit == "GB/s" else reached > self.bar
        return bool((self.bar and below) or (self.peers and self.ratio < self.peer_bar))

    def cells(self) -> list[str]:
        bar = f"{self.bar:.0%}" if self.limit else f"{self.bar:g} {self.unit}"
        peers = ", ".join(f"{name} {value:,.1f}" for name, value in self.peers.items())
        ratio = f"{self.ratio:.2f} x" if self.peers else ""
        if self.peer_bar:
            ratio += f" ({self.peer_bar:.2f})"
        return [
            self.case,
            f"{self.value:,.1f} {self.unit}",
            f"{self.fraction:.1%}" if self.limit else "",
            f"{self.call:,.1f} GB/s" if self.call else "",
            bar if self.bar else "",
            peers,
            ratio,
            "MISS" if self.miss else "",
        ]


def optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception as error:
        print(f"without {name}: {error}", flush=True)
        return None


cupy: Any = optional("cupy")
torch: Any = optional("torch")
jax: Any = optional("jax")
Works = dict[str, Callable[[], Any]]


def median(work: Callable[[], Any], runs: int = RUNS, warm: int = 2) -> float:
    """Seconds."""
    for _ in range(warm):
        work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def rate(size: int, work: Callable[[], Any], runs: int = RUNS) -> float:
    return size / median(work, runs) / 1e9


def resident(
    section: str, op: str, given: Any, label: str, bar: float, limit: float, runs: int = KERNEL_RUNS
) -> Row:
    """An array of the device: the kernel's speed and the call's."""
    times = _core.kernel_time("default", op, given, "cuda", runs)
    value = given.nbytes / statistics.median(times) / 1e6
    call = rate(given.nbytes, lambda: reduced(op, given), FEW)
    return Row(section, label, value, "GB/s", bar, limit, call)


# --- the limit and CUB ----------------------------------------------------------------------------


class Toolkit:
    """benchmarks/peers.cu."""

    def __init__(self, folder: str) -> None:
        major, minor = gpureduce.devices()[0]["compute_capability"]
        target = Path(folder) / "peers.so"
        command = ["nvcc", "-O3", "-std=c++17", f"-arch=sm_{major}{minor}", "--shared"]
        command += ["-Xcompiler", "-fPIC", str(HERE / "peers.cu"), "-o", str(target)]
        subprocess.run(command, check=True)
        self.library = ctypes.CDLL(str(target))

    def call(self, name: str, array: Any, count: int, size: int) -> float | None:
        """GB/s, or None where this toolkit has no such function or it failed."""
        try:
            function = self.library[name]
        except AttributeError:
            return None
        function.restype = ctypes.c_float
        function.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]
        cupy.cuda.Device().synchronize()
        milliseconds = float(function(array.data.ptr, count, RUNS))
        return size / milliseconds / 1e6 if milliseconds > 0 else None

    def limit(self, array: Any, size: int = 0, runs: int = RUNS) -> float:
        """Of reading so many bytes of the array, or all."""
        size = size or array.nbytes
        function = self.library["read_limit"]
        function.restype = ctypes.c_float
        function.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int]
        cupy.cuda.Device().synchronize()
        milliseconds = float(function(array.data.ptr, array.nbytes, size, runs))
        assert milliseconds > 0, "the read limit could not be measured"
        return size / milliseconds / 1e6

    def peers(self, array: Any, **names: str) -> dict[str, float]:
        found = {
            label: self.call(name, array, array.size, array.nbytes) for label, name in names.items()
        }
        return {label: value for label, value in found.items() if value}


# --- data -----------------------------------------------------------------------------------------


def words(size: int) -> Any:
    """Random bits, as uint64: splitmix64 of the index."""
    made = cupy.empty(size // 8, cupy.uint64)
    mix = cupy.ElementwiseKernel(
        "uint64 seed",
        "uint64 y",
        """
        unsigned long long z = (i + seed) * 0x9e3779b97f4a7c15ULL;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        y = z ^ (z >> 31);
        """,
        "splitmix",
    )
    mix(np.uint64(20240229), made)
    return made


def normal(dtype: str, size: int) -> Any:
    """In pieces, for the generator's own scratch."""
    made = cupy.empty(size // np.dtype(dtype).itemsize, dtype)
    step = 1 << 26
    for start in range(0, made.size, step):
        part = made[start : start + step]
        part[...] = cupy.random.standard_normal(part.size + part.size % 2, dtype)[: part.size]
    return made


def finite(dtype: str, size: int) -> Any:
    """Random bits over the whole range, without infinity and NaN."""
    bits = words(size).view("u4" if dtype == "float32" else "u8")
    infinity = bits.dtype.type(0x7F800000 if dtype == "float32" else 0x7FF0000000000000)
    low = bits.dtype.type(int(infinity) & -int(infinity))
    step = 1 << 26
    for start in range(0, bits.size, step):
        part = bits[start : start + step]
        part ^= ((part & infinity) == infinity).astype(bits.dtype) * low
    return bits.view(dtype)


def lognormal(dtype: str, size: int) -> Any:
    made = normal(dtype, size)
    step = 1 << 26
    for start in range(0, made.size, step):
        part = made[start : start + step]
        odd = (part.view("i4" if dtype == "float32" else "i8") & 1).astype(dtype)
        part[...] = cupy.exp(10 * part) * (1 - 2 * odd)
    return made


class Typed:
    """Device memory as an array of any of the library's dtypes."""

    def __init__(self, array: Any, dtype: str, inner: tuple[int, ...] = ()) -> None:
        self.array, self.nbytes = array, array.nbytes
        kind = {"bfloat16": "<V2", "datetime64": "<M8", "timedelta64": "<m8"}
        typestr = kind.get(dtype) or np.dtype(dtype).str
        size = 2 if dtype == "bfloat16" else np.dtype(typestr).itemsize
        self.__cuda_array_interface__ = {
            "shape": (array.nbytes // size // math.prod(inner), *inner),
            "typestr": typestr,
            "data": (array.data.ptr, False),
            "strides": None,
            "stream": None,
            "version": 3,
        }


# --- sections -------------------------------------------------------------------------------------


def reduced(op: str, a: Any, **arguments: Any) -> Any:
    if hasattr(gpureduce, op):
        return getattr(gpureduce, op)(a, **arguments)
    return gpureduce.reduce(a, op, **arguments)


def exact_sums(toolkit: Toolkit) -> Iterator[Row]:
    for dtype in ("float32", "float64"):
        for label, make, bar in (
            ("normal", normal, 0.97),
            ("spread of 200 bits", lognormal, 0.5),
            ("random bits", finite, 0.3 if dtype == "float32" else 0.08),
        ):
            a = make(dtype, LARGE)
            limit = toolkit.limit(a)
            row = resident("Exact sums, 4 GiB", "sum", a, f"sum {dtype}, {label}", bar, limit)
            if label == "normal":
                row.peers, row.peer_bar = toolkit.peers(a, CUB=f"cub_sum_{dtype}"), 1.0
                yield row
                reproducible = toolkit.peers(a, **{"CUB gpu_to_gpu": f"cub_gpu_to_gpu_{dtype}"})
                case = f"{row.case}, reproducible"
                row = Row(row.section, case, row.value, "GB/s", 0, limit, row.call)
                row.peers, row.peer_bar = reproducible, 1.25
            yield row
            del a
            cupy.get_default_memory_pool().free_all_blocks()


def products(toolkit: Toolkit) -> Iterator[Row]:
    for dtype in ("float32", "float64", "complex64", "complex128"):
        real = "float32" if dtype in ("float32", "complex64") else "float64"
        a = normal(real, LARGE)
        a *= 1e-3
        a += 1
        limit = toolkit.limit(a)
        given = Typed(a, dtype)
        yield resident("Products, 4 GiB", "prod", given, f"prod {dtype}", 0.94, limit)
        if dtype == "float64":
            for of in ("float64", "int64"):
                given = Typed(a, of, (2, 2))
                bar = 0.82 if of == "float64" else 0
                yield resident("Products, 4 GiB", "matmul2x2", given, f"matmul2x2 {of}", bar, limit)
        del a, given
        cupy.get_default_memory_pool().free_all_blocks()


def filled(op: str, dtype: str, pool: dict[str, Any]) -> Any:
    """Values that do not settle the answer before the end, made once for each kind."""
    floats = {"float16": "f2", "bfloat16": "bf", "float32": "f4", "complex64": "f4"}
    floats |= {"float64": "f8", "complex128": "f8"}
    kind = floats.get(dtype, "words")
    if dtype == "bool":
        kind = "bool"
    if op in ("all", "bitwise_and", "prod"):
        kind = "odd" if kind in ("words", "bool") else kind
    if op == "all" and dtype == "bool":
        kind = "ones"
    if op in ("any", "bitwise_or"):
        kind = "zeros"
    if kind not in pool:
        make: dict[str, Callable[[], Any]] = {
            "f4": lambda: normal("float32", LARGE),
            "f8": lambda: normal("float64", LARGE),
            "f2": lambda: normal("float32", 2 * LARGE).astype("float16"),
            "bf": lambda: (normal("float32", 2 * LARGE).view("u4") >> 16).astype("u2"),
            "words": lambda: words(LARGE),
            "bool": lambda: words(LARGE) & np.uint64(0x0101010101010101),
            "odd": lambda: words(LARGE) | np.uint64(0x0101010101010101),
            "ones": lambda: cupy.full(LARGE // 8, 0x0101010101010101, "u8"),
            "zeros": lambda: cupy.zeros(LARGE // 8, "u8"),
        }
        pool[kind] = make[kind]()
        cupy.get_default_memory_pool().free_all_blocks()
    return Typed(pool[kind], dtype)


def every_row(toolkit: Toolkit) -> Iterator[Row]:
    pool: dict[str, Any] = {}
    ops = {op["name"]: op for op in gpureduce.operators()}
    cases = []
    for op, dtype, _, law in _core.rows():
        o = ops[op]
        if not (o["matrices"] or o["spread"] or o["skips_nan"] or o["results"] > 1):
            cases.append((op, dtype, 0.94 if law == "tree" else 0.95, filled(op, dtype, pool)))

    def once(op: str, dtype: str, bar: float, given: Any) -> Row:
        limit = toolkit.limit(given.array, runs=FEW)
        return resident("Every row, 4 GiB", op, given, f"{op} {dtype}", bar, limit, RUNS)

    rounds = [[once(*case) for case in cases] for _ in range(ROUNDS)]
    for (op, dtype, _, given), rows in zip(cases, zip(*rounds, strict=True), strict=True):
        row = rows[0]
        row.limit = statistics.median(r.limit for r in rows)
        row.value = statistics.median(r.value for r in rows)
        row.call = statistics.median(r.call for r in rows)
        if op in ("sum", "max") and dtype in PEER_DTYPES:
            row.peers = library_rates(op, given.array.view(dtype))
            row.peers |= toolkit.peers(given.array.view(dtype), CUB=f"cub_{op}_{dtype}")
        yield row


PEER_DTYPES = ("int8", "int16", "int32", "int64", "float16", "float32", "float64")


def library_rates(op: str, a: Any) -> dict[str, float]:
    rates = {"CuPy": rate(a.nbytes, lambda: getattr(a, op)().item(), FEW)}
    if torch:
        t = torch.from_dlpack(a)
        rates["torch"] = rate(a.nbytes, lambda: getattr(torch, op)(t).item(), FEW)
    return rates


def contestants(a: Any) -> tuple[Works, Works]:
    """The libraries' sums and ours, each until the scalar is there."""
    peers: Works = {"CuPy": lambda: float(a.sum())}
    ours: Works = {"CuPy array": lambda: gpureduce.sum(a)}
    if torch:
        t = torch.from_dlpack(a)
        peers["torch"] = lambda: t.sum().item()
        ours["torch tensor"] = lambda: gpureduce.sum(t)
    if jax:
        j = jax.device_put(cupy.asnumpy(a))
        total = jax.jit(jax.numpy.sum)
        peers["JAX"] = lambda: float(total(j))
        ours["JAX array"] = lambda: gpureduce.sum(j)
    return peers, ours


def in_turns(works: list[Callable[[], Any]]) -> list[float]:
    """Microseconds, medians. A slow phase of the host is longer than a turn, and falls on all."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(TURNS):
        for work, taken in zip(works, times, strict=True):
            cupy.cuda.Device().synchronize()
            for run in range(WARM + TURN_RUNS):
                start = time.perf_counter()
                work()
                if run >= WARM:
                    taken.append(time.perf_counter() - start)
    return [statistics.median(taken) * 1e6 for taken in times]


def latencies() -> Iterator[Row]:
    logs = (10, 12, 14, 16, 17, 20, 24)
    cases = [contestants(cupy.random.standard_normal(1 << log, "float32")) for log in logs]
    times = iter(in_turns([work for both in cases for works in both for work in works.values()]))
    for log, (peers, ours) in zip(logs, cases, strict=True):
        theirs = {name: next(times) for name in peers}
        for label in ours:
            row = Row("Scalar in hand", f"sum float32, 2^{log}, {label}", next(times), "µs")
            if label == "CuPy array":
                row.bar = 10 if log <= 17 else 12 if log == 20 else 26
                row.peers, row.peer_bar = theirs, 1 / 0.6
            yield row


def host_arrays() -> Iterator[Row]:
    pool = np.random.default_rng(1).standard_normal(1 << 24, np.float32)
    for size in (GIB, 4 * GIB):
        pageable = np.resize(pool[:-3], size // 4)
        kinds = {"pageable": (pageable, 45.0)}
        cupyx = optional("cupyx")
        if cupyx:
            pinned = cupyx.empty_pinned(pageable.size, np.float32)
            pinned[:] = pageable
            kinds["pinned"] = (pinned, 52.0)
        for label, (a, bar) in kinds.items():
            runs = RUNS if size == GIB else FEW
            value = rate(a.nbytes, lambda a=a: gpureduce.sum(a, device="cuda"), runs)  # type: ignore[misc]
            case = f"sum float32, {size // GIB} GiB, {label}"
            row = Row("Host arrays, device='cuda'", case, value, "GB/s", bar)
            if label == "pageable" and size == GIB:
                row.peers["CuPy"] = rate(a.nbytes, lambda a=a: float(cupy.asarray(a).sum()), FEW)  # type: ignore[misc]
                if torch:
                    row.peers["torch"] = rate(
                        a.nbytes,
                        lambda a=a: torch.from_numpy(a).cuda().sum().item(),  # type: ignore[misc]
                        FEW,
                    )
                row.peer_bar = 5.0
            yield row
        strided = pageable[::2]
        value = rate(strided.nbytes, lambda a=strided: gpureduce.sum(a, device="cuda"), FEW)  # type: ignore[misc]
        case = f"sum float32, {size // GIB} GiB, every second element"
        yield Row("Host arrays, device='cuda'", case, value, "GB/s")
        kinds.clear()
        cupy.get_default_pinned_memory_pool().free_all_blocks()


def crossover() -> Iterator[Row]:
    for dtype in ("float32", "int8"):
        whole = np.resize(np.random.default_rng(2).integers(-99, 99, 1 << 22, np.int8), GIB)
        if dtype != "int8":
            whole = np.resize(
                np.random.default_rng(2).standard_normal(1 << 22, np.float32), GIB // 4
            )
        for log in range(12, 31, 2):
            a = whole[: (1 << log) // whole.itemsize]
            runs = max(FEW, min(LATENCY_RUNS, (1 << 30 >> log) * 3))
            times = {}
            for device in ("cpu", "cuda", "auto"):
                times[device] = median(lambda a=a, d=device: gpureduce.sum(a, device=d), runs)  # type: ignore[misc]
            case = f"sum {dtype}, {a.nbytes >> 10:,} KiB on the host, auto"
            peers = {name: times[name] * 1e6 for name in ("cpu", "cuda")}
            yield Row("Where auto goes", case, times["auto"] * 1e6, "µs", peers=peers)


MEMORY = """
import ctypes
import numpy as np, gpureduce
def free():
    return gpureduce.devices()[0]["memory_free"] / 2**20
a = np.broadcast_to(np.random.default_rng(0).random(1_000_003, np.float32), (512, 1_000_003))
gpureduce.sum(a[0]), gpureduce.sum(a[0, ::-1].copy(), device="cpu"), gpureduce.devices()
device = free()
gpureduce.sum(a[:1, :5], device="cuda")
small = device - free()
gpureduce.sum(a, device="cuda"), gpureduce.prod(a[:, ::-1], device="cuda")
print(device - free(), small)
"""


def memory() -> Iterator[Row]:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True
    )
    device, small = map(float, done.stdout.split())
    section = "Memory of a staged call of 2 GiB"
    yield Row(section, "on the device, kernels' code included", device, "MiB", 64)
    yield Row(section, "of that, after the first small call", small, "MiB")


# --- the report -----------------------------------------------------------------------------------

HEAD = [
    "case",
    "gpureduce",
    "of the read limit",
    "call",
    "bar",
    "peers",
    "times the best peer (bar)",
    "",
]


def table(rows: list[Row]) -> str:
    lines = [HEAD, ["---"] * len(HEAD), *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def report(title: str, about: str, rows: list[Row]) -> str:
    misses = [row for row in rows if row.miss]
    parts = [f"# {title}\n", about, f"\n{len(misses)} of {len(rows)} rows miss their bar.\n"]
    for section in dict.fromkeys(row.section for row in rows):
        parts += [f"## {section}\n", table([row for row in rows if row.section == section]), ""]
    return "\n".join(parts)


def write(name: str, title: str, about: str, rows: list[Row]) -> None:
    """results/NAME.md; prints what misses its bar."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(report(title, about, rows))
    misses = [row for row in rows if row.miss]
    print(f"\n{len(misses)} of {len(rows)} rows miss their bar")
    shown(misses)


def chart(rows: list[Row]) -> None:
    pyplot = optional("matplotlib.pyplot")
    if not pyplot:
        return
    pyplot.switch_backend("Agg")
    shown = [row for row in rows if row.limit and (row.peers or row.section != "Every row, 4 GiB")]
    colours = {"gpureduce": "#2f6f4f", "CUB": "#999999", "torch": "#d08050", "CuPy": "#6080c0"}
    colours["CUB gpu_to_gpu"] = "#bbbbbb"
    figure, axes = pyplot.subplots(figsize=(9, 0.42 * len(shown) + 1.5))
    for at, row in enumerate(shown):
        bars = {"gpureduce": row.value, **row.peers}
        height = 0.85 / len(bars)
        for k, (name, value) in enumerate(bars.items()):
            place = at - 0.42 + height * (k + 0.5)
            axes.barh(place, 100 * value / row.limit, height, color=colours[name])
        if row.bar:
            axes.plot([100 * row.bar] * 2, [at - 0.45, at + 0.45], color="black", linewidth=1)
    axes.set_yticks(range(len(shown)), [row.case for row in shown], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("% of the read limit; the black line is the bar")
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    axes.legend(handles, list(colours), fontsize=7, loc="lower right")
    figure.tight_layout()
    figure.savefig(RESULTS / "gpu.png", dpi=110)


def machine() -> str:
    device = gpureduce.devices()[0]
    libraries = [("NumPy", np), ("CuPy", cupy), ("torch", torch), ("JAX", jax)]
    named = ", ".join(f"{name} {library.__version__}" for name, library in libraries if library)
    return (
        f"{device['name']}, {device['multiprocessors']} multiprocessors, driver for CUDA"
        f" {device['driver'][0]}.{device['driver'][1]};"
        f" {gpureduce.get_num_threads()} threads of the CPU; {named}."
    )


def shown(rows: Iterable[Row]) -> list[Row]:
    kept = []
    for row in rows:
        kept.append(row)
        print("  ".join(cell for cell in row.cells() if cell), flush=True)
    return kept


def need_a_gpu() -> None:
    count, reason = _core.device_count()
    if not count:
        sys.exit(f"no GPU: {reason}")
    if not cupy:
        sys.exit("CuPy makes the data: install it")


ABOUT = """Made by `benchmarks/gpu.py`: medians in one run; what is held against the read limit and
CUB by events around the kernel while the one before it still runs, as they are, the rest by whole
calls. A scalar in hand is of one array again and again, of which the L2 then has a part; the
contestants and sizes take turns.

![bars](gpu.png)"""


def main() -> None:
    need_a_gpu()
    rows = shown(memory())
    with tempfile.TemporaryDirectory() as folder:
        toolkit = Toolkit(folder)
        for section in (exact_sums, products, every_row):
            rows += shown(section(toolkit))
            cupy.get_default_memory_pool().free_all_blocks()
    for part in (latencies, host_arrays, crossover):
        rows += shown(part())
    write("gpu", "The GPU half", f"{machine()}\n\n{ABOUT}", rows)
    chart(rows)


if __name__ == "__main__":
    main()
