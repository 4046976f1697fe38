"""Calls that are wrong: what NumPy raises for each, and a word that the message has to have.

(function, arguments after the array, keyword arguments, array, word). The function is called of
gpureduce and, where it has one of that name, of NumPy, whose exception's type is the standard.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Call(NamedTuple):
    """numpy: what NumPy is asked where its function has another form; False: it has none."""

    name: str
    array: Any
    given: dict[str, Any]
    word: str
    numpy: Callable[[], Any] | bool = True


A = np.arange(6.0).reshape(2, 3)
READ_ONLY = np.zeros(3)
READ_ONLY.flags.writeable = False


class Index:
    def __index__(self):
        raise ZeroDivisionError("of the index")


# What every function is asked.
EVERY = {
    "axis is too large": ({"axis": 2}, "axis 2"),
    "axis is too small": ({"axis": -3}, "axis -3"),
    "axis is no number": ({"axis": "x"}, "axis: 'str'"),
    "axis is a float": ({"axis": 1.0}, "axis: 'float'"),
    "axis is far too large": ({"axis": 2**70}, ""),
    "axis fails": ({"axis": Index()}, "of the index"),
    "an argument that is none": ({"axes": 0}, "axes"),
}
OF_UFUNCS = {
    "axes are twice": ({"axis": (0, -2)}, "duplicate"),
    "one axis is too large": ({"axis": (0, 5)}, "axis 5"),
    "axes are of other things": ({"axis": (0, "x")}, "axis: 'str'"),
    "axes are a list": ({"axis": [0, 1]}, "axis: 'list'"),
}
OUT = {
    "out is of another shape": ({"axis": 0, "out": np.zeros(2)}, "shape"),
    "out has dimensions": ({"out": np.zeros(2)}, "shape"),
    "out is a list": ({"axis": 0, "out": [0.0, 0.0, 0.0]}, "list"),
    "out is a number": ({"out": 1.0}, "float"),
    "out is read only": ({"axis": 0, "out": READ_ONLY}, "read-only"),
}
MASK = {
    "the mask has another length": ({"where": [True, False]}, "where"),
    "the mask has more dimensions": ({"where": np.ones((1, 2, 3), bool)}, "where"),
    "the mask is of floats": ({"where": np.ones((2, 3))}, "where: "),
}
DTYPE = {
    "a dtype that is none": ({"dtype": "nonsense"}, "dtype: data type 'nonsense'"),
    "a dtype of text": ({"dtype": "U3"}, ""),
    "a dtype of objects": ({"dtype": "V3"}, "V3"),
}
ARRAYS = {
    "text": (np.array(["a", "b"]), "<U1"),
    "bytes": (np.array([b"a"]), "S1"),
    "fields": (np.zeros(3, "i4,f4"), "f0"),
    "ragged lists": ([[1.0], [1.0, 2.0]], "inhomogeneous"),
    "a dict": ({1: 2}, "dict"),
    "a generator": ((i for i in ()), "generator"),
    "None": (None, "NoneType"),
    "large integers": ([2**70], "int"),
}
EMPTY = {
    "nothing": (np.zeros(0), {}, ""),
    "an axis of nothing": (np.zeros((3, 0)), {"axis": 1}, ""),
}


def numpys(name: str, a: Any, given: dict[str, Any]) -> Callable[[], Any]:
    return lambda: getattr(np, name)(a, **given)


def calls() -> dict[str, Call]:
    found = {}

    def add(label: str, name: str, a: Any, given: dict[str, Any], word: str, **more: Any) -> None:
        found[f"{name}: {label}"] = Call(name, a, given, word, **more)

    for name in ("sum", "mean", "max", "argmax", "std", "any", "count_nonzero", "nanmax", "nanvar"):
        for label, (given, word) in EVERY.items():
            add(label, name, A, given, word)
    for name in ("sum", "min", "all", "var", "nanmean"):
        for label, (given, word) in OF_UFUNCS.items():
            add(label, name, A, given, word)
    for name in ("sum", "mean", "max", "any", "nanmin", "nanprod"):
        for label, (given, word) in OUT.items():
            add(label, name, A, given, word)
    for name in ("prod", "mean", "any", "std", "nansum"):
        for label, (given, word) in MASK.items():
            add(label, name, A, given, word)
    for name in ("sum", "mean", "nanprod", "var"):
        for label, (given, word) in DTYPE.items():
            add(label, name, A, given, word, numpy="text" not in label and "objects" not in label)
    for name in ("sum", "mean", "var", "nanmax"):
        for label, (a, word) in ARRAYS.items():
            add(label, name, a, {}, word, numpy=label == "ragged lists")
    for name in ("max", "argmin", "ptp", "nanmin", "nanargmax"):
        for label, (a, given, word) in EMPTY.items():
            add(label, name, a, given, word)
    add("ddof is text", "var", A, {"ddof": "x"}, "str")
    add("ddof and correction", "std", A, {"ddof": 1, "correction": 1}, "simultaneously")
    add("the mean is text", "var", A, {"mean": "x"}, "mean ")
    add("the mean has another shape", "std", A, {"mean": np.zeros(9)}, "the mean: ")
    add("the mask is None", "mean", A, {"where": None}, "where")
    add("initial is text", "sum", A, {"initial": "x"}, "initial: ")
    add("initial is a list", "max", A, {"initial": [1, 2, 3]}, "initial: ")
    add("a mask without initial", "min", A, {"where": A > 1}, "initial")
    add("axes of a position", "argmax", A, {"axis": (0, 1)}, "tuple")
    add("keepdims is text", "sum", A, {"keepdims": "x"}, "keepdims: 'str'")
    add("all NaN", "nanargmin", np.array([np.nan]), {}, "NaN")
    add("times are added", "sum", np.zeros(2, "M8[s]"), {}, "datetime64")
    add("times are multiplied", "prod", np.zeros(2, "m8[s]"), {}, "timedelta64")
    add("units of time", "sum", np.zeros(2, "m8[ms]"), {"dtype": "m8[s]"}, "unit")
    for label, device in {
        "gpu": "gpu",
        "a number": 0,
        "nothing": "",
        "one too many": "cuda:99999999999",
    }.items():
        add(f"device is {label}", "sum", A, {"device": device}, "device", numpy=False)
    add("a kernel that is none", "sum", A, {"kernel": "fast"}, "'fast'", numpy=False)
    add(
        "a kernel of the CPU",
        "sum",
        A,
        {"kernel": "neighbored", "device": "cpu"},
        "neighbored",
        numpy=False,
    )
    for label, op in {"unknown": "plus", "a function": len, "a ufunc of one": np.sin}.items():
        add(f"the operator is {label}", "reduce", A, {"op": op}, "give one of", numpy=False)
    add(
        "bits of floats",
        "reduce",
        A,
        {"op": "bitwise_xor"},
        "float64",
        numpy=lambda: np.bitwise_xor.reduce(A),
    )
    add(
        "offsets are beyond",
        "reduceat",
        A,
        {"offsets": [0, 9], "op": "add"},
        "9",
        numpy=lambda: np.add.reduceat(A, [0, 9]),
    )
    add(
        "offsets are negative",
        "reduceat",
        A,
        {"offsets": [-1], "op": "add"},
        "-1",
        numpy=lambda: np.add.reduceat(A, [-1]),
    )
    add(
        "no dimension",
        "reduceat",
        1.0,
        {"offsets": [0], "op": "add"},
        "",
        numpy=lambda: np.add.reduceat(1.0, [0]),
    )
    add(
        "lengths differ",
        "segments",
        A,
        {"starts": [0], "stops": [1, 2], "op": "add"},
        "",
        numpy=False,
    )
    add(
        "beyond the end",
        "segments",
        A,
        {"starts": [0], "stops": [3], "op": "add"},
        "3",
        numpy=False,
    )
    add(
        "an empty one",
        "segments",
        A,
        {"starts": [1], "stops": [1], "op": "max"},
        "initial",
        numpy=False,
    )
    return found


CALLS = calls()
# Of what NumPy has not: an expression, the exception, and a word that the message has to have. A is
# an array of shape (2, 3), P the partials of its sums along the first axis, `plus` an operator; D
# is an array of Dask, Z one of zarr, X one of xarray, R one of PyArrow, F and S of pandas.
OTHERS = {
    "g.Operator('f99', combine='a + b')": (ValueError, "f99"),
    "g.Operator('O', combine='a + b')": (ValueError, "object"),
    "g.Operator('f8', combine='a +')": (ValueError, "column 4"),
    "g.Operator('f8', combine='a + q')": (ValueError, "no q"),
    "g.Operator('f8', combine='system(a)')": (ValueError, "system"),
    "g.Operator('n: i8, m: f8', combine='n = a.n + b.n')": (ValueError, "lift"),
    "g.Operator('m: f8[40]', combine='m[0] = a.m[0]')": (ValueError, "320 bytes"),
    "g.Operator('f8', combine='a + b', identity='zz')": (ValueError, "identity"),
    "g.Operator('f8', combine='a + b', finish='q')": (ValueError, "finish"),
    "g.Operator('f8', combine=3)": (TypeError, "int"),
    "g.operator(len)": (TypeError, "len"),
    "g.operator()(lambda a, b: a + b)": (ValueError, "source cannot be read"),
    "plus(np.array(['a']))": (TypeError, "<U1"),
    "plus()": (TypeError, "not 0"),
    "plus(A, A)": (TypeError, "not 2"),
    "plus(A, axis=5)": (IndexError, "axis 5"),
    "plus(A, axis='x')": (TypeError, "not 'x'"),
    "plus(A, device='gpu')": (ValueError, "'gpu'"),
    "plus(A, device=['cpu'])": (TypeError, "list"),
    "plus(A, where=np.ones(7, bool))": (ValueError, "(7,)"),
    "plus({1: 2})": (TypeError, "object"),
    "plus(np.ma.array([1.0, 2.0], mask=[0, 1]))": (TypeError, "MaskedArray"),
    "plus(S)": (TypeError, "Series"),
    "g.Operator('f8', combine='a + b')(np.zeros(0))": (ValueError, "identity"),
    "g.check_operator('add', [1.0])": (TypeError, "'add'"),
    "g.check_operator(plus, [])": (ValueError, "sample"),
    "g.reduce(A, g.Operator)": (ValueError, "give one of"),
    "g.reduceat(A, [9], plus)": (IndexError, "9"),
    "g.segments(A, [0], [7], plus)": (IndexError, "[0, 7)"),
    "g.segments(A, ['x'], [1], 'add')": (TypeError, "<U1"),
    "g.segments(A, [0.5], [1], 'add')": (TypeError, "float64"),
    "g.partials(A, 'median')": (ValueError, "'median'"),
    "g.partials(A, 'sum', axis=3)": (IndexError, "axis 3"),
    "g.partials(np.array(['a']), 'sum')": (TypeError, "<U1"),
    "g.partials(A, 'sum', where=np.ones(9, bool))": (ValueError, "(9,)"),
    "g.partials(np.ma.array([1.0, 2.0], mask=[0, 1]), 'sum')": (TypeError, "masked"),
    "g.partials(A, 'prod', where=np.ones(9, bool))": (ValueError, "partials: where of shape (9,)"),
    "g.partials(A, 'sum', where=A)": (TypeError, "partials: where must be of bool, not float64"),
    "g.partials(A, 'prod', axis=5)": (IndexError, "gpureduce.partials: axis 5"),
    "g.partials(A, 'sum', axis='a')": (TypeError, "gpureduce.partials: axis must be an integer"),
    "g.partials(A, 'prod', axis=(0, 1.5))": (TypeError, "partials: axis must be an integer"),
    "g.partials(A, 'prod', axis=True)": (TypeError, "a tuple, not True"),
    "g.partials(A, 'sum', axis=(0, -2))": (ValueError, "gpureduce.partials: duplicate value"),
    "g.partials(A, 'argmin', axis=(0, 1))": (TypeError, "axis of argmin must be an integer"),
    "g.partials(A, 'prod', offset=1.5)": (TypeError, "offset must be an integer, not 1.5"),
    "g.partials(A, 'argmin', offset='a')": (TypeError, "offset must be an integer, not 'a'"),
    "g.partials(A, 'argmin', offset=(0, 'a'), whole=(9, 9))": (TypeError, "offset must be an int"),
    "g.partials(A, 'argmin', offset=(0, 0), whole='a')": (TypeError, "whole must be an integer"),
    "g.partials(A, 'argmin', offset=(0, 0), whole=9)": (ValueError, "whole (9,)"),
    "g.partials(A, 'argmin', 0, offset=0, whole=(9, 9))": (ValueError, "along axis 0 offset alone"),
    "g.partials(A, 'prod', offset=2**63)": (ValueError, "offset 9223372036854775808 is too large"),
    "g.partials(A, 'prod', offset=2**63 - 6)": (ValueError, "up to 9223372036854775801 would do"),
    "g.partials(A[0], plus, offset=2**70)": (ValueError, "partials: offset 1180591620717411303424"),
    "g.partials(A, 'sum', offset='a')": (TypeError, "offset must be an integer, not 'a'"),
    "g.partials(A, 'sum', offset=-1)": (ValueError, "offset -1 is negative"),
    "g.partials(A, 'sum', whole=(9, 9))": (TypeError, "partials: sum takes no whole"),
    "g.partials(A, 'prod', offset=(0, 1), whole=(9, 9))": (TypeError, "prod takes no whole"),
    "g.partials(A[0], plus, whole=(9, 9))": (TypeError, "takes no whole"),
    "g.partials(A, plus, axis=5)": (IndexError, "gpureduce.partials: axis 5"),
    "g.partials(A[0], plus, offset=1.5)": (TypeError, "offset must be an integer, not 1.5"),
    "g.merge([])": (ValueError, "no partials"),
    "g.merge(P, axis='a')": (TypeError, "gpureduce.merge: axis must be an integer"),
    "g.merge([A, A])": (TypeError, "ndarray"),
    "g.merge([P, g.partials(A.astype(int), 'sum', axis=0)])": (ValueError, "int64"),
    "g.merge([P, g.partials(A, 'sum', axis=1)])": (ValueError, "(2,)"),
    "g.merge(P, axis=4)": (IndexError, "axis 4"),
    "g.finish(A)": (TypeError, "ndarray"),
    "g.finish(P, 'median')": (ValueError, "'median'"),
    "g.finish(P, 'var')": (ValueError, "sum, mean"),
    "g.finish(g.partials(A, 'var'), ddof='1')": (TypeError, "ddof must be a real number, not str"),
    "g.merge(None)": (TypeError, "gpureduce.merge: NoneType"),
    "g.merge([P, 3])": (TypeError, "gpureduce.merge: int"),
    "g.mpi.allreduce(None, A, 'sum')": (TypeError, "gpureduce.mpi.allreduce: comm is NoneType"),
    "g.words(A)": (TypeError, "ndarray"),
    "g.from_words(g.words(P), 'var', 'f8')": (ValueError, "209 words"),
    "g.from_words(g.words(P) * 1.0, 'sum', 'f8')": (ValueError, "float64"),
    "g.from_words(g.words(P) * 3 + 1, 'sum', 'f8')": (ValueError, "damaged"),
    "g.from_words(3, 'sum', 'f8')": (ValueError, "75 words"),
    "g.Partials.frombytes(b'nonsense')": (ValueError, "8 bytes"),
    "g.Partials.frombytes(P.tobytes()[:-3])": (ValueError, "cut short"),
    "g.Partials.frombytes(None)": (TypeError, "gpureduce.Partials.frombytes: NoneType"),
    "g.Partials.frombytes('abc')": (TypeError, "str is not bytes"),
    "g.Accumulator('median')": (ValueError, "'median'"),
    "g.Accumulator('sum', 3).add(A[:, :2])": (ValueError, "(2, 2)"),
    "g.Accumulator('sum', 3).add(A, where=[True] * 2)": (ValueError, "add: where of shape (2,)"),
    "g.Accumulator('sum', 'a')": (TypeError, "gpureduce.Accumulator: shape must be an integer"),
    "g.Accumulator('sum', (2, 1.5))": (TypeError, "shape must be an integer, or several"),
    "g.Accumulator('sum', (2, -1))": (ValueError, "shape (2, -1) has a negative length"),
    "g.sum(A, device=[])": (ValueError, "[]"),
    "g.sum(A, device=['cpu', 'gpu'])": (ValueError, "'gpu'"),
    "g.sum(A, device='cuda:x')": (ValueError, "'cuda:x'"),
    "g.sum(A, device=None)": (ValueError, "None"),
    "g.sum(A, progress=3)": (TypeError, "gpureduce.sum: progress 3"),
    "g.sum(A, progress=[])": (TypeError, "progress []"),
    "g.set_num_threads(-1)": (ValueError, "-1 threads"),
    "g.warp.shift_up(np.arange(4), 2, width=5)": (ValueError, "width is 5"),
    "g.work_queue.segment_sums(np.array(['a']), [0])": (TypeError, "<U1"),
    "g.array_api.sum(A, dtype='U3')": (TypeError, "<U3"),
    "g.array_api.mean(np.ones(2, int))": (TypeError, "int64"),
    "g.sum(D, axis=5)": (IndexError, "axis 5"),
    "g.sum(D, axis='a')": (TypeError, "gpureduce.sum: axis must be an integer"),
    "g.argmin(D, axis=(0, 1))": (TypeError, "gpureduce.argmin: axis must be an integer"),
    "g.sum(D, out=np.zeros(()))": (TypeError, "out"),
    "g.sum(D, device='gpu')": (ValueError, "'gpu'"),
    "g.sum(D, dtype='U3')": (TypeError, "<U3"),
    "g.sum(D, keepdims=None)": (TypeError, "NoneType"),
    "g.var(D, ddof='x')": (TypeError, "gpureduce.var: ddof must be a real number, not str"),
    "g.sum(D, kernel='gmem')": (TypeError, "kernel"),
    "g.sum(D, where=np.ones(7, bool))": (ValueError, "(7,)"),
    "g.sum(Z, keepdims='x')": (TypeError, "str"),
    "g.sum(Z, axis=7)": (IndexError, "axis 7"),
    "g.sum(Z, where=np.ones(9, bool))": (ValueError, "(9,)"),
    "g.sum(Z, axis=0, out=np.zeros(4))": (TypeError, "out"),
    "g.sum(R)": (TypeError, "type string"),
    "g.sum(X, axis=5)": (IndexError, "axis 5"),
    "g.sum(X, axis=0, out=np.zeros(3))": (TypeError, "out"),
    "g.sum(F, axis=0)": (TypeError, "str|object"),
    "g.sum(F[['a']], axis=0, out=np.zeros(1))": (TypeError, "out="),
    "g.sum(S, keepdims=True)": (TypeError, "keepdims="),
    "g.sum(S, axis=1)": (IndexError, "axis 1"),
    "g.sum(S.astype('category'))": (TypeError, "category"),
}
# Of the command: words, and one that the message has to have.
COMMANDS = {
    "sum nowhere.npy": "nowhere.npy",
    "sum .": "directory",
    "sum a.npy --axis 7": "axis 7",
    "sum a.npy --axis x": "--axis x",
    "sum a.npy --axis 99999999999999999999": "--axis 99999999999999999999",
    "cache warm --arch x": "give 90",
    "argmax a.npy --axis 0,1": "one --axis",
    "sum a.npy --dtype f4": ".npy file",
    "sum a.npy --shape 2,3": "--dtype",
    "sum a.npy --offset 3": "--dtype",
    "sum a.npy --device gpu": "'gpu'",
    "sum a.npy --out nowhere/x.npy": "directory",
    "sum a.npy --out x.png": ".npy, .csv, .json, .txt",
    "sum a.npy --format npy": "--out",
    "sum a.npy --key a": ".npz",
    "sum two.npz": "--key",
    "sum two.npz --key c": "a, b",
    "sum raw.bin": "--dtype",
    "sum raw.bin --dtype nonsense": "nonsense",
    "sum raw.bin --dtype f8 --shape 5": "takes 40",
    "sum raw.bin --dtype f8 --shape -1,-1": "--shape -1,-1",
    "sum raw.bin --dtype f8 --shape x": "--shape x",
    "sum raw.bin --dtype f8 --offset 99999999": "--offset 99999999",
    "sum raw.bin --dtype f8 --offset -1": "--offset -1",
    "sum cut.npy": "cut.npy",
    "sum words.csv": "words.csv",
    "sum text.npy": "dtype",
    "max empty.npy": "zero-size",
    "bitwise_xor a.npy": "bitwise_xor",
    "nonsense a.npy": "nonsense",
    "sum": "FILE",
    "sum a.npy --axes 0": "--axes",
    "var a.npy --ddof x": "'x'",
    "stubs nowhere": "nowhere",
    "bandwidth --size x": "'x'",
    "demo nowhere.txt": "nowhere.txt",
}
