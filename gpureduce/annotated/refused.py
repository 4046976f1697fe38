"""Arrays of a meaning that is not known here, which NumPy's conversion would drop."""

from collections.abc import Mapping
from typing import Any

from gpureduce.annotated.given import refused


def reduce(name: str, a: Any, given: Mapping[str, Any]) -> Any:
    refused(name, a, "is more than an array, and would lose what it is", "numpy.asarray() of it")
