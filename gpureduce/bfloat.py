"""bfloat16, which NumPy learns of ml_dtypes."""

import importlib
from typing import Any

import numpy as np


def bfloat16() -> np.dtype[Any]:
    """Whoever has such an array, or names the dtype, is asked for ml_dtypes, and nobody else."""
    try:
        found: np.dtype[Any] = np.dtype(importlib.import_module("ml_dtypes").bfloat16)
    except ImportError:
        raise ModuleNotFoundError(
            "gpureduce: NumPy has no bfloat16 of its own, ml_dtypes brings it: pip install "
            "ml_dtypes",
            name="ml_dtypes",
        ) from None
    return found
