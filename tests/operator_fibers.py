"""A device for users' operators that is the host: their kernels compiled by g++, their threads as
fibers (tests/c/operator_fibers.cpp), and memory of the host for a device's."""

import ctypes
import hashlib
import re
import subprocess
from pathlib import Path

import numpy as np
from arrays import SEED
from operator_walks import TEXTBOOK

from gpureduce import _core
from gpureduce.custom import launches

ROOT = Path(__file__).resolve().parent.parent
FLAGS = ["-std=gnu++17", "-Og", "-fwrapv", "-ffp-contract=off", "-shared", "-fPIC", "-w"]
# A device ends with an error where an address is not aligned. Its own handler tells of one, so that
# the sanitizer's library is not linked.
CHECKS = ["-fsanitize=alignment", "-c"]
# What a template keeps is of one operator: no two libraries may share it.
FLAGS += ["-fno-gnu-unique", "-fvisibility=hidden"]
# Compiled together: most of the time goes into what they share.
KERNELS = ", ".join(f"ladder::{kernel}<UserOperator>" for kernel in TEXTBOOK)
FAILURES = ["", "a barrier that not all threads reach", "an address that is not aligned"]


def shared(folder, header):
    """Of several libraries: what each begins with is read once, by a compiled header."""
    path, source = folder / "shared.h", ROOT / "tests/c/operator_fibers.cpp"
    if not path.exists():
        names = re.findall(r"^#include <.*>", source.read_text(), re.M)
        names += [f'#include "{ROOT}/kernels/{name}"' for name in ("gpu/as_host.h", header)]
        path.write_text("\n".join([*names, ""]))
        command = ["g++", *FLAGS, *CHECKS, "-x", "c++-header", path, "-o", f"{path}.gch"]
        subprocess.run(command, check=True)
    return ["-include", path]


class There:
    """An array on the device."""

    def __init__(self, array, read_only=False):
        self.array, self.read_only = array, read_only
        self.shape, self.dtype = array.shape, array.dtype


class Memory:
    def __init__(self, size):
        self.bytes = np.full(size + 64, 0x5A, np.uint8)
        self.address = -(-self.bytes.ctypes.data // 32) * 32


class Fibers:
    """Stands in for gpureduce._core's functions of devices."""

    def __init__(self, folder, multiprocessors=3):
        self.folder, self.processors = folder, multiprocessors
        self.libraries, self.launches = {}, []
        self.scratch = np.zeros(1 << 22, np.uint8)

    def install(self, patch):
        for name in dir(self):
            if name.startswith(("device_", "operator_")) or name == "multiprocessors":
                patch.setattr(_core, name, getattr(self, name))
        patch.setattr("gpureduce.libraries.of_its_kind", lambda array, like: array)

    def device_count(self):
        return 1, ""

    def multiprocessors(self, device):
        return self.processors

    def device_view(self, a, name):
        if not isinstance(a, There):
            return None
        x = a.array
        swapped = not x.dtype.isnative
        lies = x.ctypes.data, x.dtype.name, x.shape, x.strides
        return (*lies, 0, 7, swapped, a.read_only, True, a)

    def device_memory(self, device, stream, dtype, count):
        memory = Memory(count * np.dtype("u2" if dtype == "bfloat16" else dtype).itemsize)
        memory.dtype = dtype
        return memory

    def device_address(self, memory):
        return memory.address

    def device_put(self, device, stream, address, data):
        ctypes.memmove(address, data.ctypes.data, data.nbytes)

    def device_get(self, device, stream, address, data):
        ctypes.memmove(data.ctypes.data, address, data.nbytes)

    def device_mark(self, memory, stream):
        pass

    device_order = device_wait = lambda self, *_: None

    def device_shaped(self, memory, shape, strides):
        dtype = np.dtype("u2" if memory.dtype == "bfloat16" else memory.dtype)
        room = (ctypes.c_char * (memory.bytes.nbytes - 64)).from_address(memory.address)
        flat = np.frombuffer(room, dtype)
        found = np.lib.stride_tricks.as_strided(flat, shape, [s * dtype.itemsize for s in strides])
        return There(found.copy())

    def operator_program(self, header, defines, kernel):
        textbook = re.search(r"ladder::(\w+)", kernel)
        few = re.search(r"few<.*, (\d)>", kernel)
        unit = 0 if "staged" in kernel else 32 if "by_warps" in kernel else 1
        unit = TEXTBOOK.index(textbook[1]) if textbook else int(few[1]) if few else unit
        return defines, unit, bool(textbook)

    def library(self, text, textbook):
        if text not in self.libraries:
            name = hashlib.sha256(text.encode()).hexdigest()[:24]
            source, target = self.folder / f"{name}.h", self.folder / f"{name}.so"
            source.write_text(text)
            object = target.with_suffix(".o")
            command = ["g++", *FLAGS, *CHECKS, f'-DOPERATOR_TEXT="{source}"']
            if textbook:
                command += [f"-DOPERATOR_KERNELS={KERNELS}"]
            else:
                command += shared(self.folder, "gpu/operator.cuh")
            subprocess.run(
                [*command, ROOT / "tests/c/operator_fibers.cpp", "-o", object], check=True
            )
            subprocess.run(["g++", "-shared", object, "-o", target], check=True)
            self.libraries[text] = ctypes.CDLL(str(target))
        return self.libraries[text]

    def operator_launch(
        self, program, device, stream, args, blocks, threads, scratch, is_own, words, segments
    ):
        text, unit, textbook = program
        args, words = args.copy(), np.ascontiguousarray(words)
        own = np.zeros(scratch if is_own else 0, np.uint8)
        assert is_own or scratch <= self.scratch.nbytes
        at = words.ctypes.data
        args[14] = (own if is_own else self.scratch).ctypes.data  # as csrc/cuda/operator.c does
        args[15:17] = (at, at + 8 * segments) if segments else 0
        args[17] = at + 16 * segments if len(words) > 2 * segments else 0
        self.launches.append((unit, blocks, args.copy()))
        assert args.nbytes == 8 * launches.ARGUMENTS
        failed = self.library(text, textbook).launch(
            ctypes.c_void_p(args.ctypes.data), int(blocks), int(threads), unit, SEED & 0xFFFFFFFF
        )
        assert not failed, FAILURES[failed]
        assert not self.scratch[: 4 * 4096].any(), "tickets are left as they were"
