"""The reductions' commands: python -m gpureduce sum FILE, of .npy files and of raw numbers."""

import argparse
import contextlib
import importlib
import math
import os
import tokenize
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import gpureduce
from gpureduce.lists import Operator

Array = NDArray[Any]
_MAGIC = b"\x93NUMPY"
# What else np.load() raises for headers that are no Python, or not the one that it expects.
_DAMAGED = (EOFError, RecursionError, SyntaxError, TypeError, tokenize.TokenError)


def add_commands(commands: Any) -> None:
    for op in gpureduce.operators():
        if op["function"]:
            _add_command(commands, op)


def _add_command(commands: Any, op: Operator) -> None:
    aliases = [op["alias"]] if op["alias"] else []
    command = commands.add_parser(op["name"], aliases=aliases, help=op["sentence"])
    command.add_argument("file", metavar="FILE", help=".npy, or with --dtype raw numbers")
    command.add_argument("--dtype", help="of raw numbers, as NumPy writes it: float32, >i2, ...")
    command.add_argument("--shape", metavar="N,N", help="of raw numbers (default: all, in a row)")
    command.add_argument("--offset", type=int, default=0, help="bytes before the raw numbers")
    command.add_argument("--axis", action="append", metavar="N[,N]", help="axes (default: all)")
    command.add_argument("--keepdims", action="store_true", help="keep reduced axes, of length 1")
    command.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    if op["spread"]:
        command.add_argument("--ddof", type=float, default=0, help="divide by n - DDOF")
    command.add_argument("--out", metavar="FILE.npy", help="write the result there")
    command.add_argument("--progress", action="store_true", help="show tqdm's bar of long work")
    command.set_defaults(run=lambda arguments: _run(op, arguments))


def _run(op: Operator, given: argparse.Namespace) -> None:
    if given.out and not Path(given.out).parent.is_dir():
        raise ValueError(f"--out {given.out}: there is no such directory")
    options = _options(op, given)
    a = _npy(given) if given.dtype is None else _raw(given)
    try:
        result = getattr(gpureduce, op["name"])(a, **options)
    except TypeError as error:  # of what the file holds
        raise ValueError(error) from None
    if not given.out:
        print(*(result if op["results"] > 1 else [result]), sep="\n")
        return
    with open(given.out, "wb") as file:  # of two results one array
        np.save(file, np.asarray(result))


def _options(op: Operator, given: argparse.Namespace) -> dict[str, Any]:
    names = ["keepdims", "device", "progress"] + ["ddof"] * op["spread"]
    axes = _integers("--axis", ",".join(given.axis)) if given.axis else None
    if op["position"] and axes and len(axes) > 1:
        raise ValueError(f"{op['name']} takes one --axis, not {len(axes)}")
    axis = axes[0] if axes and len(axes) == 1 else axes
    return {"axis": axis, **{name: getattr(given, name) for name in names}}


def _integers(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(map(int, text.split(",")))
    except ValueError:
        raise ValueError(f"{option} {text}: give integers with commas between them") from None


def _is_npy(path: str) -> bool:
    if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
        raise ValueError(f"{path} is a pipe or a device, not a file that can be mapped into memory")
    with open(path, "rb") as file:
        head = file.read(len(_MAGIC))
        if head and not os.fstat(file.fileno()).st_size:
            raise ValueError(f"{path} is made as it is read, not mapped: give a copy of it")
        return head == _MAGIC


def _npy(given: argparse.Namespace) -> Array:
    if not _is_npy(given.file):
        raise ValueError(f"{given.file} is no .npy file; raw numbers need their --dtype")
    if given.shape or given.offset:
        raise ValueError(f"--shape and --offset are of raw numbers, and {given.file} is an .npy")
    return load(given.file, "r")


def load(path: str, mode: Literal["r"] | None = None) -> Array:
    """np.load(), which has many words for what is wrong with a file."""
    try:
        array: Array = np.load(path, mode)
    except (ValueError, *_DAMAGED) as error:
        raise ValueError(f"{path}: {error or 'a damaged header'}") from None
    return array


def _raw(given: argparse.Namespace) -> Array:
    if _is_npy(given.file):
        raise ValueError(f"{given.file} is an .npy file, which says what it holds: without --dtype")
    dtype = _dtype(given.dtype)
    there = Path(given.file).stat().st_size - given.offset
    shape: tuple[int, ...] = (there // dtype.itemsize,)
    if given.shape:
        shape = _integers("--shape", given.shape)
    if given.offset < 0 or min(shape) < 0 or math.prod(shape) * dtype.itemsize != there:
        raise ValueError(
            f"{given.file}: the file has {there:,} bytes after the offset of {given.offset:,}, and "
            f"{dtype} of shape {shape} has {math.prod(shape) * dtype.itemsize:,}"
        )
    if not there:
        return np.empty(shape, dtype)  # nothing cannot be mapped
    return np.memmap(given.file, dtype, "r", given.offset, shape)


def _dtype(text: str) -> np.dtype[Any]:
    known = gpureduce.dtypes()
    with contextlib.suppress(ImportError, TypeError):
        if text == "bfloat16":
            importlib.import_module("ml_dtypes")  # teaches NumPy the name
        dtype = np.dtype(text)
        if dtype.name.split("[")[0] in known:
            return dtype
    raise ValueError(f"--dtype {text} is not one of {', '.join(known)}")
