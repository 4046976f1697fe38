"""Tokens of an operator's text."""

import re
from typing import NamedTuple

from gpureduce.custom.errors import at_place

TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|//[^\n]*|/\*.*?\*/|\\\r?\n)
      | (?P<line>\n)
      | (?P<open>/\*)
      | (?P<number>0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*(?:[pP][+-]?[0-9]+)?\w*
                 | (?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\w*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<mark><<=|>>=|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^~!<>=?:;,.()\[\]{}])
    """,
    re.X | re.S,
)
# A line that ends or begins with one of these goes on.
_BINARY = {
    "*", "/", "%", "&", "|", "^", "<", ">", "<=", ">=", "==", "!=", "&&", "||", "<<", ">>", "=",
    "?", ":", ",",
}  # fmt: skip
_ASSIGNED = {f"{op}=" for op in ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")}
OPEN_ENDED = {"+", "-", "~", "!", "(", "[", *_BINARY, *_ASSIGNED}
GOES_ON = {")", "]", ".", *_BINARY}
REFUSED = {
    "/*": "this comment does not end",
    "#": "a line of the preprocessor has no place in an operator",
    '"': "there are no strings in an operator",
    "'": "there are no characters in an operator",
}


class Token(NamedTuple):
    """kind: "number", "name", "mark", ";" for what ends a statement, "end"."""

    kind: str
    text: str
    line: int
    column: int


class Text(NamedTuple):
    """What a user wrote, and what it is called in messages."""

    where: str
    text: str

    def wrong(self, token: Token, message: str) -> Exception:
        return at_place(self.where, self.text, token.line, token.column, message)


def tokens_of(source: Text) -> list[Token]:
    text, at, line, start = source.text, 0, 1, 0
    found: list[Token] = []
    depth = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        here = Token("mark", text[at], line, at - start + 1)
        if not match or match.lastgroup == "open":
            word = match[0] if match else here.text
            raise source.wrong(here, REFUSED.get(word, f"{word!r} is no part of C"))
        at = match.end()
        word, kind = match[0], match.lastgroup or ""
        if kind == "line":
            if depth == 0:
                found.append(here._replace(kind=";", text="\n"))
        elif kind != "space":
            token = here._replace(kind=";" if word == ";" else kind, text=word)
            depth = max(0, depth + (word in "([") - (word in ")]"))
            found.append(token)
        line += word.count("\n")
        if "\n" in word:
            start = match.start() + word.rindex("\n") + 1
    found.append(Token("end", "", line, len(text) - start + 1))
    return _joined(source, found)


def _joined(source: Text, tokens: list[Token]) -> list[Token]:
    """Without the ends of lines where a statement goes on."""
    kept: list[Token] = []
    after = [tokens[-1]]  # of each token what follows it, but for ends of lines
    for token in reversed(tokens):
        after.append(after[-1] if token.text == "\n" else token)
    for token, following in zip(tokens, reversed(after[:-1]), strict=True):
        if token.text == "\n":
            open_ended = kept and kept[-1].kind == "mark" and kept[-1].text in OPEN_ENDED
            if not kept or open_ended or following.text in GOES_ON or kept[-1].kind == ";":
                continue
            if following.text in ("+", "-") and following.kind == "mark":
                raise source.wrong(
                    following,
                    f"a line that begins with {following.text} may go on with the one before: "
                    f"end that one with {following.text}, or with ;",
                )
        kept.append(token)
    return kept
