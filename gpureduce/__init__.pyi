from gpureduce import arithmetic_signatures, signatures
from gpureduce import array_api as array_api
from gpureduce import warp as warp
from gpureduce import work_queue as work_queue
from gpureduce._core import DeviceArray, DeviceError
from gpureduce.custom.decorator import operator
from gpureduce.custom.errors import OperatorError
from gpureduce.custom.laws import check_operator
from gpureduce.custom.operator import Operator
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
from gpureduce.partial.accumulator import Accumulator
from gpureduce.partial.carrier import Partials
from gpureduce.partial.merging import fingerprint, finish, from_words, merge, words
from gpureduce.partial.take import partials

__version__: str
__all__ = [
    "Accumulator",
    "DeviceArray",
    "DeviceError",
    "Operator",
    "OperatorError",
    "Partials",
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "argminmax",
    "check_operator",
    "count_nonzero",
    "devices",
    "dtypes",
    "fingerprint",
    "finish",
    "from_words",
    "get_num_threads",
    "isa",
    "kernels",
    "max",
    "mean",
    "merge",
    "min",
    "minmax",
    "nanargmax",
    "nanargmin",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "operator",
    "operators",
    "partials",
    "prod",
    "ptp",
    "reduce",
    "reduceat",
    "segments",
    "set_num_threads",
    "std",
    "sum",
    "var",
    "words",
]

sum: arithmetic_signatures.SumFunction
prod: arithmetic_signatures.SumFunction
min: signatures.MinFunction
amin: signatures.MinFunction
max: signatures.MinFunction
amax: signatures.MinFunction
argmin: signatures.ArgminFunction
argmax: signatures.ArgminFunction
mean: arithmetic_signatures.MeanFunction
any: signatures.AnyFunction
all: signatures.AnyFunction
count_nonzero: signatures.CountNonzeroFunction
ptp: signatures.PtpFunction
minmax: signatures.MinmaxFunction
argminmax: signatures.ArgminmaxFunction
var: arithmetic_signatures.VarFunction
std: arithmetic_signatures.VarFunction
nansum: arithmetic_signatures.NansumFunction
nanprod: arithmetic_signatures.NansumFunction
nanmin: signatures.NanminFunction
nanmax: signatures.NanminFunction
nanargmin: signatures.ArgminFunction
nanargmax: signatures.ArgminFunction
nanmean: arithmetic_signatures.MeanFunction
nanvar: arithmetic_signatures.VarFunction
nanstd: arithmetic_signatures.VarFunction
