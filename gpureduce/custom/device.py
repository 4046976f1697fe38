"""A program as device code: an operator for kernels/gpu/operator.cuh, of the host's own text."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpureduce.custom import emit_c
from gpureduce.custom.graph import Node, in_order
from gpureduce.custom.program import Program, Stream

HEADER = "gpu/operator.cuh"
BY_THREADS = "gpr::operate<gpr::UserOperator, 1>"
BY_WARPS = "gpr::operate<gpr::UserOperator, 32>"
# What is unrolled costs registers by the size of a state, and code and time to compile by what
# combine does, in instructions or so.
_LEAVES_BYTES, _LEAVES_COST = 256, 400
_ROWS_BYTES, _ROWS_COST = 192, 2400
_COST = {"div": 12, "rem": 30, "call": 40}


class Shape(NamedTuple):
    """How kernels cut the work; the numbers are powers of two, but for depth."""

    leaves: int  # that a thread folds at a time
    rows: int  # of 32 times as many, that a warp does
    threads: int  # of a block
    depth: int  # nodes that wait
    state: int  # bytes


class Array(NamedTuple):
    """streams: the numbers of the program's leaves that are this array's."""

    streams: tuple[int, ...]
    stream: Stream


class Device(NamedTuple):
    """header, defines and the kernels are those of a gpr_program, which has no fold of its own."""

    header: str
    defines: str
    shape: Shape
    arrays: tuple[Array, ...]


def arrays_of(program: Program) -> tuple[Array, ...]:
    found: dict[int, list[int]] = {}
    for n, stream in enumerate(program.streams):
        found.setdefault(stream.input, []).append(n)
    assert list(found) == list(range(len(found)))
    return tuple(Array(tuple(s), program.streams[s[0]]) for s in found.values())


def _cost(outputs: Sequence[Node]) -> int:
    return sum(_COST.get(node.op, 1) for node in in_order(outputs))


def _most(least: int, most: int, unit: int, room: int) -> int:
    """The greatest power of two that fits."""
    while most > least and most * unit > room:
        most //= 2
    return most


def struct_of(program: Program) -> np.dtype:
    slots = enumerate(program.slots)
    return np.dtype([(f"s{n}", slot.numpy) for n, slot in slots], align=True)


def shape_of(program: Program) -> Shape:
    state = struct_of(program).itemsize
    given = sum(stream.scalar.bytes for stream in program.streams)
    cost = _cost(program.combine) + _cost(program.lift)
    leaves = _most(1, 8, max(state, given), _LEAVES_BYTES)
    leaves = _most(1, leaves, cost, _LEAVES_COST)
    rows = _most(1, 8, max(state, leaves * given), _ROWS_BYTES)
    rows = _most(1, rows, leaves * cost, _ROWS_COST)
    depth = 24 if state <= 32 else 20 if state <= 64 else 12
    return Shape(leaves, rows, 256 if state <= 64 else 128, depth, state)


def _leaves(program: Program, arrays: Sequence[Array]) -> str:
    """What is loaded of some leaves that follow each other."""
    members, load, odd, given = [], [], [], [""] * len(program.streams)
    for k, (streams, stream) in enumerate(arrays):
        of, size = stream.scalar.stored, len(streams)
        members.append(f"{of} x{k}[{size} * N];")
        load.append(
            f"    load_leaves<{of}, {size}, N>(x{k}, data + {streams[0]}, at[{k}], step[{k}], "
            f"together >> {k} & 1);"
        )
        for m, s in enumerate(streams):
            odd.append(
                f"    x{k}[{m}] = gpr::load_odd<{of}>((const char *)(data[{s}] + at[{k}]), "
                f"swapped >> {k} & 1);"
            )
            given[s] = f"x{k}[j * {size} + {m}], "
    return f"""\
template <int N> struct UserLeaves {{
  enum {{ ARRAYS = {len(arrays)} }};
  {" ".join(members)}
  __device__ __forceinline__ void load(const int64_t *data, const int64_t (&at)[ARRAYS],
                                       const int64_t (&step)[ARRAYS], int64_t together) {{
{chr(10).join(load)}
  }}
  __device__ __forceinline__ void load_odd(const int64_t *data, const int64_t (&at)[ARRAYS],
                                           int64_t swapped) {{
{chr(10).join(odd)}
  }}
  __device__ __forceinline__ user::gpr_state lift(int j, int64_t i) const {{
    return user::gpr_lift({"".join(given)}i);
  }}
}};
"""


def _operator(program: Program, arrays: Sequence[Array], shape: Shape) -> str:
    outs = [(n, node) for n, result in enumerate(program.results) for node in result.nodes]
    numbers = {
        "STREAMS": len(program.streams),
        "ARRAYS": len(arrays),
        "RESULTS": len(outs),
        "OUTS": len(program.results),
        "LEAVES": shape.leaves,
        "ROWS": shape.rows,
        "THREADS": shape.threads,
        "DEPTH": shape.depth,
    }
    to = "".join(
        f",\n                     ({node.type.stored} *)(to[{k}] + at[{n}])"
        for k, (n, node) in enumerate(outs)
    )
    return f"""\
struct UserOperator {{
  typedef user::gpr_state State;
  enum {{ {", ".join(f"{name} = {number}" for name, number in numbers.items())} }};
  template <int N> using Leaves = UserLeaves<N>;
  static __device__ __forceinline__ State identity() {{ return user::gpr_identity(); }}
  static __device__ __forceinline__ State combine(const State &a, const State &b) {{
    return user::gpr_combine(a, b);
  }}
  static __device__ __noinline__ void combine_apart(const State *a, const State *b, State *to) {{
    *to = user::gpr_combine(*a, *b);
  }}
  static __device__ void finish(const State &s, const int64_t *to, const int64_t (&at)[OUTS]) {{
    user::gpr_finish(s{to});
  }}
}};
"""


def device(program: Program) -> Device:
    shape, arrays = shape_of(program), arrays_of(program)
    functions = emit_c.arithmetic() + emit_c.functions(program)
    text = _leaves(program, arrays) + _operator(program, arrays, shape)
    return Device(
        HEADER, f"GPR_OPEN\nnamespace user {{\n{functions}}}\n{text}GPR_CLOSE\n", shape, arrays
    )
