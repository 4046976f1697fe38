"""The reductions' commands: gpureduce sum FILE, of .npy and .npz files, tables and raw numbers."""

import argparse
import contextlib
import io
import math
import os
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import gpureduce
from gpureduce import tables, written
from gpureduce.bfloat import bfloat16
from gpureduce.lists import Operator

Array = NDArray[Any]
_MAGIC = b"\x93NUMPY"
# What else np.load() raises for headers that are no Python, or not the one that it expects,
_HEADER = (RecursionError, SyntaxError, TypeError, tokenize.TokenError)
# and for what is behind them or around them.
_DAMAGED = (EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


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
        found = tuple(map(int, text.split(",")))
    except ValueError:
        raise ValueError(f"{option} {text}: give integers with commas between them") from None
    if any(abs(n) >= 2**63 for n in found):
        raise ValueError(f"{option} {text}: integers of 64 bits would do")
    return found


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
            f"{path}: --shape and --offset are for raw numbers, together with --dtype; a .npy or "
            ".npz file or a table takes neither"
        )
    if path == "-":
        return _of_stdin()
    if path.lower().endswith(".npz"):
        return npz(path, given.key)
    if given.key:
        raise ValueError(f"--key is of .npz files, and {path} is none")
    if tables.is_table(path):
        table, header = tables.read(path)
        if header:
            print(f"{path}: the first line is taken as a header: {header[:60]}", file=sys.stderr)
        return tables.checked(path, table)
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
    with _told("stdin"):
        array: Array = np.load(io.BytesIO(data))
    return array


def npz(path: str, key: str | None) -> Array:
    if _is_npy(path):
        raise ValueError(f"{path} is a .npy file, no .npz: give it a name that ends in .npy")
    with _told(path), open(path, "rb") as data, np.load(data) as file:
        names = list(file)
        if key in names or (key is None and len(names) == 1):
            array: Array = file[key or names[0]]
            return array
    if not names:
        raise ValueError(f"{path}: there are no arrays in it")
    raise ValueError(f"{path} holds {', '.join(names)}: say which with --key")


def load(path: str, mode: Literal["r"] | None = None) -> Array:
    with _told(path):
        array: Array = np.load(path, mode)
    return array


@contextlib.contextmanager
def _told(name: str) -> Iterator[None]:
    """np.load() has many words for what is wrong with a file."""
    try:
        yield
    except _HEADER:
        raise ValueError(f"{name}: a damaged header") from None
    except _DAMAGED as error:
        raise ValueError(f"{name}: damaged or cut off: {error}") from None
    except ValueError as error:
        text = f"{error}"
        if "pickled" in text:  # as NumPy takes what it does not know for
            text = "neither a .npy nor an .npz file"
        elif "Object arrays" in text or "Python objects" in text:
            text = "arrays of Python objects are not reduced: save it as an array of numbers"
        raise ValueError(f"{name}: {text}") from None


def _raw(given: argparse.Namespace) -> Array:
    dtype = _dtype(given.dtype)
    if given.file == "-":
        data = sys.stdin.buffer.read()
        _check_raw("stdin", data.startswith(_MAGIC))
        shape = _shape(given, dtype, len(data))
        return np.frombuffer(data, dtype, math.prod(shape), given.offset).reshape(shape)
    _check_raw(given.file, _is_npy(given.file))
    shape = _shape(given, dtype, Path(given.file).stat().st_size)
    if not math.prod(shape):
        return np.empty(shape, dtype)  # nothing cannot be mapped
    return np.memmap(given.file, dtype, "r", given.offset, shape)


def _check_raw(name: str, is_npy: bool) -> None:
    if is_npy:
        kind = "a .npy file"
    elif name.lower().endswith(".npz"):
        kind = "an .npz file"
    elif tables.is_table_only(name):
        kind = "a table"
    else:
        return
    raise ValueError(f"{name} is {kind}, and --dtype is for raw numbers: give it without --dtype")


def _shape(given: argparse.Namespace, dtype: np.dtype[Any], size: int) -> tuple[int, ...]:
    """Of raw numbers in so many bytes; one length of -1 is what is left for it."""
    there = size - given.offset
    if given.offset < 0 or there < 0:
        raise ValueError(f"--offset {given.offset}: {given.file} has {size:,} bytes, 0 to {size}")
    shape = _integers("--shape", given.shape) if given.shape else (there // dtype.itemsize,)
    if shape.count(-1) > 1 or min(shape) < -1 or (-1 in shape and 0 in shape):
        raise ValueError(
            f"--shape {given.shape}: one length may be -1, for what is left, where none is 0; no "
            "other is negative"
        )
    if -1 in shape:
        rest = -math.prod(shape) * dtype.itemsize
        shape = tuple(there // rest if one == -1 else one for one in shape)
    if math.prod(shape) * dtype.itemsize != there:
        raise ValueError(
            f"{given.file}: {there:,} bytes after the offset of {given.offset:,}, and {dtype} of "
            f"shape {shape} takes {math.prod(shape) * dtype.itemsize:,}"
        )
    return shape


def _dtype(text: str) -> np.dtype[Any]:
    known = gpureduce.dtypes()
    with contextlib.suppress(TypeError):
        dtype = bfloat16() if text == "bfloat16" else np.dtype(text)
        if dtype.name.split("[")[0] in known:
            return dtype
    raise ValueError(f"--dtype {text} is not one of {', '.join(known)}")
