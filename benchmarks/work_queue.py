"""The global work queue beside fixed assignments of segments to blocks, on a CUDA device.

    PYTHONPATH=. python benchmarks/work_queue.py [--elements N] [--repeats N]

The lengths are Zipf-like. Where the long segments lie together, the block whose section they are in
works while the others wait; shuffled, the fixed assignments fare better; and where all segments are
alike the queue can only cost.
"""

import argparse
import statistics

import numpy as np
from numpy.typing import NDArray

import gpureduce
from gpureduce import _core, work_queue

Ints = NDArray[np.int64]
LONGEST = 1 << 16


def zipf_lengths(rng: np.random.Generator, elements: int) -> Ints:
    """Lengths that add up to about so many elements, the long ones first."""
    lengths = np.minimum(rng.zipf(1.5, elements // 50), LONGEST)
    some = lengths[: int(np.searchsorted(np.cumsum(lengths), elements))]
    return np.sort(some)[::-1].astype(np.int64)


def offsets_of(lengths: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)[:-1]])


def cases(elements: int) -> dict[str, Ints]:
    rng = np.random.default_rng(0)
    lengths = zipf_lengths(rng, elements)
    return {
        "long ones together": lengths,
        "shuffled": rng.permutation(lengths),
        "all alike": np.full(len(lengths), max(1, lengths.sum() // len(lengths))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=1 << 26)
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    count, why = _core.device_count()
    if not count:
        parser.exit(1, f"{parser.prog}: {why}\n")
    print(f"{gpureduce.devices()[0]['name']}: milliseconds, medians of {arguments.repeats}")
    print(f"{'int32 segments':22}{'segments':>12}{'elements':>14}{'longest':>10}", end="")
    print("".join(f"{kernel:>16}" for kernel in work_queue.KERNELS), f"{'queue wins':>12}")
    for label, lengths in cases(arguments.elements).items():
        a = np.random.default_rng(1).integers(-(2**31), 2**31, lengths.sum(), dtype=np.int32)
        offsets = offsets_of(lengths)
        want = np.add.reduceat(a, offsets, dtype=np.int64)
        times = []
        for kernel in work_queue.KERNELS:
            assert np.array_equal(work_queue.segment_sums(a, offsets, kernel=kernel), want), kernel
            runs = work_queue.segment_times(a, offsets, kernel=kernel, repeats=arguments.repeats)
            times.append(statistics.median(runs))
        print(f"{label:22}{len(offsets):12,}{len(a):14,}{lengths.max():10,}", end="")
        fixed = dict(zip(work_queue.KERNELS, times, strict=True))
        print("".join(f"{time:16.3f}" for time in times), end="")
        print(f"{fixed['fixed_segments'] / fixed['work_queue']:11.2f}x")


if __name__ == "__main__":
    main()
