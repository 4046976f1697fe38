"""How much of the Earth is land? NumPy's three answers, the exact one, and it again in parts.

The mask is NOAA's GLOBE, as the package global-land-mask ships it: 21,600 x 43,200 booleans. Each
cell weighs the cosine of its latitude, in float32, broadcast without a copy.
"""

import importlib
import importlib.util
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import gpureduce

PACKAGE = "global-land-mask"
_RADIUS = 6371.0088  # kilometres: of the sphere of the Earth's area, near enough
Array = NDArray[Any]


class Earth(NamedTuple):
    """is_land[row, column], the rows from north to south; weight is [row, 1]."""

    is_land: Array
    weight: Array

    @property
    def weights(self) -> Array:
        return np.broadcast_to(self.weight, self.is_land.shape)

    @property
    def cell(self) -> float:
        """Square kilometres of a cell of weight 1."""
        rows, columns = self.is_land.shape
        return float(_RADIUS**2 * (math.pi / rows) * (2 * math.pi / columns))


def add_command(commands: Any) -> None:
    command = commands.add_parser("land", help="how much of the Earth is land, whole and in parts")
    add_picture(command)
    command.set_defaults(run=lambda given: run(given.picture))


def add_picture(command: Any) -> None:
    command.add_argument("--picture", metavar="FILE", help="draw land and its share by latitude")


def run(picture: str | None = None) -> None:
    earth = _earth()
    exact = _exact(earth)
    rows, columns = earth.is_land.shape
    share = exact / (columns * sum(map(Fraction, earth.weight[:, 0].tolist())))
    print(f"{rows * columns:,} cells, {float(share):.3%} of the Earth is land\n")
    print(f"{'':44}{'sum of weights':>16}{'km² of land':>16}{'off by km²':>12}{'seconds':>9}")
    print(f"{'exact, by integers':44}{float(exact):16.3f}{_area(earth, exact):16,.1f}")
    for name, total in _ways(earth, exact):
        start = time.perf_counter()
        found = total()
        seconds = time.perf_counter() - start
        area = _area(earth, Fraction(float(found)))
        off = area - _area(earth, exact)
        print(f"{name:44}{float(found):16.1f}{area:16,.1f}{off:12,.1f}{seconds:9.2f}")
    if picture:
        _draw(earth, float(share), picture)
        print(f"\n{picture}")


def _earth() -> Earth:
    found = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if found is None or found.origin is None:
        rows = 2160
        print(
            f"{PACKAGE} is not installed (pip install {PACKAGE}): these continents are made up by "
            "random numbers, in a hundredth of the cells of the real map\n"
        )
        return _of(_imagined(rows), 90 - (np.arange(rows) + 0.5) * 180 / rows)
    path = Path(found.origin).with_name("globe_combined_mask_compressed.npz")
    print(f"reading {path.name} of {PACKAGE}", file=sys.stderr)
    with np.load(path) as file:
        is_ocean, latitude = file["mask"], file["lat"]
    return _of(np.logical_not(is_ocean, out=is_ocean), latitude)


def _of(is_land: Array, latitude: Array) -> Earth:
    return Earth(is_land, np.cos(np.deg2rad(latitude)).astype(np.float32)[:, np.newaxis])


def _imagined(rows: int) -> Array:
    rng = np.random.default_rng(1)
    height = np.zeros((rows, 2 * rows))
    for n in (6, 12, 24, 48):
        height += np.kron(rng.normal(size=(n, 2 * n)) / n, np.ones((rows // n, rows // n)))
    return np.asarray(height > np.quantile(height, 0.7))


def _exact(earth: Earth) -> Fraction:
    counts = np.count_nonzero(earth.is_land, axis=1).tolist()
    weights = map(Fraction, earth.weight[:, 0].tolist())
    return sum((n * w for n, w in zip(counts, weights, strict=True)), Fraction())


def _area(earth: Earth, total: Fraction) -> float:
    return float(total) * earth.cell


# --- ways to the sum ------------------------------------------------------------------------------


def _ways(earth: Earth, exact: Fraction) -> Iterator[tuple[str, Callable[[], Any]]]:
    w, land = earth.weights, earth.is_land
    yield "the nearest float32", lambda: np.float32(float(exact))
    yield "NumPy, whole", lambda: np.sum(w, where=land)
    yield "NumPy, sum of the columns' sums", lambda: np.sum(np.sum(w, axis=0, where=land))
    yield "NumPy, sum of the rows' sums", lambda: np.sum(np.sum(w, axis=1, where=land))
    yield "gpureduce, whole", lambda: gpureduce.sum(w, where=land)
    yield "gpureduce, on one thread", lambda: _on_one_thread(earth)
    yield "gpureduce, turned", lambda: gpureduce.sum(w.T, where=land.T)
    yield "gpureduce, in 19 bands, merged at random", lambda: _in_bands(earth)
    yield "gpureduce, a band at a time, saved between", lambda: _saved(earth)
    if gpureduce.devices():
        yield "gpureduce, on the GPU", lambda: gpureduce.sum(w, where=land, device="cuda")
    if importlib.util.find_spec("dask"):
        importlib.import_module("dask.array")  # outside of the time that is taken
        yield "gpureduce, in Dask's chunks of 2000 x 5000", lambda: _by_dask(earth)


def _on_one_thread(earth: Earth) -> Any:
    threads = gpureduce.get_num_threads()
    gpureduce.set_num_threads(1)
    try:
        return gpureduce.sum(earth.weights, where=earth.is_land)
    finally:
        gpureduce.set_num_threads(threads)


def _bands(earth: Earth) -> Iterator[tuple[Array, Array]]:
    rows = len(earth.weight)
    for start in range(0, rows, rows // 19 + 1):
        band = slice(start, start + rows // 19 + 1)
        yield earth.weights[band], earth.is_land[band]


def _in_bands(earth: Earth) -> Any:
    parts = [gpureduce.partials(w, "sum", where=land) for w, land in _bands(earth)]
    order = np.random.default_rng(1).permutation(len(parts))
    return gpureduce.finish(gpureduce.merge(parts[i] for i in order))


def _saved(earth: Earth) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sum"
        gpureduce.Accumulator("sum", dtype=np.float32).save(path)
        for w, land in _bands(earth):
            total = gpureduce.Accumulator.load(path)
            total.add(w, where=land)
            total.save(path)
        return gpureduce.Accumulator.load(path).result()


def _by_dask(earth: Earth) -> Any:
    da = importlib.import_module("dask.array")
    land = da.from_array(earth.is_land, chunks=(2000, 5000), name=False)
    weight = da.from_array(earth.weight, chunks=(2000, 1), name=False)
    weights = da.broadcast_to(weight, land.shape, chunks=land.chunks)
    return gpureduce.sum(weights, where=land).compute()


# --- the picture ----------------------------------------------------------------------------------


def _draw(earth: Earth, share: float, picture: str) -> None:
    try:
        figures = importlib.import_module("matplotlib.figure")
    except ImportError:
        raise ImportError("the picture takes matplotlib: pip install matplotlib") from None
    step = max(len(earth.weight) // 720, 1)
    figure = figures.Figure(figsize=(11, 4.6), layout="constrained")
    world, latitudes = figure.subplots(1, 2, sharey=True, width_ratios=(4, 1))
    extent = (-180, 180, -90, 90)
    world.imshow(earth.is_land[::step, ::step], extent=extent, cmap="Greens", vmax=1.5)
    world.set(title=f"{share:.3%} of the Earth is land", xlabel="longitude", ylabel="latitude")
    rows = len(earth.weight)
    of_row = gpureduce.mean(earth.is_land, axis=1)
    latitudes.plot(of_row, 90 - (np.arange(rows) + 0.5) * 180 / rows, color="tab:green", lw=0.8)
    latitudes.set(title="land by latitude", xlabel="share of the row", xlim=(0, 1))
    figure.savefig(picture, dpi=110)
