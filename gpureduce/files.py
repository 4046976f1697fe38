"""The reductions' commands: gpureduce sum FILE, of .npy and .npz files, tables and raw numbers."""

import argparse
import contextlib
import importlib
import io
import math
import os
import sys
import tokenize
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import gpureduce
from gpureduce import tables, written
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
    command.add_argument(
        "file",
        metavar="FILE",
        help=".npy, .npz, .csv, .tsv, .txt, or with --dtype raw numbers; - for stdin",
    )
    command.add_argument("--dtype", help="of raw numbers, as NumPy writes it: float32, >i2, ...")
    command.add_argument("--shape", metavar="N,N", help="of raw numbers (default: all, in a row)")
    command.add_argument("--offset", type=int, default=0, help="bytes before the raw numbers")
    command.add_argument("--axis", action="append", metavar="N[,N]", help="axes (default: all)")
    command.add_argument("--keepdims", action="store_true", help="keep reduced axes, of length 1")
    command.add_argument(
        "--device", default="auto", help="auto, cpu, cuda, cuda:N, cuda:all or all"
    )
    if op["spread"]:
        command.add_argument("--ddof", type=float, default=0, help="divide by n - DDOF")
    command.add_argument("--key", metavar="NAME", help="which array of an .npz file")
    command.add_argument("--format", choices=written.FORMATS, help="default: one number a line")
    command.add_argument("--out", metavar="FILE", help="write to a .npy, .csv, .json or .txt file")
    command.add_argument("--progress", action="store_true", help="show tqdm's bar of long work")
    command.set_defaults(run=lambda arguments: _run(op, arguments))


def _run(op: Operator, given: argparse.Namespace) -> None:
    form = written.chosen(given.out, given.format)
    options = _options(op, given)
    a = _array(given) if given.dtype is None else _raw(given)
    try:
        result = getattr(gpureduce, op["name"])(a, **options)
    except TypeError as error:  # of what the file holds
        raise ValueError(error) from None
    written.write(result, form, given.out)


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


def _array(given: argparse.Namespace) -> Array:
    """What says itself what it holds."""
    path = given.file
    if given.shape or given.offset:
        raise ValueError(
            f"--shape and --offset are of raw numbers, which need their --dtype; {path}"
        )
    if path == "-":
        return _of_stdin()
    if path.lower().endswith(".npz"):
        return _npz(path, given.key)
    if given.key:
        raise ValueError(f"--key is of .npz files, and {path} is none")
    if tables.is_table(path):
        return tables.checked(path, tables.read(path)[0])
    if not _is_npy(path):
        raise ValueError(f"{path} is no .npy file; raw numbers need their --dtype")
    return load(path, "r")


def _of_stdin() -> Array:
    data = sys.stdin.buffer.read()
    if not data.startswith(_MAGIC):
        raise ValueError(
            "stdin is no .npy file; raw numbers need their --dtype, and a table of numbers is read "
            "from a file: .csv, .tsv, .txt"
        )
    array: Array = np.load(io.BytesIO(data))
    return array


def _npz(path: str, key: str | None) -> Array:
    with np.load(path) as file:
        names = list(file)
        if key is None and len(names) == 1:
            key = names[0]
        if key not in names:
            raise ValueError(f"{path} holds {', '.join(names) or 'nothing'}: say which with --key")
        array: Array = file[key]
    return array


def load(path: str, mode: Literal["r"] | None = None) -> Array:
    """np.load(), which has many words for what is wrong with a file."""
    try:
        array: Array = np.load(path, mode)
    except (ValueError, *_DAMAGED) as error:
        raise ValueError(f"{path}: {error or 'a damaged header'}") from None
    return array


def _raw(given: argparse.Namespace) -> Array:
    dtype = _dtype(given.dtype)
    if given.file == "-":
        data = sys.stdin.buffer.read()
        shape = _shape(given, dtype, len(data))
        return np.frombuffer(data, dtype, math.prod(shape), given.offset).reshape(shape)
    if _is_npy(given.file):
        raise ValueError(f"{given.file} is an .npy file, which says what it holds: without --dtype")
    shape = _shape(given, dtype, Path(given.file).stat().st_size)
    if not math.prod(shape):
        return np.empty(shape, dtype)  # nothing cannot be mapped
    return np.memmap(given.file, dtype, "r", given.offset, shape)


def _shape(given: argparse.Namespace, dtype: np.dtype[Any], size: int) -> tuple[int, ...]:
    """Of raw numbers in so many bytes; one length of -1 is what is left for it."""
    there = size - given.offset
    if given.offset < 0 or there < 0:
        raise ValueError(f"--offset {given.offset}: {given.file} has {size:,} bytes, 0 to {size}")
    shape = _integers("--shape", given.shape) if given.shape else (there // dtype.itemsize,)
    if shape.count(-1) == 1:
        rest = -math.prod(shape) * dtype.itemsize
        shape = tuple(there // rest if one == -1 and rest else one for one in shape)
    if min(shape) < 0 or math.prod(shape) * dtype.itemsize != there:
        raise ValueError(
            f"{given.file}: {there:,} bytes after the offset of {given.offset:,}, and {dtype} of "
            f"shape {shape} takes {math.prod(shape) * dtype.itemsize:,}"
        )
    return shape


def _dtype(text: str) -> np.dtype[Any]:
    known = gpureduce.dtypes()
    with contextlib.suppress(ImportError, TypeError):
        if text == "bfloat16":
            importlib.import_module("ml_dtypes")  # teaches NumPy the name
        dtype = np.dtype(text)
        if dtype.name.split("[")[0] in known:
            return dtype
    raise ValueError(f"--dtype {text} is not one of {', '.join(known)}")
