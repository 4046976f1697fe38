"""Packs: the compiled kernels that a release carries, a file for each architecture.

A pack is a head of a line, an index and blocks of kernels that resemble each other, each compressed
by xz. A kernel is found by its key, which changes with all that it was made of, so that a pack of
other sources is the same as none.
"""

import functools
import lzma
import os
import struct
import threading
from collections.abc import Iterable

FOLDER: str | os.PathLike[str] = os.path.join(os.path.dirname(__file__), "packs")
MAGIC = b"gpureduce pack 1\n"
_COUNTS = struct.Struct("<II")  # blocks, kernels
_BLOCK = struct.Struct("<QQ")  # where it lies, its bytes
_KERNEL = struct.Struct("<16sIII")  # key, block, where in it, bytes
# A block is read as far as a kernel lies in it, 3 to 4 ms for each MiB. With blocks of 2 MiB a pack
# was 6.0 MB, with blocks of 4 MiB 5.6, with these 5.4.
BLOCK_BYTES = 8 << 20
BLOCKS_OPEN: int | None = 2  # None: all
# An instruction has 16 bytes, and images begin where one may: xz then looks at the place in it, and
# a pack is 6 % smaller.
ALIGNED = 16
FILTER = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "pb": 4, "lp": 3, "lc": 1}


class Block:
    """A block's kernels, read as far as they were asked for."""

    def __init__(self, packed: bytes):
        self.packed = packed
        self.data = b""
        self.reader = lzma.LZMADecompressor()

    def get(self, start: int, size: int) -> bytes:
        while (missing := start + size - len(self.data)) > 0:
            if self.reader.eof or (self.reader.needs_input and not self.packed):
                raise ValueError("a pack is cut short")
            self.data += self.reader.decompress(self.packed, missing)
            self.packed = b""
        return self.data[start : start + size]


class Pack:
    """A pack's index; blocks are read when they are asked for."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = path
        with open(path, "rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ValueError(f"{path} is no pack")
            blocks, kernels = _COUNTS.unpack(file.read(_COUNTS.size))
            self.blocks = list(_BLOCK.iter_unpack(file.read(blocks * _BLOCK.size)))
            index = file.read(kernels * _KERNEL.size)
        self.kernels = {key: place for key, *place in _KERNEL.iter_unpack(index)}
        self._block = functools.lru_cache(BLOCKS_OPEN)(self._open)
        self._lock = threading.Lock()

    def _open(self, number: int) -> Block:
        start, size = self.blocks[number]
        with open(self.path, "rb") as file:
            file.seek(start)
            return Block(file.read(size))

    def find(self, key: str) -> bytes | None:
        """The kernel's image: its lowered name, a zero, what the driver takes."""
        place = self.kernels.get(bytes.fromhex(key))
        if place is None:
            return None
        block, start, size = place
        with self._lock:
            return self._block(block).get(start, size)


_open: dict[str, Pack | None] = {}


def of(arch: str) -> Pack | None:
    """The pack for "sm_90", or None."""
    if arch not in _open:
        try:
            _open[arch] = Pack(os.path.join(FOLDER, f"{arch}.pack"))
        except (OSError, ValueError, struct.error):
            _open[arch] = None
    return _open[arch]


def find(arch: str, key: str) -> bytes | None:
    """A kernel's image, or None where there is no pack that has it."""
    there = of(arch)
    return there.find(key) if there else None


def _compressed(block: bytes) -> bytes:
    return lzma.compress(block, filters=[FILTER])


def write(path: str | os.PathLike[str], kinds: Iterable[Iterable[tuple[str, bytes]]]) -> None:
    """Makes a pack of kinds of kernels, (key, image) each: of a kind they resemble each other, and
    come one behind the other as they are given, the often needed first."""
    blocks: list[bytes] = []
    index: list[tuple[bytes, int, int, int]] = []
    for kind in kinds:
        block = bytearray()
        for key, image in kind:
            if block and len(block) + len(image) > BLOCK_BYTES:
                blocks.append(bytes(block))
                block = bytearray()
            block += bytes(-(len(block) + image.find(0) + 1) % ALIGNED)  # behind the name
            index.append((bytes.fromhex(key), len(blocks), len(block), len(image)))
            block += image
        blocks.append(bytes(block))
    from concurrent.futures import ThreadPoolExecutor  # which takes as long as reading a kernel

    with ThreadPoolExecutor() as pool:
        packed = list(pool.map(_compressed, blocks))
    start = len(MAGIC) + _COUNTS.size + len(packed) * _BLOCK.size + len(index) * _KERNEL.size
    os.makedirs(os.path.dirname(path), exist_ok=True)
    aside = f"{os.fspath(path)}.part"
    with open(aside, "wb") as file:
        file.write(MAGIC + _COUNTS.pack(len(packed), len(index)))
        for one in packed:
            file.write(_BLOCK.pack(start, len(one)))
            start += len(one)
        for row in index:
            file.write(_KERNEL.pack(*row))
        file.writelines(packed)
    os.replace(aside, path)
