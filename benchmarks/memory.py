"""How much memory do reductions of arrays take that are larger than it?

    python benchmarks/memory.py [--gigabytes 100] [--workers 2] [--ways dask,zarr]

Dask's chunks are made when they are asked for, and zarr's are those of a store into which nothing
was written: no disk is filled. Prints the peak of each process, all that Python and the libraries
take with it, and beside it what the processes had before.
"""

import argparse
import resource
import time
from importlib import import_module
from typing import Any

import numpy as np

import gpureduce

CHUNK = (16, 1 << 20)  # of float32: 64 MiB


def peak() -> float:
    """Megabytes of this process, since it began."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def _block(block_id: Any = None) -> Any:
    made = np.full(CHUNK, 0.1, np.float32)
    made[0, : len(block_id)] = block_id
    return made


def virtual(gigabytes: float) -> Any:
    """Chunks along the first axis."""
    da = import_module("dask.array")
    count = max(1, round(gigabytes * 1e9 / 4 / CHUNK[0] / CHUNK[1]))
    chunks = ((CHUNK[0],) * count, (CHUNK[1],))
    return da.map_blocks(_block, chunks=chunks, dtype=np.float32, meta=np.empty((0, 0), "f4"))


def store(gigabytes: float) -> Any:
    zarr = import_module("zarr")
    count = max(1, round(gigabytes * 1e9 / 4 / CHUNK[0] / CHUNK[1]))
    shape = (count * CHUNK[0], CHUNK[1])
    return zarr.create(shape, chunks=CHUNK, dtype="f4", fill_value=0.1)


def by_dask(gigabytes: float, workers: int) -> float:
    """The worst worker's peak."""
    distributed = import_module("distributed")
    cluster = distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        before: float = max(client.run(peak).values())
        x = virtual(gigabytes)
        for name in ("mean", "var"):
            start = time.perf_counter()
            client.compute(getattr(gpureduce, name)(x)).result()
            found: float = max(client.run(peak).values())
            _tell(f"Dask, {name}", x.nbytes, start, found, before)
    return found


def by_zarr(gigabytes: float) -> float:
    before, x = peak(), store(gigabytes)
    for name in ("mean", "var"):
        start = time.perf_counter()
        getattr(gpureduce, name)(x)
        _tell(f"zarr, {name}", x.nbytes, start, peak(), before)
    return peak()


def _tell(what: str, size: int, start: float, found: float, before: float) -> None:
    seconds = time.perf_counter() - start
    print(
        f"{what:12} {size / 1e9:6.1f} GB {seconds:7.1f} s {found:7.0f} MB, before {before:.0f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--ways", default="dask,zarr")
    given = parser.parse_args()
    for way in given.ways.split(","):
        if way == "zarr":
            by_zarr(given.gigabytes)
        else:
            by_dask(given.gigabytes, given.workers)


if __name__ == "__main__":
    main()
