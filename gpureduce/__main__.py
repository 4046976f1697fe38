"""The command line: gpureduce COMMAND, or python -m gpureduce COMMAND."""

import argparse
import os
import re
import sys
import warnings
from collections.abc import Iterator
from typing import NoReturn

import numpy as np

import gpureduce
from gpureduce import _core, cache, demo, files, ladder, land, stubs
from gpureduce.lists import Device

MIB = 1 << 20
# What is told in a line: of files, devices and what was asked for.
EXPECTED = (
    gpureduce.DeviceError,
    ArithmeticError,
    ImportError,
    MemoryError,
    OSError,
    ValueError,
)


def speeds() -> Iterator[tuple[str, str]]:
    """What device="auto" goes by: name and text of each line."""
    name = "auto"
    for kind, found in _core.speeds().items():
        text = "not measured yet: the CPU, or --measure"
        if found is not None:
            rates = (f"{who} {found[key] / 1e9:.1f}" for key, who in _WHO.items())
            text = f"{', '.join(rates)} GB/s: {found['best']}"
        yield name, f"{kind:9}{text}"
        name = ""


_WHO = {"cpu": "CPU", "devices": "devices", "all": "both"}
_MEASURED = 1536 * MIB  # of each kind of memory


def info(measure: bool = False) -> None:
    if measure:
        _core.measure_speeds(_MEASURED)
    devices, reason = _core.device_count()
    vectors = {"v3": " (AVX2)", "v4": " (AVX-512)"}.get(gpureduce.isa(), "")
    lines = {
        "gpureduce": gpureduce.__version__,
        "numpy": np.__version__,
        "cpu": f"{gpureduce.isa()}{vectors}, {gpureduce.get_num_threads()} threads",
        "cuda": f"{devices} devices" if devices else f"none: {reason}",
        "operators": ", ".join(op["name"] for op in gpureduce.operators()),
        "dtypes": ", ".join(gpureduce.dtypes()),
    }
    for name, text in (*lines.items(), *(speeds() if devices else ()), *cache.described()):
        print(f"{name:10} {text}")
    for number, device in enumerate(gpureduce.devices()):
        print(f"cuda:{number:<5} {device['name']}")
        for what, text in described(device):
            print(f"{'':10} {what:16} {text}")


def described(device: Device) -> list[tuple[str, str]]:
    """The device query's lines."""

    def version(pair: tuple[int, int]) -> str:
        return f"{pair[0]}.{pair[1]}"

    multiprocessors = (
        f"{device['multiprocessors']} of {device['threads_per_multiprocessor']} threads"
    )
    return [
        ("capability", version(device["compute_capability"])),
        ("multiprocessors", f"{multiprocessors}, {device['clock_hertz'] / 1e6:.0f} MHz"),
        ("memory", f"{device['memory_total'] / MIB:,.0f} MiB"),
        ("memory free", f"{device['memory_free'] / MIB:,.0f} MiB"),
        ("memory bus", f"{device['bus_bits']} bits, {device['memory_clock_hertz'] / 1e6:.0f} MHz"),
        ("L2 cache", f"{device['l2_bytes'] / MIB:g} MiB"),
        ("shared memory", f"{device['shared_bytes'] / 1024:g} KiB a block"),
        ("driver", version(device["driver"])),
    ]


TRANSFERS = {
    "to_device_pinned": "host to device, pinned",
    "to_device_pageable": "host to device, pageable",
    "to_host_pinned": "device to host, pinned",
    "to_host_pageable": "device to host, pageable",
    "on_device": "device to device, read and written",
    "read": "device, read only",
}


def bandwidth(mebibytes: int, device: int) -> None:
    rates = _core.bandwidth(device, mebibytes * MIB)
    print(f"cuda:{device}, {mebibytes:,} MiB, medians")
    for key, text in TRANSFERS.items():
        print(f"{text:36}{rates[key] / 1e9:10,.1f} GB/s")


def climb(arguments: argparse.Namespace) -> None:
    given = {name: value for name, value in vars(arguments).items() if name != "run"}
    ladder.run(**given)


class Parser(argparse.ArgumentParser):
    """Of the words that it does not know it tells as of all else: gpureduce: COMMAND: what."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog.replace(' ', ': ')}: {message}\n")


def main() -> None:
    parser = Parser(prog="gpureduce", description=gpureduce.__doc__)
    parser.add_argument("--version", action="version", version=f"%(prog)s {gpureduce.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("info", help="version, instruction set, threads and devices")
    command.add_argument(
        "--measure", action="store_true", help='measure again what device="auto" goes by'
    )
    command.set_defaults(run=lambda arguments: info(arguments.measure))

    command = commands.add_parser("bandwidth", help="what memory and its copies come to on a GPU")
    command.add_argument("--size", type=int, default=1024, metavar="MIB")
    command.add_argument("--device", type=int, default=0, metavar="N", help="cuda:N")
    command.set_defaults(run=lambda arguments: bandwidth(arguments.size, arguments.device))

    command = commands.add_parser("ladder", help="the textbook kernels on a GPU: checked, timed")
    command.add_argument("--n", type=int, default=1 << 24, help="elements (default: %(default)s)")
    command.add_argument("--dtype", choices=_core.kernel_dtypes(), default="int32")
    command.add_argument("--device", type=int, default=0, metavar="N", help="cuda:N")
    command.add_argument("--repeats", type=int, default=101, help="times of which the median is")
    for kind, what in (("plot", "a chart of the"), ("json", "the"), ("markdown", "a table of the")):
        command.add_argument(
            f"--{kind}", dest=f"{kind}_file", metavar="FILE", help=f"write {what} results there"
        )
    command.set_defaults(run=climb)

    command = commands.add_parser("demo", help="reductions of a file of numbers, beside NumPy")
    command.add_argument(
        "file", nargs="?", help=".npy, .npz or a table of numbers; default: a real one"
    )
    command.add_argument("--key", metavar="NAME", help="which array of an .npz file")
    land.add_picture(command)
    command.set_defaults(run=lambda given: demo.run(given.file, given.picture, given.key))

    command = commands.add_parser("stubs", help="print what type checkers read of the package")
    command.add_argument("file", nargs="?", choices=stubs.FILES, default="__init__.pyi")
    command.set_defaults(run=lambda arguments: print(stubs.FILES[arguments.file](), end=""))

    land.add_command(commands)
    cache.add_command(commands)
    files.add_commands(commands)

    words = sys.argv[1:]
    arguments = parser.parse_args(joined(words))
    begin = f"gpureduce: {words[0]}: "
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print(
                f"{begin}{as_words(message)}", file=sys.stderr
            )
            arguments.run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        parser.exit(130)
    except BrokenPipeError:  # whoever read has seen enough
        drop_output()
        parser.exit(1)
    except EXPECTED as error:
        try:
            sys.stdout.flush()
        except OSError:
            drop_output()
        text = re.sub(rf"^(gpureduce\.)?{re.escape(words[0])}: ", "", as_words(error))
        parser.exit(1, f"{begin}{text}\n")


def as_words(told: object) -> str:
    """What the library advises in Python, as it is given here."""
    return re.sub(r'\bdevice="([\w:]+)"', r"--device \1", f"{told}")


def drop_output() -> None:
    """What could not be written: Python would else try again at its end, and say so."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def joined(words: list[str]) -> list[str]:
    """--shape -1,512 as --shape=-1,512, which argparse takes for no option."""
    found: list[str] = []
    for word in words:
        if re.match(r"-\d", word) and found and found[-1] in ("--shape", "--axis", "--offset"):
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


if __name__ == "__main__":
    main()
