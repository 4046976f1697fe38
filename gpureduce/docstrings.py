"""The functions' help, in numpydoc's sections, made from the list of operators."""

from typing import TYPE_CHECKING

from gpureduce import _core

if TYPE_CHECKING:
    from gpureduce.lists import Operator

_PARAMETERS = {
    "axis": "{axes}, optional\n    What to reduce; negative numbers count from the last axis. The"
    "\n    default, None, is all axes.",
    "dtype": "dtype, optional\n    Convert each element to this dtype first; also the dtype of"
    " the\n    result. By default what ``numpy.{name}`` takes.",
    "out": "{outs} or ..., optional\n    Array of the result's shape to write the result to, cast"
    " to its dtype;\n    it is returned. ``...`` asks for an array in place of a scalar.",
    "ddof": "int or float, optional\n    Delta degrees of freedom: the divisor is ``n - ddof``.",
    "keepdims": "bool, optional\n    Keep the reduced axes in the result, with length 1.",
    "initial": "scalar, optional\n    Starting value of each output, in the result's dtype.",
    "where": "array_like of bool, optional\n    Mask that broadcasts against `a`: only elements"
    " where it is True count.",
    "mean": "array_like, optional\n    The means, if they are known, with the reduced axes kept as"
    " length 1.",
    "correction": "int or float, optional\n    Another name of `ddof`.",
}
_KERNEL = """\
kernel : str, optional
    Name of a textbook kernel, as listed by ``gpureduce.kernels()``. GPU
    only, for {dtypes}; float results of the
    others than "default" may differ in the last bits.
"""
_COMMON = """\
device : str or list of str, optional
    "cpu", "cuda", "cuda:N", "cuda:all", "all" or a list. "auto": where the
    array lies, or is fastest if large (docs/where.md). The bits are the same.
{kernel}progress : bool or callable, optional
    True shows a tqdm bar when the call takes longer than half a second;
    a callable is called as ``progress(done, total)``, in elements. For
    arrays in host memory.
"""
_DOC = """\
{sentence}

Parameters
----------
a : array_like
    Input of any shape, strides and byte order, in host or device memory.
{parameters}{common}
Returns
-------
{returns}

Raises
------
{raises}
See Also
--------
{also}

Notes
-----
{notes}{references}
Examples
--------
{examples}
"""
_RETURNS = {
    1: "scalar or ndarray\n    {result}A NumPy scalar if all axes are reduced, otherwise an array"
    " without\n    the reduced axes. The dtype is that of ``numpy.{numpy}``.",
    2: "tuple of two scalars or two ndarrays\n    {result}Least and greatest, in the shapes and"
    " dtypes of\n    ``numpy.{low}`` and ``numpy.{high}``.",
}
_TENSOR = "\n    With `axis`, arrays on a device give arrays of their own library, on that device."
_RAISES = """\
TypeError
    If the dtype of `a` or the `dtype` asked for is not supported.
ValueError
    If {value}.
numpy.exceptions.AxisError
    If an axis is out of bounds.
gpureduce.DeviceError
    If the device asked for is missing or fails.
"""
_VALUE = {
    "twice": "an axis is given twice",
    "out": "`out`{where} has the wrong shape",
    "empty": "`a` is empty along the reduced axes{unless}",
    "all_nan": "a slice is empty or all NaN",
}
_NOTES = {
    "exact": "The result is what infinite precision, rounded once to nearest even, would\n"
    "give [1]_, [2]_: the same bits for any layout, number of threads and device.\n",
    "tree": "Floats are multiplied along the perfect binary tree over the index in C\n"
    "order, neighbors first: the same bits for any layout, number of threads and\n"
    "device, though not those of NumPy's loop. Integers wrap around.\n",
    "free": "Any order of the elements gives the same bits.\n",
}
_REFERENCES = """
References
----------
.. [1] U. Kulisch and W. Miranker, "The arithmetic of the digital computer:
   a new approach", SIAM Review 28, 1986.
.. [2] S. Rump, T. Ogita, S. Oishi, "Accurate floating-point summation",
   SIAM J. Sci. Comput. 31, 2008.
"""
_LAWS = {name: law for name, dtype, _, law in _core.rows() if dtype == "float64"}

_START = ">>> import numpy as np\n>>> import gpureduce\n"
# By the function's name without "nan"; what skips NaN has one line more.
_EXAMPLES = {
    "sum": (
        ">>> gpureduce.sum([1e16, 1.0, -1e16])\nnp.float64(1.0)",
        ">>> gpureduce.sum([[1, 2], [3, 4]], axis=0)\narray([4, 6])",
    ),
    "prod": (
        ">>> gpureduce.prod([1.5, 2.0, 4.0])\nnp.float64(12.0)",
        ">>> gpureduce.prod([[1, 2], [3, 4]], axis=1)\narray([ 2, 12])",
    ),
    "min": (
        ">>> gpureduce.min([3.0, 1.0, 2.0])\nnp.float64(1.0)",
        ">>> gpureduce.min([[3, 1], [0, 2]], axis=1, keepdims=True)\narray([[1],\n       [0]])",
    ),
    "max": (
        ">>> gpureduce.max([3.0, 1.0, 2.0])\nnp.float64(3.0)",
        ">>> gpureduce.max([[3, 1], [0, 2]], axis=0)\narray([3, 2])",
    ),
    "argmin": (
        ">>> gpureduce.argmin([3.0, 1.0, 1.0])\nnp.int64(1)",
        ">>> gpureduce.argmin([[3, 1], [0, 2]], axis=1)\narray([1, 0])",
    ),
    "argmax": (
        ">>> gpureduce.argmax([3.0, 1.0, 3.0])\nnp.int64(0)",
        ">>> gpureduce.argmax([[3, 1], [0, 2]], axis=1)\narray([0, 1])",
    ),
    "mean": (
        ">>> gpureduce.mean([1e308, 1e308])\nnp.float64(1e+308)",
        ">>> gpureduce.mean([[1, 2], [3, 4]], axis=0)\narray([2., 3.])",
    ),
    "any": (
        ">>> gpureduce.any([0.0, 2.0])\nnp.True_",
        ">>> gpureduce.any([[True, False], [False, False]], axis=1)\narray([ True, False])",
    ),
    "all": (
        ">>> gpureduce.all([0.0, 2.0])\nnp.False_",
        ">>> gpureduce.all([[True, True], [False, True]], axis=0)\narray([False,  True])",
    ),
    "count_nonzero": (
        ">>> gpureduce.count_nonzero([0.0, 2.0, 3.0])\nnp.int64(2)",
        ">>> gpureduce.count_nonzero([[1, 0], [0, 0]], axis=0)\narray([1, 0])",
    ),
    "ptp": (
        ">>> gpureduce.ptp([3.0, 1.0, 2.5])\nnp.float64(2.0)",
        ">>> gpureduce.ptp([[3, 1], [0, 2]], axis=0)\narray([3, 1])",
    ),
    "minmax": (
        ">>> gpureduce.minmax([3.0, 1.0, 2.5])\n(np.float64(1.0), np.float64(3.0))",
        ">>> low, high = gpureduce.minmax([[3, 1], [0, 2]], axis=0)\n>>> high\narray([3, 2])",
    ),
    "argminmax": (
        ">>> gpureduce.argminmax([3.0, 1.0, 2.5])\n(np.int64(1), np.int64(0))",
        ">>> first, last = gpureduce.argminmax([[3, 1], [0, 2]], axis=1)\n>>> first\narray([1, 0])",
    ),
    "var": (
        ">>> gpureduce.var([0.1, 0.1, 0.1])\nnp.float64(0.0)",
        ">>> gpureduce.var([[1, 2], [3, 6]], axis=0, ddof=1)\narray([2., 8.])",
    ),
    "std": (
        ">>> gpureduce.std([1.0, 3.0])\nnp.float64(1.0)",
        ">>> gpureduce.std([[1, 2], [3, 6]], axis=0)\narray([1., 2.])",
    ),
}
# The same, of functions that skip NaN.
_NAN_EXAMPLES = {
    "sum": ">>> gpureduce.nansum([1.0, np.nan, 2.0])\nnp.float64(3.0)",
    "prod": ">>> gpureduce.nanprod([3.0, np.nan, 2.0])\nnp.float64(6.0)",
    "min": ">>> gpureduce.nanmin([3.0, np.nan, 2.0])\nnp.float64(2.0)",
    "max": ">>> gpureduce.nanmax([3.0, np.nan, 2.0])\nnp.float64(3.0)",
    "argmin": ">>> gpureduce.nanargmin([3.0, np.nan, 2.0])\nnp.int64(2)",
    "argmax": ">>> gpureduce.nanargmax([np.nan, 3.0, 2.0])\nnp.int64(1)",
    "mean": ">>> gpureduce.nanmean([1.0, np.nan, 2.0])\nnp.float64(1.5)",
    "var": ">>> gpureduce.nanvar([1.0, np.nan, 3.0])\nnp.float64(1.0)",
    "std": ">>> gpureduce.nanstd([1.0, np.nan, 3.0])\nnp.float64(1.0)",
}


def document(op: "Operator", names: list[str]) -> str:
    """The help of the operator's function, which takes parameters of these names."""
    name, many = op["name"], "int" if op["position"] else "int or tuple of ints"
    outs = "ndarray" if op["results"] == 1 else "tuple of two ndarrays"
    parameters = "".join(f"{key} : {_PARAMETERS[key]}\n" for key in names)
    kernel = _KERNEL.format(dtypes=", ".join(_core.kernel_dtypes())) if op["takes_kernel"] else ""
    law = _LAWS.get(name, "free")
    return _DOC.format(
        sentence=op["sentence"],
        parameters=parameters.format(axes=many, outs=outs, name=name),
        common=_COMMON.format(kernel=kernel),
        returns=_returns(op),
        raises=_raises(op, names),
        also=_also(op),
        notes=_NOTES[law],
        references=_REFERENCES if law == "exact" else "",
        examples=_examples(name),
    )


def _returns(op: "Operator") -> str:
    name = op["name"]
    return (
        _RETURNS[op["results"]].format(
            result="Position in C order.\n    " if op["position"] else "",
            numpy=name,
            low=name.replace("max", ""),
            high=name.replace("min", ""),
        )
        + _TENSOR
    )


def _raises(op: "Operator", names: list[str]) -> str:
    keys = ["twice"] + ["out"] * ("out" in names)
    if op["nonempty"]:
        keys.append("all_nan" if op["position"] and op["skips_nan"] else "empty")
    value = ",\n    or if ".join(_VALUE[key] for key in keys)
    return _RAISES.format(
        value=value.format(
            unless=" and `initial` is not given" if "initial" in names else "",
            where=" or `where`" if "where" in names else "",
        )
    )


def _also(op: "Operator") -> str:
    """The sibling that treats NaN the other way, and NumPy's function."""
    name = op["name"]
    if op["results"] > 1:
        return f"{name.replace('max', '')}, {name.replace('min', '')} : One of the two."
    other = name.removeprefix("nan") if op["skips_nan"] else f"nan{name}"
    about = "NaN propagates." if op["skips_nan"] else "NaN is skipped."
    sibling = f"{other} : {about}\n" if other.removeprefix("nan") in _NAN_EXAMPLES else ""
    return f"{sibling}numpy.{name} : The same function of NumPy."


def _examples(name: str) -> str:
    plain = name.removeprefix("nan")
    if plain != name:
        rest = _EXAMPLES[plain][1].replace(f"gpureduce.{plain}(", f"gpureduce.{name}(")
        return f"{_START}{_NAN_EXAMPLES[plain]}\n{rest}"
    return _START + "\n".join(_EXAMPLES[name])
