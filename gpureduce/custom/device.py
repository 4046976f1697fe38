"""A program as device code: an operator for kernels/gpu/operator.cuh, of the host's own text."""

from collections.abc import Sequence
from typing import NamedTuple

from gpureduce.custom import emit_c
from gpureduce.custom.graph import cost_of, in_order
from gpureduce.custom.program import Program, Stream

HEADER = "gpu/operator.cuh"
BY_THREADS = "gpr::trees_by_threads<gpr::UserOperator, gpr::Operands<gpr::UserOperator>>"
BY_WARPS = "gpr::trees_by_warps<gpr::UserOperator, gpr::Operands<gpr::UserOperator>>"
FEW = "gpr::operate_few<gpr::UserOperator, {}>"  # of so many elements at most
STAGED = "gpr::trees_staged<gpr::UserOperator, gpr::Operands<gpr::UserOperator>>"
WARP = 32
# What is unrolled costs code and time to compile by what combine does, in instructions or so.
_RUN_COST = 1600
_RUN_BYTES = 160  # that a thread loads at a time
_UNIT_BYTES = 64  # of shared memory; 16 and 32 took a fifth and a tenth longer on an H200
_PACKET_BYTES = 16  # that a lane loads of one array by one instruction
# That a lane has on their way, or of their nodes: of small states fewer, which leave less where a
# row ends. On an H200 float32's hypot along rows of 3,600 to 6,789 read at 48 to 59 % of the limit
# with 8 and at 61 to 69 with 4, whole arrays alike; Welford's, of 24 bytes, at 64 and 54.
_ROWS, _ROWS_BYTES, _SMALL_STATE = 8, 256, 16
# Registers of a multiprocessor, for each of 32 lanes, and what a lane needs beside its rows. On an
# H200 float32's hypot was fastest with 25 warps, Welford's states with 13 to 16, matrices with 8.
_REGISTERS, _REGISTERS_BESIDE = 2048, 10
_THREADS, STAGED_THREADS, FEW_THREADS = 64, 128, 128
_SHARED = (48 << 10) - 128  # bytes that a block may have without asking, but for a few


class Shape(NamedTuple):
    """How kernels cut the work; the numbers are powers of two, but for depth, blocks and
    warps."""

    run: int  # leaves that a thread folds at a time
    leaves: int  # the same where there are few or they lie anywhere
    unit: int  # leaves of a thread that were staged
    packet: int  # leaves of a lane side by side
    rows: int  # packets of a lane
    is_ahead: bool  # whether a thread's leaves can come by way of shared memory
    threads: int  # of a block; where leaves come to shared memory first there are STAGED_THREADS
    blocks: int  # of a multiprocessor, for which there are registers
    warps: int  # the same of those that are alone in their block
    depth: int  # nodes that wait
    state: int  # bytes
    leaf: int  # bytes


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


def _most(least: int, most: int, unit: int, room: int) -> int:
    """The greatest power of two that fits."""
    while most > least and most * unit > room:
        most //= 2
    return most


def shape_of(program: Program) -> Shape:
    state = program.struct.itemsize
    given = sum(stream.scalar.bytes for stream in program.streams)
    widest = max((len(s) * stream.scalar.bytes for s, stream in arrays_of(program)), default=1)
    cost = cost_of(program.combine) + cost_of(program.lift)
    run = _most(1, 32, given, _RUN_BYTES)
    run = _most(1, run, cost, _RUN_COST)
    unit = _most(1, run, given, _UNIT_BYTES)
    packet = _most(1, 8, widest, _PACKET_BYTES)
    packet = _most(1, packet, cost, _RUN_COST)
    rows = _ROWS // 2 if state < _SMALL_STATE else _ROWS
    rows = _most(1, rows, max(packet * given, state), _ROWS_BYTES)
    rows = _most(1, rows, packet * cost, _RUN_COST)
    is_ahead = run >= 4 and all(stream.scalar.bytes >= 4 for stream in program.streams)
    is_ahead &= _THREADS * run * given <= _SHARED
    blocks = 8 if state <= 32 else 6 if state <= 64 else 4
    words = rows * (packet * given + state) // 4
    warps = _REGISTERS // (_REGISTERS_BESIDE + words * 7 // 4)
    depth = 24 if state <= 32 else 20 if state <= 64 else 12
    leaves = min(run, 8)
    return Shape(
        run, leaves, unit, packet, rows, is_ahead, _THREADS, blocks, max(1, min(warps, 32)), depth,
        state, given,
    )  # fmt: skip


_QUICKLY = """\
  static __device__ __forceinline__ State combine_quick(const State &a, const State &b,
                                                        QuickMath &quick) {
    return user::gpr_combine_quick(a, b, quick);
  }
"""


def _is_quick(program: Program) -> bool:
    """Not where identities meet: of most the quick steps are not sure, and all would go again."""
    if program.is_masked or emit_c.is_long(program.combine):
        return False
    return any(map(emit_c.is_quick, in_order(program.combine)))


def _quick(program: Program) -> str:
    if not _is_quick(program):
        return ""
    return f"""\
GPR_OP gpr_state gpr_combine_quick(gpr_state a, gpr_state b, QuickMath &quick) {{
{emit_c.state_of(program.combine, quick=True)}
}}
"""


def _either(program: Program) -> str:
    """kernels/gpu/tree_units.cuh has it for any state, of words, which takes twice as long to
    compile. By values: a choice of places would take the states to memory."""
    slots = range(len(program.slots))
    chosen = " ".join(f"s.s{n} = chosen(is_first, a.s{n}, b.s{n});" for n in slots)
    return f"""\
template <class T> GPR_OP T chosen(bool is_first, T a, T b) {{ return is_first ? a : b; }}
GPR_OP gpr_state either(bool is_first, gpr_state a, gpr_state b) {{
  gpr_state s;
  {chosen}
  return s;
}}
"""


def _leaves(program: Program, arrays: Sequence[Array]) -> str:
    """What is loaded of some leaves that follow each other."""
    members, packed, lines, some, few, one, settle, get_own = [], [], [], [], [], [], [], []
    shared = "    given0.load_shared(stage, at);" if len(arrays) == 1 else ""
    given, before = [""] * len(program.streams), 0
    for k, (streams, stream) in enumerate(arrays):
        of, size, first = stream.scalar.stored, len(streams), streams[0]
        to, leaf = f"    given{k}.load", size * stream.scalar.bytes
        members.append(f"Given<{of}, {size}, N> given{k}; {of} x{k}[{size} * N];")
        packed.append(f"{to}_packed(at[{k}] + from * {leaf}, is_even);")
        lines.append(f"{to}_lines(x, {first}, at[{k}], next[{k}], x.step[{k}], from, left, there);")
        some.append(f"{to}_some(x, {first}, at[{k}], x.step[{k}], x.is_packed({k}), there);")
        few.append(f"{to}_leaf(x, {first}, j, place[{k}] + at[{k}], is_there);")
        settle.append(f"    given{k}.get(x{k});")
        get_own.append(f"    get_own_leaves(x{k}, places + {before} * N);")
        before += WARP * size * stream.scalar.bytes
        for m, s in enumerate(streams):
            one.append(
                f"    x{k}[j * {size} + {m}] = x.template leaf<{of}>({k}, {streams[0]}, {m}, at);"
            )
            given[s] = f"x{k}[j * {size} + {m}], "
    return f"""\
template <int N> struct UserLeaves {{
  {" ".join(members)}
  __device__ __forceinline__ void load_packed(const int64_t *at, int from, bool is_even) {{
{chr(10).join(packed)}
  }}
  template <class X>
  __device__ __forceinline__ void load_lines(const X &x, const int64_t *at, const int64_t *next,
                                             int from, int left, int there) {{
{chr(10).join(lines)}
  }}
  __device__ __forceinline__ void load_shared(const Stage &stage, int at) {{
{shared}
  }}
  template <class X>
  __device__ __forceinline__ void load_some(const X &x, const int64_t *at, int there) {{
{chr(10).join(some)}
  }}
  template <class X>
  __device__ __forceinline__ void load_leaf(const X &x, int j, const int64_t *place,
                                            const int64_t *at, bool is_there) {{
{chr(10).join(few)}
  }}
  template <class X>
  __device__ __forceinline__ void load_one(const X &x, int j, const int64_t (&at)[X::ARRAYS]) {{
{chr(10).join(one)}
  }}
  __device__ __forceinline__ void settle() {{
{chr(10).join(settle)}
  }}
  __device__ __forceinline__ void get_own(const char *places) {{
{chr(10).join(get_own)}
  }}
  template <class X>
  __device__ __forceinline__ user::gpr_state lift(const X &, int j, int64_t i) const {{
    return user::gpr_lift({"".join(given)}i);
  }}
}};
"""


def _bring(arrays: Sequence[Array]) -> str:
    """How a thread's leaves come by way of shared memory."""
    bring, before = [], 0
    for k, (streams, stream) in enumerate(arrays):
        bring.append(
            f"    bring_leaves<{stream.scalar.stored}, {len(streams)}, N>(places + {before} * N, "
            f"x, {streams[0]}, at[{k}], x.step[{k}]);"
        )
        before += WARP * len(streams) * stream.scalar.bytes
    return chr(10).join(bring)


def _operator(program: Program, arrays: Sequence[Array], shape: Shape) -> str:
    outs = [(n, node) for n, result in enumerate(program.results) for node in result.nodes]
    leaf = [len(a.streams) * a.stream.scalar.bytes for a in arrays]
    even = [f"at[{k}] % 16 == 0" for k in range(len(arrays))]
    go = [f"at[{k}] += leaves * {size};" for k, size in enumerate(leaf)]
    numbers = {
        "STREAMS": len(program.streams),
        "ARRAYS": len(arrays),
        "RESULTS": len(outs),
        "OUTS": len(program.results),
        "RUN": shape.run,
        "LEAVES": shape.leaves,
        "UNIT": shape.unit,
        "PACKET": shape.packet,
        "ROWS": shape.rows,
        "IS_QUICK": int(_is_quick(program)),
        "BEYOND": 16 if any(a.stream.scalar.bytes < 4 for a in arrays) else 0,
        "LEAF": shape.leaf,
        "IS_AHEAD": int(shape.is_ahead),
        "HAS_STEPS": 0,
        "THREADS": shape.threads,
        "STAGED_THREADS": STAGED_THREADS,
        "STAGED_BLOCKS": 0,  # as many as there is room for
        "BLOCKS": shape.blocks,
        "WARPS": shape.warps,
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
  static __device__ __forceinline__ int stream(int k) {{
    const int first[] = {{{", ".join(str(streams[0]) for streams, _ in arrays)}}};
    return first[k];
  }}
  static __device__ __forceinline__ bool is_even(const int64_t *at) {{
    return {" && ".join(even)};
  }}
  static __device__ __forceinline__ void go(int64_t *at, int leaves) {{
    {" ".join(go)}
  }}
  static __device__ __forceinline__ State identity() {{ return user::gpr_identity(); }}
  static __device__ __forceinline__ State combine(const State &a, const State &b) {{
    return user::gpr_combine(a, b);
  }}
{_QUICKLY if _is_quick(program) else ""}\
  static __device__ __noinline__ void combine_apart(const State *a, const State *b, State *to) {{
    *to = user::gpr_combine(*a, *b);
  }}
  template <int N, class X>
  static __device__ __forceinline__ void bring(char *places, const X &x, const int64_t *at) {{
{_bring(arrays)}
  }}
  static __device__ void finish(const State &s, const int64_t *to, const int64_t (&at)[OUTS]) {{
    user::gpr_finish(s{to});
  }}
}};
"""


def kernels(shape: Shape) -> tuple[str, ...]:
    few = [FEW.format(leaves) for leaves in (2, 4, 8) if leaves <= max(2, shape.leaves)]
    return BY_THREADS, BY_WARPS, STAGED, *few


def device(program: Program) -> Device:
    shape, arrays = shape_of(program), arrays_of(program)
    functions = emit_c.arithmetic() + emit_c.functions(program) + _quick(program)
    functions += _either(program)
    text = _leaves(program, arrays) + _operator(program, arrays, shape)
    return Device(
        HEADER, f"GPR_OPEN\nnamespace user {{\n{functions}}}\n{text}GPR_CLOSE\n", shape, arrays
    )
