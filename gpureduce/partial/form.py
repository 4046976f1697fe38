"""Partials as bytes: little-endian, canonical, and telling what they are; see docs/partials.md."""

import struct

import numpy as np

from gpureduce.partial import trees
from gpureduce.partial.carrier import Partials, Words, checked
from gpureduce.partial.kinds import VERSION, Kind, dtype_of, kind_of
from gpureduce.partial.merging import canonical

MAGIC = b"GPRPART\n"
_HEAD = struct.Struct("<8sIIIIqqq")  # magic, version, kind, text, ndim, words of each, start, stop


def tobytes(p: Partials, function: str | None = None) -> bytes:
    """With the function that was asked for, or this one."""
    if p.kind.tree and not p.kind.tree.has_bytes:
        raise TypeError(
            f"gpureduce.Partials.tobytes: partials of a user's operator, {p.op}, are pickled: the "
            "operator has to travel with them"
        )
    asked = function or p.op
    text = p.kind.text.encode()
    if asked != p.kind.function:
        text += b"\0" + asked.encode()
    text += b"\0" * (-len(text) % 8)
    raw = canonical(checked(p, "Partials.tobytes")).raw
    head = _HEAD.pack(
        MAGIC, VERSION, p.kind.number, len(text), p.ndim, raw.shape[-1], p.start, p.stop
    )
    shape = struct.pack(f"<{p.ndim}q", *p.shape)
    return head + shape + text + np.ascontiguousarray(raw, "<i8").tobytes()


class _BadError(ValueError):
    """Why bytes are no partials."""


def _kind(text: str, number: int) -> Kind:
    """Of the words that name it."""
    what, _, dtype = text.partition(": ")[2].rpartition(" of ")
    if not text.startswith(f"gpureduce partials {VERSION}: ") or not what:
        raise _BadError(f"these are no partials of this version, {VERSION}, but {text!r}")
    try:
        kind = kind_of(what.removesuffix(" along the tree"), dtype_of(dtype), "Partials.frombytes")
    except (TypeError, ValueError, KeyError, SyntaxError):  # what NumPy makes of words of a dtype
        raise _BadError(
            f"partials of {what} of {dtype} are not known here; those of a user's operator are "
            "pickled"
        ) from None
    if kind.text != text or kind.number != number:
        raise _BadError(f"the kind {number} is not that of {text!r}: they are damaged")
    return kind


def frombytes(data: bytes, function: str = "Partials.frombytes") -> Partials:
    try:
        data = bytes(memoryview(data))
    except TypeError:
        raise TypeError(
            f"gpureduce.{function}: {type(data).__name__} is not bytes, which tobytes() gives"
        ) from None
    try:
        return _read(data, function)
    except _BadError as error:
        raise ValueError(f"gpureduce.{function}: {error}") from None


def _read(data: bytes, function: str) -> Partials:
    if len(data) < _HEAD.size:
        raise _BadError(f"{len(data)} bytes are cut short: the head alone has {_HEAD.size}")
    magic, version, number, length, ndim, words, start, stop = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise _BadError("these are no partials: they do not begin with GPRPART")
    if version != VERSION:
        if version == VERSION << 24:
            raise _BadError("they are of the other byte order: they have to be little-endian")
        raise _BadError(f"they are of version {version}, and this library knows {VERSION}")
    at = _HEAD.size + 8 * ndim + length
    if ndim > 64 or length > 1 << 16 or at > len(data):
        raise _BadError("they are cut short, or damaged")
    shape = struct.unpack_from(f"<{ndim}q", data, _HEAD.size)
    text, _, asked = data[at - length : at].decode(errors="replace").partition("\0")
    kind = _kind(text, number)
    op = asked.rstrip("\0") or kind.function
    if op not in kind.answers:
        raise _BadError(f"partials of {kind} do not answer {op!r}: they are damaged")
    if min((0, *shape)) < 0 or words < 0 or not 0 <= start <= stop:
        raise _BadError("a length is negative: they are damaged")
    raw = _words(kind, data[at:], (*shape, words), start, stop)
    return checked(Partials(kind, op, raw, start, stop), function)


def _words(kind: Kind, data: bytes, shape: tuple[int, ...], start: int, stop: int) -> Words:
    wanted = kind.words
    if kind.tree:
        each = sum(trees._words_of(kind))
        wanted = trees.VALUES + each * len(list(trees.cover(start, stop)))
    if shape[-1] != wanted:
        raise _BadError(f"{kind} has {wanted} words, not {shape[-1]}: they are damaged")
    size = 8
    for n in shape:
        size *= n
    if size != len(data):
        short = "cut short" if len(data) < size else "longer than they should be"
        raise _BadError(f"they are {short}: {len(data)} bytes of words, not {size}")
    return np.frombuffer(data, "<i8").astype(np.int64).reshape(shape)
