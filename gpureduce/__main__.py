"""The command line: python -m gpureduce COMMAND."""

import argparse

import numpy as np

import gpureduce
from gpureduce import _core, demo, stubs


def info() -> None:
    devices, reason = _core.device_count()
    lines = {
        "gpureduce": gpureduce.__version__,
        "numpy": np.__version__,
        "cpu": f"{gpureduce.isa()}, {gpureduce.get_num_threads()} threads",
        "cuda": f"{devices} devices" if devices else f"none: {reason}",
        "operators": ", ".join(op["name"] for op in gpureduce.operators()),
        "dtypes": ", ".join(gpureduce.dtypes()),
    }
    for name, text in lines.items():
        print(f"{name:10} {text}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m gpureduce", description=gpureduce.__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("info", help="version, instruction set, threads and devices")
    command.set_defaults(run=lambda _: info())

    command = commands.add_parser("demo", help="every reduction of a file of numbers, beside NumPy")
    command.add_argument("file", nargs="?", help=".npy or a table of numbers; default: a real one")
    command.set_defaults(run=lambda arguments: demo.run(arguments.file))

    command = commands.add_parser("stubs", help="print the stub file of the package")
    command.set_defaults(run=lambda _: print(stubs.text(), end=""))

    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
