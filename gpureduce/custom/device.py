"""A program as device code: a fold for kernels/gpu/trees.cuh, made of the host's own text.

What a launch needs besides is said by Device: kernels read one array, whose elements are the
numbers of all streams one behind the other, and write one record of results an output.
"""

from typing import NamedTuple

import numpy as np

from gpureduce.custom import emit_c
from gpureduce.custom.program import Program

HEADER = "gpu/trees.cuh"
KERNEL = "gpr::trees<gpr::UserFold, gpr::UserElement>"


class Device(NamedTuple):
    """header, defines and kernel are those of a gpr_program, which has no fold of its own."""

    header: str
    defines: str
    kernel: str
    element: np.dtype
    state: np.dtype
    results: np.dtype


def _record(kinds: list[np.dtype], name: str) -> np.dtype:
    return np.dtype([(f"{name}{n}", kind) for n, kind in enumerate(kinds)], align=True)


_FOLD = """\
struct UserElement {{ {inputs} }};
struct UserResult {{ {results} }};
struct UserCombine {{
  typedef user::gpr_state A;
  static __device__ __forceinline__ A identity() {{ return user::gpr_identity(); }}
  static __device__ __forceinline__ A combine(const A &a, const A &b) {{
    return user::gpr_combine(a, b);
  }}
}};
struct UserFold {{
  typedef UserElement Element;
  typedef user::gpr_state Wide;
  typedef UserCombine Combine;
  static constexpr gpr_law law = GPR_TREE;
  static constexpr bool ordered = true;
}};
template <>
__device__ __forceinline__ user::gpr_state Leaves<UserFold, UserElement>::leaf(int64_t i) const {{
  if (where && !where[offset_of(a.shape + a.kept, a.where_strides + a.kept, a.reduced, i)])
    return user::gpr_identity();
  const UserElement x =
      *(const UserElement *)(base + offset_of(a.shape + a.kept, a.strides + a.kept, a.reduced, i));
  return user::gpr_lift({given}i);
}}
template <>
__device__ __forceinline__ void finish_tree<UserFold>(const gpr_axes_args &a, int64_t o,
                                                      const Branch<user::gpr_state> &root) {{
  const int64_t per = a.starts ? quotient_of(a.outputs, a.segments) : a.outputs;
  const int64_t first = a.starts ? quotient_of(o, per) * per : 0;
  UserResult *to = (UserResult *)a.out + first + kept_place(a, o - first).out;
  user::gpr_finish(root.value{outs});
}}
"""


def device(program: Program) -> Device:
    nodes = [node for result in program.results for node in result.nodes]
    streams = range(len(program.streams))
    fold = _FOLD.format(
        inputs=" ".join(f"{s.scalar.stored} x{n};" for n, s in enumerate(program.streams)),
        results=" ".join(f"{node.type.stored} r{n};" for n, node in enumerate(nodes)),
        given="".join(f"x.x{n}, " for n in streams),
        outs="".join(f", &to->r{n}" for n in range(len(nodes))),
    )
    functions = emit_c.arithmetic() + emit_c.functions(program)
    slots = [slot.numpy for slot in program.slots]
    return Device(
        HEADER,
        f"GPR_OPEN\nnamespace user {{\n{functions}}}\n{fold}GPR_CLOSE\n",
        KERNEL,
        _record([s.scalar.numpy for s in program.streams], "x"),
        _record(slots, "s"),
        _record([node.type.numpy for node in nodes], "r"),
    )
