"""What each row of the table answers, as digests: so that a move, a rename or another engine proves
that it left every bit as it was.

--write makes tests/oracle.json anew, for a change that is meant to change answers. --code prints a
hash of each function of the module and of each kernel of a pack, their names aside: two builds of
which only names or places differ print the same hashes.
"""

import argparse
import hashlib
import json
import re
import struct
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from table import OPS, ROWS, call, numpy_dtype

from gpureduce import _core

DIGESTS = Path(__file__).with_suffix(".json")
# Shorter and longer than a vector, a cache line, a block of a tree, a small batch of rows.
SHAPES: list[tuple[int, ...]] = [
    (),
    (0,),
    (1,),
    (7,),
    (64,),
    (1031,),
    (3, 0, 2),
    (5, 1),
    (33, 65),
    (2, 300),
    (300, 2),
    (4, 5, 6),
    (3, 1, 130),
    (2, 3, 4, 5),
    (17, 257),
]


def words(count: int, seed: int) -> "np.ndarray[Any, np.dtype[np.uint64]]":
    """Random bits, the same in every version of NumPy: splitmix64."""
    with np.errstate(over="ignore"):
        z = np.arange(count, dtype=np.uint64) + np.uint64(seed * 0x2545F491 + 1)
        z *= np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def array(name: str, shape: tuple[int, ...], kind: str) -> Any:
    """near: of like size; wide: any bits; special: with NaN or NaT, infinities and -0.0."""
    dtype = numpy_dtype(name)
    count = int(np.prod(shape, dtype=np.int64))
    raw = words(2 * count + 1, len(name) + 7 * len(shape) + count)
    if dtype.kind == "b":
        return (raw[:count] % 3 == 0).reshape(shape)
    if kind == "near" and dtype.kind in "fcV":
        small = (raw[: 2 * count] >> np.uint64(40)).astype("f8") / 2.0**23 - 1
        made = small[:count] + (1j * small[count:] if dtype.kind == "c" else 0)
        return made.astype(dtype).reshape(shape)
    if kind == "near":
        small = (raw[:count] % 100).astype("i8")
        return (small.view(dtype) if dtype.kind in "mM" else small.astype(dtype)).reshape(shape)
    a = np.frombuffer(raw.tobytes(), dtype, count).reshape(shape).copy()
    if dtype.kind in "fcV":
        part = a.view(a.dtype.type(0).real.dtype) if shape else a.reshape(1).view()
        if dtype.kind != "c" or shape:
            part[~np.isfinite(part)] = 1
    if kind == "special" and count > 3:
        flat = a.reshape(-1)
        if dtype.kind in "fcV":
            flat[count // 2 :: 5], flat[1::7], flat[2::11] = np.nan, -0.0, np.inf
        elif dtype.kind in "mM":
            flat[count // 2 :: 5] = np.array("NaT", dtype)
    return a


def layouts(a: Any) -> Iterator[tuple[str, Any]]:
    """The same numbers as they may lie."""
    yield "C", a
    if a.ndim > 1:
        yield "F", np.asfortranarray(a)
    if a.ndim and a.size:
        apart = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)[..., ::2]
        apart[...] = a
        yield "apart", apart
        backwards = np.ascontiguousarray(a[..., ::-1])[..., ::-1]
        yield "backwards", backwards
        room = np.zeros(a.nbytes + 1, np.uint8)[1:].view()
        if a.dtype.kind != "V":
            odd = np.ndarray(a.shape, a.dtype.newbyteorder(), room.data)
            odd[...] = a
            yield "swapped and unaligned", odd


def axes_of(op: str, a: Any) -> list[Any]:
    axes: list[Any] = [None, *range(a.ndim)]
    if not OPS[op]["position"] and a.ndim > 2:
        axes += [(0, a.ndim - 1), (1, 2)]
    return axes


def answers(op: str, name: str) -> Iterator[bytes]:
    """All answers of a row, one after the other: bytes, dtype and shape, or what was raised."""
    for shape in SHAPES:
        for kind in ("near", "wide", "special"):
            a = array(name, shape, kind)
            masks = [None]
            if OPS[op]["takes_where"] and a.size:
                masks.append((words(a.size, 3) % 4 != 0).reshape(shape))
            for axis in axes_of(op, a):
                for mask in masks:
                    for _, view in layouts(a):
                        yield answer(op, view, axis, mask)


def answer(op: str, a: Any, axis: Any, mask: Any) -> bytes:
    given = {} if mask is None else {"where": mask}
    if mask is not None and OPS[op]["nonempty"]:
        given["initial"] = np.zeros(1, a.dtype)[0]
    try:
        results = call(op, a, axis=axis, **given)
    except (TypeError, ValueError) as error:
        return type(error).__name__.encode()
    made = b""
    for result in results if isinstance(results, tuple) else (results,):
        array = np.asarray(result)
        array = array.astype(array.dtype.newbyteorder("="))
        made += f"{array.dtype.name}{array.shape}".encode() + array.tobytes()
    return made


def digest(op: str, name: str) -> str:
    sha = hashlib.sha256()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for one in answers(op, name):
            sha.update(len(one).to_bytes(8, "little") + one)
    return sha.hexdigest()[:16]


def digests() -> dict[str, dict[str, str]]:
    made: dict[str, dict[str, str]] = {}
    for op, name, *_ in ROWS:
        made.setdefault(op, {})[name] = digest(op, name)
    return made


# --- code -----------------------------------------------------------------------------------------


def of_functions(module: Path) -> Iterator[tuple[str, str]]:
    """A function's name and the hash of its instructions without addresses and names."""
    command = ["objdump", "-d", "-C", "--no-show-raw-insn", "--no-addresses", str(module)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for part in re.split(r"\n\n(?=<)", text):
        head, _, body = part.partition(">:\n")
        code = re.sub(r"<[^\n]*>|# [^\n]*|-?0x[0-9a-f]+\(%rip\)|\b[0-9a-f]{4,}\b", "", body)
        yield head.lstrip("<"), hashlib.sha256(code.encode()).hexdigest()[:16]


def of_kernels(path: Path) -> Iterator[tuple[str, str]]:
    """A kernel's name and the hash of its machine code: what it calls comes behind it."""
    from gpureduce import pack

    there = pack.Pack(path)
    for key in there.kernels:
        image = there.find(key.hex()) or b""
        name, _, cubin = image.partition(b"\0")
        at, (size, count) = (
            struct.unpack_from("<Q", cubin, 40)[0],
            struct.unpack_from("<HH", cubin, 58),
        )
        sha = hashlib.sha256()
        for i in range(count):
            _, kind, flags, _, start, length = struct.unpack_from("<IIQQQQ", cubin, at + i * size)
            if kind == 1 and flags & 4:  # there in the file, and instructions
                sha.update(cubin[start : start + length])
        yield name.decode(), sha.hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="tests/oracle.json")
    action.add_argument("--code", action="store_true", help="print the hashes of functions")
    action.add_argument("--print", action="store_true", help="print the digests")
    given = parser.parse_args()
    if given.code:
        listed = list(of_functions(Path(_core.__file__)))
        for path in sorted(Path(_core.__file__).with_name("packs").glob("*.pack")):
            listed += of_kernels(path)
        for name, code in sorted(listed):
            print(code, name)
        return
    text = json.dumps(digests(), indent=1) + "\n"
    if given.write:
        DIGESTS.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
