"""The parts of an operator's text: C's expressions, assignments, if and for."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias, TypeVar

from gpureduce.custom.scan import Text, Token, tokens_of


class Number(NamedTuple):
    at: Token


class Name(NamedTuple):
    at: Token


class Member(NamedTuple):
    """record.field"""

    at: Token
    of: "Expression"
    field: str


class Element(NamedTuple):
    """array[index]"""

    at: Token
    of: "Expression"
    place: "Expression"


class Unary(NamedTuple):
    at: Token
    operand: "Expression"


class Binary(NamedTuple):
    at: Token
    left: "Expression"
    right: "Expression"


class Choice(NamedTuple):
    at: Token
    condition: "Expression"
    yes: "Expression"
    no: "Expression"


class Cast(NamedTuple):
    at: Token
    type: str
    operand: "Expression"


class Call(NamedTuple):
    at: Token
    name: str
    args: "tuple[Expression, ...]"


Expression: TypeAlias = Number | Name | Member | Element | Unary | Binary | Choice | Cast | Call


class Assign(NamedTuple):
    """operator is "" for =, "+" for +=; type is that of a declaration, or ""."""

    at: Token
    target: Expression
    operator: str
    value: "Expression | None"
    type: str
    sizes: tuple[Expression, ...]


class If(NamedTuple):
    at: Token
    condition: Expression
    yes: "tuple[Statement, ...]"
    no: "tuple[Statement, ...]"


class For(NamedTuple):
    at: Token
    start: "Statement"
    condition: Expression
    step: "Statement"
    body: "tuple[Statement, ...]"


class Bare(NamedTuple):
    """An expression as a statement: the result, if it is the last."""

    at: Token
    value: Expression


Statement: TypeAlias = Assign | If | For | Bare

# C's types as words in any order; what their words in order of the alphabet mean.
_WORDS = {"double", "float", "int", "long", "short", "signed", "unsigned", "char", "bool", "_Bool",
          "complex", "_Complex"}  # fmt: skip
_MEANINGS = {
    "double": "f8", "float": "f4", "bool": "b1", "_Bool": "b1",
    "complex double": "c16", "complex float": "c8",
    "_Complex double": "c16", "_Complex float": "c8",
    "int": "i4", "int signed": "i4", "signed": "i4",
    "unsigned": "u4", "int unsigned": "u4",
    "int short": "i2", "short": "i2", "short unsigned": "u2", "int short unsigned": "u2",
    "char signed": "i1", "char unsigned": "u1",
    "long": "i8", "int long": "i8", "long long": "i8", "int long long": "i8",
    "long unsigned": "u8", "int long unsigned": "u8", "long long unsigned": "u8",
    "int long long unsigned": "u8",
}  # fmt: skip
_SIZED = {
    f"{u}int{bits}_t": f"{u or 'i'}{bits // 8}" for u in ("", "u") for bits in (8, 16, 32, 64)
}
_KEYWORDS = {
    "asm", "__asm", "__asm__", "auto", "break", "case", "const", "continue", "default", "do",
    "enum", "extern", "goto", "inline", "register", "restrict", "return", "sizeof", "static",
    "struct", "switch", "typedef", "union", "void", "volatile", "while",
}  # fmt: skip
_LEVELS = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", "<=", ">", ">="], ["<<", ">>"],
           ["+", "-"], ["*", "/", "%"]]  # fmt: skip
_LEVEL = {op: number for number, ops in enumerate(_LEVELS) for op in ops}
_DEPTH_MOST = 100
T = TypeVar("T")


def parse(source: Text) -> tuple[Statement, ...]:
    parser = _Parser(source)
    found = parser.statements(("end",))
    return found


class _Parser:
    def __init__(self, source: Text):
        self.source = source
        self.tokens = tokens_of(source)
        self.place = 0
        self.depth = 0

    # --- tokens ---------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    def wrong(self, message: str, token: Token | None = None) -> Exception:
        return self.source.wrong(token or self.token, message)

    def take(self) -> Token:
        token = self.token
        self.place += token.kind != "end"
        return token

    def follows(self, *texts: str) -> bool:
        return self.token.kind != "end" and self.token.text in texts

    def accept(self, text: str) -> bool:
        if not self.follows(text):
            return False
        self.take()
        return True

    def expect(self, text: str) -> Token:
        if not self.follows(text):
            raise self.wrong(f"{text} is expected here, not {_shown(self.token)}")
        return self.take()

    # --- statements -----------------------------------------------------------------------------

    def statements(self, until: tuple[str, ...]) -> tuple[Statement, ...]:
        found: list[Statement] = []
        while True:
            while self.token.kind == ";":
                self.take()
            if self.token.kind == "end" or self.token.text in until:
                if "end" in until or self.token.kind != "end":
                    return tuple(found)
                raise self.wrong("a { is not closed")
            if self.follows("}"):
                raise self.wrong("there is no { that this } closes")
            found.extend(self.statement())

    def statement(self) -> tuple[Statement, ...]:
        """Those of a block are as many as it has; a block has no names of its own."""
        if self.accept("{"):
            found = self.statements(("}",))
            self.expect("}")
            return found
        if self.follows("if"):
            return (self._if(),)
        if self.follows("for"):
            return (self._for(),)
        found = self.simple()
        if self.token.kind not in (";", "end") and not self.follows("}"):
            hint = "; a choice is x ? y : z" if self.follows("if") else ""
            raise self.wrong(f"the statement should end before {_shown(self.token)}{hint}")
        return found

    def _if(self) -> If:
        at = self.take()
        self.expect("(")
        condition = self.expression()
        self.expect(")")
        yes = self._body()
        no: tuple[Statement, ...] = ()
        mark = self.place
        while self.token.kind == ";":
            self.take()
        if self.accept("else"):
            no = self._body()
        else:
            self.place = mark
        return If(at, condition, yes, no)

    def _body(self) -> tuple[Statement, ...]:
        while self.token.text == "\n":
            self.take()
        return self._deeper(self.statement)

    def _for(self) -> For:
        at = self.take()
        self.expect("(")
        start = self._alone()
        self.expect(";")
        condition = self.expression()
        self.expect(";")
        step = self._alone()
        self.expect(")")
        return For(at, start, condition, step, self._body())

    def _alone(self) -> Statement:
        at = self.token
        found = self.simple()
        if len(found) > 1:
            raise self.wrong("a loop has one variable", at)
        return found[0]

    def simple(self) -> tuple[Statement, ...]:
        """An assignment, a declaration of one or more names, or an expression."""
        at, type_ = self.token, self.type_name()
        if not type_:
            return (self._assignment(""),)
        found = [self._declared(at, type_)]
        while self.accept(","):
            found.append(self._declared(at, type_))
        return tuple(found)

    def _declared(self, at: Token, type_: str) -> Assign:
        name, sizes = self.token, []
        if name.kind != "name":
            raise self.wrong(f"a name is expected here, not {_shown(name)}")
        self._checked(self.take())
        while self.accept("["):
            sizes.append(self.expression())
            self.expect("]")
        value = None
        if self.accept("="):
            value = self.expression()
        return Assign(name, Name(name), "", value, type_, tuple(sizes))

    def _assignment(self, type_: str) -> Statement:
        at = self.token
        for text in ("++", "--"):
            if self.accept(text):
                target = self.postfix()
                return Assign(at, target, text[0], Number(at._replace(text="1")), "", ())
        left = self.expression()
        token = self.token
        if self.follows("++", "--"):
            self.take()
            return Assign(at, left, token.text[0], Number(token._replace(text="1")), "", ())
        if token.kind == "mark" and token.text.endswith("=") and token.text not in _COMPARED:
            self.take()
            return Assign(at, left, token.text[:-1], self.expression(), type_, ())
        return Bare(at, left)

    # --- expressions ----------------------------------------------------------------------------

    def _deeper(self, method: Callable[[], T]) -> T:
        """A limit where Python has none that can be told."""
        self.depth += 1
        if self.depth > _DEPTH_MOST:
            raise self.wrong("this is nested too deeply")
        try:
            return method()
        finally:
            self.depth -= 1

    def expression(self) -> Expression:
        return self._deeper(self._choice)

    def _choice(self) -> Expression:
        condition = self.level(0)
        if not self.follows("?"):
            return condition
        at = self.take()
        yes = self.expression()
        self.expect(":")
        return Choice(at, condition, yes, self.expression())

    def level(self, least: int) -> Expression:
        """Operators that bind as tightly as _LEVELS[least], or more."""
        left = self._deeper(self.unary)
        while self.token.kind == "mark" and _LEVEL.get(self.token.text, -1) >= least:
            at = self.take()
            left = Binary(at, left, self.level(_LEVEL[at.text] + 1))
        return left

    def unary(self) -> Expression:
        if self.token.kind == "mark" and self.token.text in ("-", "+", "!", "~"):
            return Unary(self.take(), self._deeper(self.unary))
        if self.follows("(") and (cast := self._cast()):
            return cast
        return self.postfix()

    def _cast(self) -> Cast | None:
        at, mark = self.take(), self.place
        type_ = self.type_name()
        if type_:
            self.expect(")")
            return Cast(at, type_, self._deeper(self.unary))
        self.place = mark - 1
        return None

    def postfix(self) -> Expression:
        found = self.primary()
        while True:
            if self.follows("."):
                at = self.take()
                field = self.take()
                if field.kind != "name":
                    raise self.wrong(f"a field's name is expected after the {at.text}", field)
                found = Member(field, found, field.text)
            elif self.follows("["):
                at = self.take()
                found = Element(at, found, self.expression())
                self.expect("]")
            else:
                return found

    def primary(self) -> Expression:
        token = self.take()
        if token.kind == "number":
            return Number(token)
        if token.text == "(":
            inner = self.expression()
            self.expect(")")
            return inner
        if token.kind != "name":
            raise self.wrong(f"an expression is expected here, not {_shown(token)}", token)
        self._checked(token)
        if self.accept("("):
            return Call(token, token.text, self._arguments())
        return Name(token)

    def _arguments(self) -> tuple[Expression, ...]:
        args: list[Expression] = []
        while not self.accept(")"):
            if args:
                self.expect(",")
            args.append(self.expression())
        return tuple(args)

    def _checked(self, token: Token) -> None:
        if token.text in _KEYWORDS or token.text in ("if", "for", "else"):
            raise self.wrong(f"{token.text} has no place here", token)

    def type_name(self) -> str:
        """The type that is named here, "" if there is none."""
        if self.token.kind == "name" and self.token.text in _SIZED:
            return _SIZED[self.take().text]
        at, words = self.token, []
        while self.token.kind == "name" and self.token.text in _WORDS:
            words.append(self.take().text)
        meaning = _MEANINGS.get(" ".join(sorted(words)), "")
        if words and not meaning:
            raise self.wrong(f"{' '.join(words)} is no type of these numbers", at)
        return meaning


_COMPARED = ("==", "<=", ">=", "!=")


def _shown(token: Token) -> str:
    if token.kind == "end":
        return "the end"
    return "the end of the line" if token.text == "\n" else token.text
