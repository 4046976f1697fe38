"""The ladder: every textbook kernel checked against the CPU, then timed, as a table and a chart."""

import importlib
import json
import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from gpureduce import _core
from gpureduce.functions import PUBLIC
from gpureduce.lists import Kernel, devices, kernels
from gpureduce.story import WHY

_READ_BYTES = 1 << 30  # that the read limit is measured with, at least
_HEAD = ("kernel", "elements", "µs", "GB/s", "% of read", "speed-up")

Array = NDArray[Any]


class Step(TypedDict):
    """One kernel; rate in bytes of the array a second."""

    name: str
    section: str
    sentence: str
    elements: int
    microseconds: float
    rate: float


class Ladder(TypedDict):
    """A run; read_limit in bytes a second."""

    device: str
    dtype: str
    elements: int
    repeats: int
    read_limit: float
    steps: list[Step]


def measure(n: int, dtype: str, number: int, repeats: int) -> Ladder:
    """All kernels on sums of n elements of cuda:number, medians of so many times.

    Raises ArithmeticError where a kernel's sum is not the CPU's, DeviceError without a GPU.
    """
    if n < 1:
        raise ValueError(f"{n} elements: give 1 and up")
    device = f"cuda:{number}"
    # So small that sums of floats are exact in any order.
    a = np.random.default_rng(1).integers(-8, 9, n).astype(dtype)
    limit = _core.bandwidth(number, max(_READ_BYTES, a.nbytes))["read"]
    every = kernels()
    for kernel in _progress("checked", every):
        _check(kernel, _fitting(kernel, a), device)
    steps = [_step(k, _fitting(k, a), device, repeats) for k in _progress("timed", every)]
    name = devices()[number]["name"]
    return Ladder(
        device=name, dtype=dtype, elements=n, repeats=repeats, read_limit=limit, steps=steps
    )


def _fitting(kernel: Kernel, a: Array) -> Array:
    return a[: kernel["limit"]] if kernel["limit"] else a


def _check(kernel: Kernel, a: Array, device: str) -> None:
    got = PUBLIC["sum"](a, device=device, kernel=kernel["name"])
    want = PUBLIC["sum"](a, device="cpu")
    if got != want:
        raise ArithmeticError(f"{kernel['name']}: {got} in place of {want}")


def _step(kernel: Kernel, a: Array, device: str, repeats: int) -> Step:
    times = _core.kernel_time(kernel["name"], "sum", a, device, repeats)
    seconds = statistics.median(times) / 1e3
    return Step(
        name=kernel["name"],
        section=kernel["section"],
        sentence=kernel["sentence"],
        elements=a.size,
        microseconds=seconds * 1e6,
        rate=a.nbytes / seconds,
    )


def _progress(what: str, items: list[Kernel]) -> Iterable[Kernel]:
    try:
        bar: Iterable[Kernel] = importlib.import_module("tqdm").tqdm(items, desc=what)
    except ModuleNotFoundError:
        return _counted(what, items)
    return bar


def _counted(what: str, items: list[Kernel]) -> Iterator[Kernel]:
    for i, item in enumerate(items):
        print(f"\r{what} {i}/{len(items)} {item['name']:30}", end="", file=sys.stderr, flush=True)
        yield item
    print(f"\r{what} {len(items)}/{len(items)}{'':31}", file=sys.stderr)


# --- how it is shown ------------------------------------------------------------------------------


def _cells(ladder: Ladder, step: Step) -> tuple[str, ...]:
    first = ladder["steps"][0]
    whole = step["elements"] == first["elements"]
    return (
        step["name"],
        f"{step['elements']:,}",
        f"{step['microseconds']:,.1f}",
        f"{step['rate'] / 1e9:,.1f}" if whole else "",
        f"{step['rate'] / ladder['read_limit']:.1%}" if whole else "",
        f"{first['microseconds'] / step['microseconds']:.2f}" if whole else "",
    )


def _about(ladder: Ladder) -> str:
    return (
        f"Sum of {ladder['elements']:,} {ladder['dtype']} on one {ladder['device']}, medians of "
        f"{ladder['repeats']} with cold caches; read limit {ladder['read_limit'] / 1e9:,.0f} GB/s."
    )


def why(ladder: Ladder, name: str) -> str:
    """The step's number, beside that of the step it is held against, and the reason for it."""
    times = {step["name"]: step["microseconds"] for step in ladder["steps"]}
    step = next(step for step in ladder["steps"] if step["name"] == name)
    before, reason = WHY[name]
    number = f"{times[name]:.1f} µs"
    if before:
        more = times[name] - times[before]
        number = f"{times[before] / times[name]:.2f} times as fast as {before}, {more:+,.1f} µs"
    wider = 2 if np.dtype(ladder["dtype"]) == np.int32 else 1  # of the copy's values: _notes()
    copy = wider * step["rate"] / ladder["read_limit"]
    return f"{number}: {reason.format(copy=copy, launch=times['single_warp'])}"


def _notes(ladder: Ladder) -> str:
    notes = (
        "Times are those of the launches, the copy that kernels in place work in not counted, GB/s "
        "those of the array."
    )
    if np.dtype(ladder["dtype"]) == np.int32:
        notes += " Sums of int32 are int64, and so that copy is twice as large as the array."
    return notes


def table(ladder: Ladder) -> str:
    """Plain text for a terminal."""
    lines, section = [_about(ladder), ""], ""
    lines.append(f"{_HEAD[0]:28}" + "".join(f"{name:>14}" for name in _HEAD[1:]))
    for step in ladder["steps"]:
        if step["section"] != section:
            section = step["section"]
            lines += ["", section]
        name, *numbers = _cells(ladder, step)
        lines.append(f"{name:28}" + "".join(f"{number:>14}" for number in numbers))
    return "\n".join([*lines, "", _notes(ladder)])


def markdown(ladder: Ladder) -> str:
    lines = ["# The ladder", "", _about(ladder), "", _notes(ladder), ""]
    lines.append("| " + " | ".join([*_HEAD, "what it teaches", "its number, and why"]) + " |")
    lines.append("|---|" + "---:|" * (len(_HEAD) - 1) + "---|---|")
    for step in ladder["steps"]:
        cells = [*_cells(ladder, step), step["sentence"], why(ladder, step["name"])]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def plot(ladder: Ladder, path: str | Path) -> None:
    """The chart as a file; kernels of one warp, which take 32 elements, are not in it."""
    matplotlib = _matplotlib()
    figure_class = importlib.import_module("matplotlib.figure").Figure
    steps = [step for step in ladder["steps"] if step["elements"] == ladder["elements"]]
    sections = list(dict.fromkeys(step["section"] for step in ladder["steps"]))
    colours = matplotlib.colormaps["tab10"].colors
    figure = figure_class(figsize=(9, 7), layout="constrained")
    axes = figure.subplots()
    for section, colour in zip(sections, colours, strict=False):
        there = [i for i, step in enumerate(steps) if step["section"] == section]
        if there:
            rates = [steps[i]["rate"] / 1e9 for i in there]
            bars = axes.barh(there, rates, color=colour, label=section)
            axes.bar_label(bars, fmt="{:,.0f}", padding=3, fontsize=8)
    axes.axvline(ladder["read_limit"] / 1e9, color="black", linestyle="--", label="read limit")
    axes.set_yticks(range(len(steps)), [step["name"] for step in steps])
    axes.invert_yaxis()
    axes.set_xlabel("GB/s of the array")
    axes.set_title(_about(ladder), fontsize=9)
    axes.margins(x=0.08)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)


def _matplotlib() -> Any:
    try:
        return importlib.import_module("matplotlib")
    except ModuleNotFoundError:
        sys.exit("the chart needs matplotlib: pip install matplotlib")


def run(
    *,
    n: int,
    dtype: str,
    device: int,
    repeats: int,
    plot_file: str | None,
    json_file: str | None,
    markdown_file: str | None,
) -> None:
    if plot_file:
        _matplotlib()
    ladder = measure(n, dtype, device, repeats)
    print(table(ladder))
    if json_file:
        Path(json_file).write_text(json.dumps(ladder, indent=1, ensure_ascii=False) + "\n")
    if markdown_file:
        Path(markdown_file).write_text(markdown(ladder))
    if plot_file:
        plot(ladder, plot_file)
