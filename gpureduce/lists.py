"""What the library has and what it runs on: operators, kernels, devices, threads."""

from typing import Any, TypedDict

import numpy as np

from gpureduce import _core


class Operator(TypedDict):
    """One row of kernels/abi/ops.h."""

    name: str
    ufunc: str
    alias: str
    sentence: str
    function: bool
    results: int
    takes_dtype: bool
    takes_initial: bool
    takes_where: bool
    takes_out: bool
    nonempty: bool
    position: bool
    spread: bool
    skips_nan: bool
    takes_kernel: bool
    matrices: bool


class Kernel(TypedDict):
    """One row of kernels/abi/ladder.h; limit is the most elements that it takes, or 0."""

    name: str
    sentence: str
    section: str
    limit: int
    in_order: bool
    in_place: bool
    second_launch: bool
    threads: tuple[int, int]
    unroll: int
    grid: str


class Device(TypedDict):
    """One CUDA device; sizes in bytes, clocks in hertz, versions as (major, minor)."""

    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    threads_per_multiprocessor: int
    bus_bits: int
    clock_hertz: int
    memory_clock_hertz: int
    memory_total: int
    memory_free: int
    l2_bytes: int
    shared_bytes: int
    driver: tuple[int, int]


def operators() -> list[Operator]:
    """List the operators: names, ufuncs, and what each takes.

    Returns
    -------
    list of dict
        With the keys name, ufunc, alias, sentence, function (whether it is a function of the
        package), results (1 or 2), and a bool for each thing that it takes or does.

    Examples
    --------
    >>> import gpureduce
    >>> [op["name"] for op in gpureduce.operators()][:3]
    ['sum', 'prod', 'min']
    """
    return _core.operators()


def dtypes() -> list[str]:
    """List the names of the dtypes that can be reduced.

    Returns
    -------
    list of str
        NumPy's names, and "bfloat16" of ml_dtypes.

    Examples
    --------
    >>> import gpureduce
    >>> gpureduce.dtypes()[-4:]
    ['complex64', 'complex128', 'datetime64', 'timedelta64']
    """
    return _core.dtypes()


def devices() -> list[Device]:
    """List the CUDA devices that can be used.

    ``python -m gpureduce info`` says why there is none.

    Returns
    -------
    list of dict
        With the keys name, compute_capability, multiprocessors and so on: sizes in bytes, clocks
        in hertz, versions as (major, minor). Empty where there is no device.

    Raises
    ------
    gpureduce.DeviceError
        If a device cannot be asked.

    Examples
    --------
    >>> import gpureduce
    >>> names = [device["name"] for device in gpureduce.devices()]
    """
    return _core.devices()


def kernels() -> list[Kernel]:
    """List the textbook kernels for ``kernel=``, from the first of the ladder to the library's own.

    Returns
    -------
    list of dict
        name is for ``kernel=``; sentence says what it teaches, section the texts' chapter; limit
        is the most elements that it takes, or 0; in_order says whether it keeps the order of the
        operands. threads are the least and the most of a block, and each takes unroll elements at
        a time; grid is "one" block, one for all "tiles" of so many, or as many as fill the
        "device"; second_launch says whether another launch folds the blocks' results. Kernels
        that are in_place work on a copy: no array is ever written.

    Examples
    --------
    >>> import gpureduce
    >>> [kernel["name"] for kernel in gpureduce.kernels()][:3]
    ['neighbored', 'neighbored_less', 'interleaved']
    """
    return _core.kernels()


def set_num_threads(n: int) -> None:
    """Set how many CPU threads one call may use.

    Parameters
    ----------
    n : int
        The number of threads, or 0 for the default: ``GPUREDUCE_NUM_THREADS``, or what the
        affinity mask and the cgroup quota allow.

    Raises
    ------
    ValueError
        If `n` is negative or too large.

    Examples
    --------
    >>> import gpureduce
    >>> gpureduce.set_num_threads(1)
    >>> gpureduce.get_num_threads()
    1
    >>> gpureduce.set_num_threads(0)
    """
    _core.set_num_threads(n)


def get_num_threads() -> int:
    """Return how many CPU threads one call may use.

    Returns
    -------
    int
        1 or more.

    Examples
    --------
    >>> import gpureduce
    >>> gpureduce.get_num_threads() >= 1
    True
    """
    return _core.get_num_threads()


def isa() -> str:
    """Return the instruction set that the CPU code runs on.

    Returns
    -------
    str
        "v4" (AVX-512), "v3" (AVX2) or "plain". The results do not depend on it.

    Examples
    --------
    >>> import gpureduce
    >>> gpureduce.isa() in ("v4", "v3", "plain")
    True
    """
    return _core.isa()


def name_given(op: Any) -> str | None:
    """The name of NumPy's ufunc or function or of ours, or what was given as one; of any other
    object, which may be called like one of these and do something else, None."""
    home = (getattr(op, "__module__", None) or "").partition(".")[0]
    if isinstance(op, np.ufunc) or (callable(op) and home in ("numpy", "gpureduce")):
        op = getattr(op, "__name__", None)
    return op if isinstance(op, str) else None
