"""What is wrong with an operator, said at the place where its author wrote it."""


class OperatorError(ValueError):
    """An operator's text or function cannot be used; the message names line and column."""


class Slip(Exception):
    """The same before it is known where: front ends add the place."""


def at_place(where: str, text: str, line: int, column: int, message: str) -> OperatorError:
    """The message with the line of the text and a mark below the column; both count from 1."""
    lines = text.split("\n")
    shown = lines[line - 1] if line <= len(lines) else ""
    mark = "".join(c if c == "\t" else " " for c in shown[: column - 1]) + "^"
    return OperatorError(
        f"{where}, line {line}, column {column}: {message}\n    {shown}\n    {mark}"
    )
