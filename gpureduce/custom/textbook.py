"""Operators in the textbook kernels of one launch: whole arrays, on a device."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpureduce import _core
from gpureduce.custom import emit_c, places
from gpureduce.custom.cut import dims_of
from gpureduce.custom.device import Array, arrays_of
from gpureduce.custom.device_calls import given_of
from gpureduce.custom.launches import ARGUMENTS, streams_of
from gpureduce.custom.layout import strides_of
from gpureduce.custom.outputs import packed
from gpureduce.custom.program import Program
from gpureduce.partial.axes import axes_of

HEADER = "textbook/kernels.cuh"
STATE_MOST = 48  # bytes, of which a block of 512 threads has two each in shared memory
_HELD = 2048  # threads that a multiprocessor runs at a time
_TICKET, _RESULT, _PARTIALS = 0, 64, 1024  # bytes into the scratch
_RESULT_MOST = _PARTIALS - _RESULT


def _element(arrays: Sequence[Array], streams: int) -> str:
    given = [""] * streams
    for k, (numbers, stream) in enumerate(arrays):
        for s in numbers:
            of = stream.scalar.stored
            given[s] = f"*(const {of} *)(table[{s}] + i * table[{streams + k}]), "
    return "".join(given)


def text(program: Program) -> str:
    """The operator as textbook/elements.cuh has them. What it reads comes as a table: addresses of
    the streams, then each array's bytes from one element to the next."""
    nodes = [node for result in program.results for node in result.nodes]
    members = " ".join(f"{node.type.stored} r{n};" for n, node in enumerate(nodes))
    outs = "".join(f", &r.r{n}" for n in range(len(nodes)))
    return f"""\
GPR_OPEN
namespace user {{
{emit_c.arithmetic()}{emit_c.functions(program)}}}
struct UserMonoid {{
  static __device__ user::gpr_state identity() {{ return user::gpr_identity(); }}
  static __device__ user::gpr_state combine(const user::gpr_state &a, const user::gpr_state &b) {{
    return user::gpr_combine(a, b);
  }}
}};
struct UserResult {{ {members} }};
struct UserOperator {{
  typedef UserMonoid Monoid;
  typedef UserResult Result;
  static __device__ UserResult finish(const user::gpr_state &s, int64_t) {{
    UserResult r;
    user::gpr_finish(s{outs});
    return r;
  }}
}};
namespace ladder {{
template <> struct Input<UserOperator> {{
  const int64_t *table;
  int64_t n;
  __device__ explicit Input(const gpr_ladder_args &args)
      : table((const int64_t *)args.data), n(args.n) {{}}
  __device__ user::gpr_state operator[](int64_t i) const {{
    if (i >= n) return user::gpr_identity();
    return user::gpr_lift({_element(arrays_of(program), len(program.streams))}i);
  }}
}};
}}
GPR_CLOSE
"""


class _Kernel(NamedTuple):
    about: Any
    program: Program
    has_identity: bool
    made: Any


def _about(op: Any, name: str) -> Any:
    """What is known of the kernel, or why it cannot be."""
    import gpureduce

    known: dict[str, Any] = {kernel["name"]: kernel for kernel in gpureduce.kernels()}
    if name not in known:
        raise ValueError(f"kernel {name!r} is not one of {', '.join(known)}")
    about = known[name]
    if about["in_place"] or about["second_launch"]:
        raise TypeError(f"{op.name}: kernel {name!r} takes several launches, for built-in ones")
    if not about["in_order"] and not op.commutative:
        raise TypeError(f"{op.name}: kernel {name!r} is for operators with commutative=True")
    return about


def _kernel_of(op: Any, name: str, about: Any, kinds: Any) -> _Kernel:
    """The operator in that kernel."""
    has_identity = op.final(kinds, False, False).identity is not None
    program = op.final(kinds, False, not has_identity)
    size = program.struct.itemsize
    if size > STATE_MOST:
        raise TypeError(
            f"{op.name}: kernel {name!r} has shared memory for states of {STATE_MOST} bytes, "
            f"and this one's have {size}"
        )
    if _result_of(program).itemsize > _RESULT_MOST:
        raise TypeError(f"{op.name}: kernel {name!r} has room for {_RESULT_MOST} bytes of results")
    made = op.made_once(
        (name, kinds),
        lambda: _core.operator_program(
            HEADER, text(program), f"gpr::ladder::{name}<gpr::UserOperator>"
        ),
    )
    return _Kernel(about, program, has_identity, made)


def _result_of(program: Program) -> np.dtype:
    nodes = [node for result in program.results for node in result.nodes]
    return np.dtype([(f"r{n}", node.type.numpy) for n, node in enumerate(nodes)], align=True)


def reduce(
    op: Any, name: str, inputs: Sequence[Any], device: str, axis: Any, others: dict[str, Any]
) -> Any:
    """The whole of the inputs, in the order of the index. others: what else was asked."""
    if device == "cpu":
        raise ValueError(f"{op.name}: kernel {name} is a GPU's; device='cpu' has none by a name")
    for what, asked in others.items():
        if asked is not None:
            raise ValueError(f"{op.name}: kernel {name} takes no {what}")
    about = _about(op, name)
    way_out = f"leave out kernel={'' if device == 'auto' else ' and device='}"
    there = places.device_of(op.name, "cuda" if device == "auto" else device, inputs, way_out)
    assert there is not None
    given = given_of(op, inputs, there)
    if len(axes_of(axis, len(given.shape), op.name)) < len(given.shape):
        raise ValueError(f"{op.name}: kernel {name} reduces whole arrays alone")
    kernel = _kernel_of(op, name, about, tuple(a.kind for a in given.arrays))
    n = math.prod(given.shape)
    limit = kernel.about["limit"]
    if limit and n > limit:
        raise ValueError(f"{op.name}: kernel {name} takes at most {limit} elements, not {n}")
    if not n and not kernel.has_identity:
        raise ValueError(f"zero-size array to reduction operation {op.name} which has no identity")
    places.follow(given.arrays, there, given.stream)
    found = _run(op, kernel, given, n)
    places.let_go(given.arrays, there, given.stream)
    return found


def _table(op: Any, program: Program, given: Any) -> list[int]:
    pairs = zip(given.arrays, given.inner, strict=True)
    strides = [strides_of(array, inner, given.shape) for array, inner in pairs]
    dims = dims_of(given.shape, range(len(given.shape)), strides, [], False)
    odd = any(a.swapped for a in given.arrays)
    places_of = streams_of(program, given.arrays, given.inner)
    starts = [given.arrays[k].address + offset for k, offset in places_of]
    for stream, at in zip(program.streams, starts, strict=True):
        odd |= bool(at % stream.scalar.bytes)
    if odd or len(dims.reduced) > 1:
        raise ValueError(f"{op.name}: the textbook kernels take elements that lie evenly in memory")
    return [*starts, *dims.reduced[0].strides]


def _run(op: Any, kernel: _Kernel, given: Any, n: int) -> Any:
    about, program = kernel.about, kernel.program
    threads = about["threads"][0]
    blocks = 1
    if about["grid"] == "device":
        most = _core.multiprocessors(given.device) * (_HELD // threads)
        blocks = max(1, min(most, -(-n // threads)))
    size = program.struct.itemsize
    table = np.array(_table(op, program, given) if n else [0], np.int64)
    where = given.device, given.stream
    data = _core.device_memory(*where, "int64", len(table))
    scratch = _core.device_memory(*where, "uint8", _PARTIALS + blocks * size)
    at = _core.device_address(scratch)
    _core.device_put(*where, _core.device_address(data), table.view(np.uint8))
    _core.device_put(*where, at, np.zeros(_PARTIALS, np.uint8))
    args = np.zeros(ARGUMENTS, np.int64)
    args[:8] = (
        _core.device_address(data), n, 0, 0, at + _PARTIALS, blocks, at + _TICKET, at + _RESULT,
    )  # fmt: skip
    _core.operator_launch(
        kernel.made, *where, args, blocks, threads, 0, False, np.empty(0, np.int64), 0
    )
    root = np.zeros((), _result_of(program))
    _core.device_get(*where, at + _RESULT, root.reshape(1).view(np.uint8))
    return _packed(op, program, [root[f"r{k}"] for k in range(len(root.dtype.names or ()))])


def _packed(op: Any, program: Program, numbers: list[Any]) -> Any:
    found, first = [], 0
    for result in program.results:
        own = np.stack(numbers[first : first + len(result.nodes)])
        first += len(result.nodes)
        own = own.view(result.kind.dtype) if own.dtype != result.kind.dtype else own
        found.append(own.reshape(result.shape)[()])
    return packed(op.name, program.results, found)
