"""The package's stub file, made from the list of operators: __init__.pyi."""

import gpureduce
from gpureduce import _core, functions

_HEAD = """\
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from gpureduce import warp as warp
from gpureduce import work_queue as work_queue
from gpureduce._core import DeviceError, dtypes
from gpureduce.functions import (
    devices,
    get_num_threads,
    isa,
    kernels,
    operators,
    reduce,
    set_num_threads,
)

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
    parameters = ["a: ArrayLike", "*", 'device: str = "auto"']
    if op["takes_kernel"]:
        parameters.append("kernel: str | None = None")
    if op["takes_initial"]:
        parameters.insert(2, "initial: Any = None")
    if op["takes_dtype"]:
        parameters.insert(2, "dtype: DTypeLike | None = None")
    result = f"-> {_result(op)}: ..."
    signature = f"def {op['name']}({', '.join(parameters)}) {result}"
    if len(signature) > _LINE:
        inside = f"    {', '.join(parameters)}"
        if len(inside) > _LINE:
            inside = "\n".join(f"    {parameter}," for parameter in parameters)
        signature = f"def {op['name']}(\n{inside}\n) {result}"
    alias = f"\n{op['alias']} = {op['name']}\n\n" if op["alias"] else ""
    return f"{signature}\n{alias}"


def _result(op: functions.Operator) -> str:
    """One type where all dtypes give the same."""
    results = {result for name, _, result, _ in _core.rows() if name == op["name"]}
    return f"np.{results.pop()}" if len(results) == 1 else "Any"
