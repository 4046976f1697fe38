"""The package's stub file, made from the list of operators: __init__.pyi."""

import gpureduce
from gpureduce import functions

_HEAD = """\
from collections.abc import Callable
from typing import Any, SupportsIndex

from numpy.typing import ArrayLike, DTypeLike

from gpureduce import array_api as array_api
from gpureduce import warp as warp
from gpureduce import work_queue as work_queue
from gpureduce._core import DeviceArray, DeviceError, dtypes
from gpureduce.custom.decorator import operator
from gpureduce.custom.errors import OperatorError
from gpureduce.custom.laws import check_operator
from gpureduce.custom.operator import Operator
from gpureduce.functions import (
    devices,
    get_num_threads,
    isa,
    kernels,
    operators,
    reduce,
    reduceat,
    segments,
    set_num_threads,
)
from gpureduce.partial.accumulator import Accumulator
from gpureduce.partial.carrier import Partials
from gpureduce.partial.merging import fingerprint, finish, from_words, merge, words
from gpureduce.partial.take import partials

__version__: str
"""
_LINE = 100


def text() -> str:
    names = "".join(f'    "{name}",\n' for name in sorted(gpureduce.__all__))
    stub = f"{_HEAD}__all__ = [\n{names}]\n\n" + "".join(map(_function, functions.operators()))
    return stub.rstrip() + "\n"


def _function(op: functions.Operator) -> str:
    if not op["function"]:
        return ""
    parameters = ["a: ArrayLike", *map(_parameter, functions.signature(op))]
    parameters.append('device: str = "auto"')
    if op["takes_kernel"]:
        parameters.append("kernel: str | None = None")
    parameters.append("progress: bool | Callable[[int, int], object] = False")
    signature = f"def {op['name']}({', '.join(parameters)}) -> {_result(op)}: ..."
    if len(signature) > _LINE:
        signature = (
            f"def {op['name']}(\n    " + ",\n    ".join(parameters) + f",\n) -> {_result(op)}: ..."
        )
    alias = f"\n{op['alias']} = {op['name']}\n\n" if op["alias"] else ""
    return f"{signature}\n{alias}"


_TYPES = {
    "axis": "SupportsIndex | tuple[SupportsIndex, ...] | None = None",
    "dtype": "DTypeLike | None = None",
    "out": "Any = None",
    "ddof": "float = 0",
    "keepdims": "Any = ...",
}


def _parameter(name: str) -> str:
    return name if name == "*" else f"{name}: {_TYPES.get(name, 'Any = ...')}"


def _result(op: functions.Operator) -> str:
    return "Any" if op["results"] == 1 else "tuple[Any, Any]"
