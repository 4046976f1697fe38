"""The functions that operators may call: math.h's, and the same by Python's and NumPy's names."""

from typing import NamedTuple

import numpy as np

from gpureduce.custom.scalars import BOOL, Scalar


class Function(NamedTuple):
    """Of floats of one type. Those that are exact give the same bits everywhere; c is math.h's
    name, or what kernels' own arithmetic.h has in its place."""

    arity: int
    exact: bool
    numpy: str
    result: Scalar | None = None
    integers: tuple[int, ...] = ()  # arguments that are int


EXACT = {
    "sqrt": Function(1, True, "sqrt"),
    "fabs": Function(1, True, "abs"),
    "floor": Function(1, True, "floor"),
    "ceil": Function(1, True, "ceil"),
    "trunc": Function(1, True, "trunc"),
    "rint": Function(1, True, "rint"),
    "round": Function(1, True, ""),
    "fmin": Function(2, True, ""),
    "fmax": Function(2, True, ""),
    "fdim": Function(2, True, ""),
    "fmod": Function(2, True, "fmod"),
    "copysign": Function(2, True, ""),
    "fma": Function(3, True, ""),
    "ldexp": Function(2, True, "ldexp", None, (1,)),
    "isnan": Function(1, True, "isnan", BOOL),
    "isinf": Function(1, True, "isinf", BOOL),
    "isfinite": Function(1, True, "isfinite", BOOL),
    "signbit": Function(1, True, "", BOOL),
}
_INVERTED = ("sin", "cos", "tan", "sinh", "cosh", "tanh")
_PLAIN = (*_INVERTED, "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt")
# The host's C library and a device's differ in these functions' last bits.
ROUNDED = {
    **{name: Function(1, False, name) for name in _PLAIN},
    **{f"a{name}": Function(1, False, f"arc{name}") for name in _INVERTED},
    **{name: Function(1, False, "") for name in ("erf", "erfc", "tgamma", "lgamma")},
    "pow": Function(2, False, "power"),
    "hypot": Function(2, False, "hypot"),
    "atan2": Function(2, False, "arctan2"),
}  # fmt: skip
FUNCTIONS = {**EXACT, **ROUNDED}

CONSTANTS: dict[str, float | int] = {
    "INFINITY": float("inf"),
    "HUGE_VAL": float("inf"),
    "NAN": float("nan"),
    "M_PI": np.pi,
    "M_E": np.e,
    "DBL_MAX": float(np.finfo("f8").max),
    "DBL_MIN": float(np.finfo("f8").tiny),
    "DBL_EPSILON": float(np.finfo("f8").eps),
    "FLT_MAX": float(np.finfo("f4").max),
    "FLT_MIN": float(np.finfo("f4").tiny),
    "FLT_EPSILON": float(np.finfo("f4").eps),
    "INT_MAX": 2**31 - 1,
    "INT_MIN": -(2**31),
    "INT32_MAX": 2**31 - 1,
    "INT32_MIN": -(2**31),
    "UINT32_MAX": 2**32 - 1,
    "INT64_MAX": 2**63 - 1,
    "INT64_MIN": -(2**63),
    "UINT64_MAX": 2**64 - 1,
    "true": True,
    "false": False,
}
FLOAT_CONSTANTS = {"INFINITY", "NAN", "FLT_MAX", "FLT_MIN", "FLT_EPSILON"}  # of type float


class Named(NamedTuple):
    """What a name in a text calls: the function, and whether it is float's form of it."""

    function: str
    is_single: bool


def in_c(name: str) -> Named | None:
    """sqrt is double's and sqrtf float's; isnan and its like are of both."""
    if name in FUNCTIONS:
        return Named(name, False)
    if name.endswith("f") and name[:-1] in FUNCTIONS and FUNCTIONS[name[:-1]].result is None:
        return Named(name[:-1], True)
    return None


# What Python's math and NumPy call otherwise.
IN_PYTHON = {
    **{entry.numpy: name for name, entry in FUNCTIONS.items() if entry.numpy},
    **{name: name for name in FUNCTIONS if name not in ("round", "rint")},
    "absolute": "fabs",
    "abs": "fabs",
    "fabs": "fabs",
    "gamma": "tgamma",
    "rint": "rint",
    "atan2": "atan2",
}
