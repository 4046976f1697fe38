"""Numbers as C writes them."""

import re
from collections.abc import Sequence

from gpureduce.custom.errors import Slip
from gpureduce.custom.graph import Graph, Node
from gpureduce.custom.scalars import F4, F8, I4, I8, U4, U8, Scalar


def number_of(graph: Graph, text: str) -> Node:
    """A literal of C, of the type that its suffix and value give it."""
    lower = text.lower()
    is_hex = lower.startswith("0x")
    if re.fullmatch(r"(0x[0-9a-f]+|\d+)(u?l{0,2}|l{1,2}u)", lower):
        digits = lower.rstrip("ul")
        if not is_hex and len(digits) > 1 and digits[0] == "0":
            if not re.fullmatch("[0-7]+", digits):
                raise Slip(f"{text} begins with 0 and is no octal number")
            value = int(digits, 8)
        else:
            value = _whole(digits)
        kinds = [I4, U4, I8, U8] if is_hex else [I4, I8]
        kinds = [k for k in kinds if "l" not in lower[len(digits) :] or k.bits == 64]
        if "u" in lower[len(digits) :]:
            kinds = [k for k in (U4, U8) if "l" not in lower or k is U8]
        return graph.const(value, first_that_holds(value, kinds))
    suffix = lower[-1] if lower[-1] in "fl" and not (is_hex and "p" not in lower) else ""
    body = lower[: -len(suffix)] if suffix else lower
    if suffix == "l":
        raise Slip(f"{text} is a long double, which devices have not")
    try:
        number = float.fromhex(body) if is_hex else float(body)
    except (ValueError, OverflowError):
        raise Slip(f"{text} is no number") from None
    if "_" in body:
        raise Slip(f"{text} is no number")
    node = graph.const(number, F8)
    return graph.cast(node, F4) if suffix == "f" else node


def _whole(digits: str) -> int:
    try:
        return int(digits, 0)
    except ValueError:  # Python reads no more than some thousand digits
        raise Slip("this is too large for an integer of 64 bits") from None


def first_that_holds(value: int, kinds: Sequence[Scalar]) -> Scalar:
    for kind in kinds:
        low = -(1 << (kind.bits - 1)) if kind.kind == "i" else 0
        if low <= value < 1 << (kind.bits - (kind.kind == "i")):
            return kind
    raise Slip("this is too large for an integer of 64 bits")
