"""NumPy's reductions on the GPU and the CPU, with answers that never depend on how they ran.

Floating-point sums, means and variances are exact and rounded once; products fold along one tree
over the index; everything else does not depend on the order. The same bits on any device, with any
number of threads, in any layout. See the functions' own help; ``gpureduce.operators()`` lists them.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

try:
    from gpureduce import _core as _core
except ImportError as error:
    from importlib.machinery import EXTENSION_SUFFIXES
    from pathlib import Path

    if not any(Path(__file__).with_name(f"_core{end}").exists() for end in EXTENSION_SUFFIXES):
        raise ImportError(
            "this is gpureduce's source folder, without its compiled module: work in another "
            "directory, or build it here (pip install -e .)"
        ) from error
    raise

from gpureduce import environment as _environment
from gpureduce import functions as _functions
from gpureduce._core import DeviceArray, DeviceError
from gpureduce.functions import reduce, reduceat, segments
from gpureduce.lists import (
    devices,
    dtypes,
    get_num_threads,
    isa,
    kernels,
    operators,
    set_num_threads,
)

_environment.check()
__version__: str = _core.__version__
# Users' operators are a fifth of the time that the import would take; many need none.
_LATE = {
    "Accumulator": "partial.accumulator",
    "Operator": "custom.operator",
    "OperatorError": "custom.errors",
    "Partials": "partial.carrier",
    "check_operator": "custom.laws",
    "fingerprint": "partial.merging",
    "finish": "partial.merging",
    "from_words": "partial.merging",
    "merge": "partial.merging",
    "operator": "custom.decorator",
    "partials": "partial.take",
    "words": "partial.merging",
}
__all__ = [
    "DeviceArray",
    "DeviceError",
    "devices",
    "dtypes",
    "get_num_threads",
    "isa",
    "kernels",
    "operators",
    "reduce",
    "reduceat",
    "segments",
    "set_num_threads",
    *_LATE,
    *_functions.PUBLIC,
]

globals().update(_functions.PUBLIC)

_MODULES = ("array_api", "warp", "work_queue")


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _import_module(f"gpureduce.{name}")
    if name not in _LATE:
        raise AttributeError(f"module 'gpureduce' has no attribute {name!r}")
    module = _import_module(f"gpureduce.{_LATE[name]}")
    globals()[name] = value = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_LATE})
