"""A program as C, which a device's compiler takes as C++ too."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpureduce.custom.functions import FUNCTIONS
from gpureduce.custom.graph import Node, in_order
from gpureduce.custom.program import Program
from gpureduce.custom.scalars import F4, Scalar

_INFIX = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^", "lt": "<", "le": "<=",
          "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}  # fmt: skip
# Of these arithmetic.h has its own, which are the same on all machines.
_OWN = {"fmin", "fmax", "fdim", "round", "sqrt", "copysign", "isnan", "isinf", "isfinite",
        "signbit"}  # fmt: skip


_LONG = 180  # operations, of which no compiler is to make copies
_VECTORS = 140  # those that are worth vectors


def arithmetic() -> str:
    return Path(__file__).with_name("arithmetic.h").read_text(encoding="utf-8")


def literal(value: object, type_: Scalar) -> str:
    if type_.kind == "b":
        return "true" if value else "false"
    if not type_.is_float:
        assert isinstance(value, int)
        if value == -(2**63):
            return "(-INT64_C(9223372036854775807) - 1)"
        wide = f"UINT64_C({value})" if type_.kind == "u" else f"INT64_C({value})"
        return f"({type_.c}){wide}"
    assert isinstance(value, float)
    if math.isnan(value):
        return "gpr_float(0x7fc00000)" if type_ is F4 else "(double)gpr_float(0x7fc00000)"
    if math.isinf(value):
        sign = "-" * (value < 0)
        return f"({type_.c})({sign}gpr_float(0x7f800000))"
    return f"{value.hex()}{'f' * (type_ is F4)}"


def _cast(node: Node, x: str) -> str:
    to, of = node.type, node.args[0].type
    if to.kind == "b":
        return f"{x} != 0"
    if of.is_float and not to.is_float:
        how = "gpr_to_u8" if to.name == "u8" else "gpr_to_i8"
        return f"({to.c}){how}({x})"
    return f"({to.c}){x}"


def _call(node: Node, args: Sequence[str]) -> str:
    name = str(node.detail)
    f = "f" * (node.args[0].type is F4)
    own = "gpr_" * (name in _OWN)
    assert name in FUNCTIONS
    return f"{own}{name}{f}({', '.join(args)})"


def _expression(node: Node, args: Sequence[str]) -> str:
    op, type_ = node.op, node.type
    if op == "const":
        return literal(node.detail, type_)
    if op == "cast":
        return _cast(node, *args)
    if op == "select":
        return "{} ? {} : {}".format(*args)
    if op == "call":
        return _call(node, args)
    if op in ("bits", "float"):
        wide = (node.args[0].type if op == "bits" else type_).bits == 64
        return f"gpr_{op}{'_f8' * wide}({args[0]})"
    if op == "widen":
        return f"gpr_widen_{node.args[0].type.name}({args[0]})"
    if op == "narrow":
        return f"gpr_narrow_{type_.name}_{node.args[0].type.name}({args[0]})"
    if op in ("div", "rem", "shl", "shr") and not type_.is_float:
        return f"gpr_{op}_{type_.name}({', '.join(args)})"
    if op == "lnot":
        return f"!{args[0]}"
    if op in ("neg", "not"):
        sign = "-" if op == "neg" else "~"
        if type_.is_float:
            return f"{sign}{args[0]}"
        return _wrapped(type_, f"{sign}({type_.unsigned}){args[0]}")
    if op == "mul":
        return f"GPR_MUL({args[0]}, {args[1]})" if type_.is_float else _two(type_, "*", args)
    if op == "div":
        return f"{args[0]} / {args[1]}"
    if op in ("add", "sub") and not type_.is_float:
        return _two(type_, _INFIX[op], args)
    return f"{args[0]} {_INFIX[op]} {args[1]}"


def is_quick(node: Node) -> bool:
    """Whether a device has steps for it that are right for nearly all numbers."""
    if not node.args or not node.type.is_float or node.args[-1].op == "const":
        return False
    return node.op == "div" or (node.op == "call" and node.detail == "sqrt")


def _quick(node: Node, args: Sequence[str]) -> str:
    return f"quick.{'root' if node.op == 'call' else 'quotient'}({', '.join(args)})"


def _two(type_: Scalar, op: str, args: Sequence[str]) -> str:
    wide = type_.unsigned
    return _wrapped(type_, f"({wide}){args[0]} {op} ({wide}){args[1]}")


def _wrapped(type_: Scalar, text: str) -> str:
    return f"({type_.c})({text})"


def _leaf(node: Node) -> str:
    """What a function is given."""
    if node.op == "index":
        return "i"
    name = f"x{node.detail}" if node.op == "input" else f"{node.op}.s{node.detail}"
    return f"{name} != 0" if node.type.kind == "b" else name


def lines(outputs: Sequence[Node], quick: bool = False) -> tuple[list[str], list[str]]:
    """Statements, and how each output is called after them. quick: by a device's quick steps."""
    names: dict[Node, str] = {}
    found: list[str] = []
    for node in in_order(outputs):
        if node.op in ("a", "b", "input", "index") and node.type.kind != "b":
            names[node] = _leaf(node)
            continue
        given = node.op in ("a", "b", "input")
        form = _quick if quick and is_quick(node) else _expression
        text = _leaf(node) if given else form(node, [names[arg] for arg in node.args])
        if node.op == "const":
            names[node] = text
            continue
        names[node] = f"t{len(found)}"
        found.append(f"  const {node.type.c} {names[node]} = {text};")
    return found, [names[node] for node in outputs]


def state_of(outputs: Sequence[Node], quick: bool = False) -> str:
    """A function's body that gives back a state."""
    statements, names = lines(outputs, quick)
    stores = [
        f"  s.s{n} = ({node.type.stored}){name};"
        for n, (node, name) in enumerate(zip(outputs, names, strict=True))
    ]
    return "\n".join([*statements, "  gpr_state s;", *stores, "  return s;"])


def _finish(program: Program) -> str:
    nodes = [node for result in program.results for node in result.nodes]
    statements, names = lines(nodes)
    for n, (node, name) in enumerate(zip(nodes, names, strict=True)):
        plain = f"gpr_plain_{node.type.name}({name})" if node.type.is_float else name
        statements.append(f"  *r{n} = ({node.type.stored}){plain};")
    return "\n".join(statements)


def is_long(outputs: Sequence[Node]) -> bool:
    """What is long is compiled once, and called: its copies take compilers minutes."""
    return len(in_order(outputs)) > _LONG


def _kind(outputs: Sequence[Node]) -> str:
    return "GPR_LARGE" if is_long(outputs) else "GPR_OP"


def functions(program: Program) -> str:
    """gpr_state and the four functions on it."""
    members = " ".join(f"{slot.stored} s{n};" for n, slot in enumerate(program.slots))
    inputs = "".join(f"{s.scalar.stored} x{n}, " for n, s in enumerate(program.streams))
    nodes = [node for result in program.results for node in result.nodes]
    outs = "".join(f", {node.type.stored} *r{n}" for n, node in enumerate(nodes))
    neutral = program.identity
    if neutral is None:  # never asked for
        neutral = tuple(program.graph.cast(program.graph.const(0, F4), s) for s in program.slots)
    return f"""\
typedef struct gpr_state {{ {members} }} gpr_state;
{_kind(program.lift)} gpr_state gpr_lift({inputs}int64_t i) {{
  (void)i;
{state_of(program.lift)}
}}
{_kind(program.combine)} gpr_state gpr_combine(gpr_state a, gpr_state b) {{
{state_of(program.combine)}
}}
{_kind(program.combine)} gpr_state gpr_identity(void) {{
{state_of(neutral)}
}}
{_kind(nodes)} void gpr_finish(gpr_state a{outs}) {{
{_finish(program)}
}}
"""


_HOST = "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <string.h>\n"
# Of a long program: GCC 13 looks for what dominates what in an exact float64 sum for 35 s.
_WITHOUT_DOMINATORS = """#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-dominator-opts")
#endif
"""
_BLOCK_BYTES = 8192  # a block's nodes, in the first cache with what they are made of
_LANES_BYTES = 1024
_ROOM = 1 << 14  # numbers of leaves that do not lie as they should: on the stack


def shape(program: Program) -> Mapping[str, int]:
    """How the engine cuts its work: powers of two by the size of a state."""
    size = sum(slot.bytes for slot in program.slots)
    wide = max([size, *(stream.scalar.bytes for stream in program.streams)])
    streams = len(program.streams)
    rows = 8 if size <= 16 else 4 if size <= 64 else 2
    room = 1 << (_ROOM // streams).bit_length() - 1
    return {
        "STREAMS": streams,
        "RESULTS": sum(len(result.nodes) for result in program.results),
        "BLOCK": min(room, max(32, 1 << (_BLOCK_BYTES // wide).bit_length() - 1)),
        "LANES": min(max(room // rows, 1), max(8, 1 << (_LANES_BYTES // wide).bit_length() - 1)),
        "ROWS": rows,
    }


def _is_without_vectors(program: Program) -> bool:
    """Of 143 operations GCC makes vectors for 8 seconds, and without them it takes 0.4."""
    return len(in_order([*program.lift, *program.combine])) > _VECTORS


def level(program: Program) -> str:
    return "-O1" if _is_without_vectors(program) else "-O3"


def host(program: Program) -> str:
    """The whole text of an operator for the host."""
    slots, streams = range(len(program.slots)), range(len(program.streams))
    nodes = [node for result in program.results for node in result.nodes]
    kinds = [slot.stored for slot in program.slots]
    sizes = shape(program)
    defines = "".join(f"enum {{ {name} = {number} }};\n" for name, number in sizes.items())
    places = "".join(f" const {s.scalar.stored} *x{n};" for n, s in enumerate(program.streams))
    size_list = ", ".join(str(s.scalar.bytes) for s in program.streams)
    outs = ", ".join(f"({n.type.stored} *)to[{k}]" for k, n in enumerate(nodes))

    def tree(first: int, rows: int) -> str:
        """Written out: compilers do not vectorise over a loop that they have to unroll first."""
        if rows == 1:
            return f"gpr_leaf(&p->row[{first}], k, i + {first})"
        half = rows // 2
        return f"gpr_combine({tree(first, half)}, {tree(first + half, half)})"

    def nodes_of(name: str, length: str) -> str:
        members = " ".join(f"{kinds[n]} s{n}[{length}];" for n in slots)
        take = ", ".join(f"v->s{n}[k]" for n in slots)
        put = " ".join(f"v->s{n}[k] = s.s{n};" for n in slots)
        return f"""\
typedef struct {name} {{ {members} }} {name};
GPR_OP gpr_state {name}_get(const {name} *v, int64_t k) {{ return (gpr_state){{ {take} }}; }}
GPR_OP void {name}_set({name} *v, int64_t k, gpr_state s) {{ {put} }}
"""

    return f"""\
{_WITHOUT_DOMINATORS if _is_without_vectors(program) else ""}{_HOST}\
{arithmetic()}{functions(program)}{defines}\
{nodes_of("gpr_run", "BLOCK / 2 + 1")}{nodes_of("gpr_lanes", "LANES")}\
typedef struct gpr_places {{{places} }} gpr_places;
GPR_OP void gpr_place(gpr_places *p, const char *const *at) {{
{"".join(f"  p->x{n} = (const {s.scalar.stored} *)at[{n}];" for n, s in enumerate(program.streams))}
}}
GPR_OP gpr_state gpr_leaf(const gpr_places *p, int64_t k, int64_t i) {{
  return gpr_lift({"".join(f"p->x{n}[k], " for n in streams)}i);
}}
typedef struct gpr_rows {{ gpr_places row[ROWS]; }} gpr_rows;
GPR_OP gpr_state gpr_leaves(const gpr_rows *p, int64_t k, int64_t i) {{
  return {tree(0, sizes["ROWS"])};
}}
GPR_OP void gpr_finish_to(gpr_state s, char *const *to) {{ gpr_finish(s, {outs}); }}
static const int gpr_bytes[STREAMS] = {{ {size_list} }};
{Path(__file__).with_name("engine.c").read_text(encoding="utf-8")}"""
