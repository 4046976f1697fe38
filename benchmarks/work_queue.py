"""The global work queue beside fixed assignments of segments to blocks, on a CUDA device.

    PYTHONPATH=. python benchmarks/work_queue.py [--elements N] [--repeats N]

The lengths are Zipf-like. Where the long segments lie together, the block whose section they are in
works while the others wait; shuffled, the fixed assignments fare better; and where all segments are
alike the queue can only cost. Prints the table and writes benchmarks/results/work_queue.md.
"""

import argparse
import statistics
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gpureduce
from gpureduce import _core, work_queue

Ints = NDArray[np.int64]
LONGEST = 1 << 16
RESULTS = Path(__file__).parent / "results"
WHY = """\
Where the long segments lie together, the block whose section they are in works while the others
wait, and the queue wins. Dealt like cards they are spread as well, without a counter. Where fixed
sections are even, the queue costs its counter and two barriers for each segment."""


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


def times_of(lengths: Ints, repeats: int) -> list[float]:
    """Medians in milliseconds, of sums that were checked, in the order of the kernels."""
    a = np.random.default_rng(1).integers(-(2**31), 2**31, lengths.sum(), dtype=np.int32)
    offsets = offsets_of(lengths)
    want = np.add.reduceat(a, offsets, dtype=np.int64)
    times = []
    for kernel in work_queue.KERNELS:
        assert np.array_equal(work_queue.segment_sums(a, offsets, kernel=kernel), want), kernel
        runs = work_queue.segment_times(a, offsets, kernel=kernel, repeats=repeats)
        times.append(statistics.median(runs))
    return times


def row(label: str, lengths: Ints, times: list[float]) -> str:
    about = [label, f"{len(lengths):,}", f"{lengths.sum():,}", f"{lengths.max():,}"]
    won = times[0] / times[work_queue.KERNELS.index("work_queue")]
    return line([*about, *(f"{time:.3f}" for time in times), f"{won:.2f} x"])


def line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def report(device: str, repeats: int, rows: list[str]) -> str:
    head = ["int32 segments", "segments", "elements", "longest", *work_queue.KERNELS]
    head.append(f"over {work_queue.KERNELS[0]}")
    about = f"{device}: milliseconds of the launches, medians of {repeats}."
    rule = "|---|" + "---:|" * (len(head) - 1)
    return "\n".join(
        [f"# The global work queue\n\n{about}\n\n{WHY}\n", line(head), rule, *rows, ""]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=1 << 26)
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    count, why = _core.device_count()
    if not count:
        parser.exit(1, f"{parser.prog}: {why}\n")
    rows = [
        row(label, lengths, times_of(lengths, arguments.repeats))
        for label, lengths in cases(arguments.elements).items()
    ]
    text = report(gpureduce.devices()[0]["name"], arguments.repeats, rows)
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "work_queue.md").write_text(text)


if __name__ == "__main__":
    main()
