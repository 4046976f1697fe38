"""Tables of numbers in text files: what is no number is told, never passed over."""

import csv
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

SUFFIXES = (".csv", ".tsv", ".txt", ".dat")
_MISSING = {"", "nan", "na", "n/a", "null", "none", "-"}


def read(path: str) -> tuple[NDArray[np.float64], str]:
    """The numbers, and the header line or "". Empty cells and NA are NaN; a cell of text, a date
    or a row of another length is an error with its place. # begins a comment."""
    with open(path, newline="", encoding="utf-8", errors="replace") as file:
        lines = [(number, line.strip()) for number, line in enumerate(file, 1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if not lines:
        return np.empty((0, 0)), ""
    separator = _separator(lines[0][1])
    rows = [(number, _cells(line, separator)) for number, line in lines]
    header = ""
    if not any(_is_number(cell) for cell in rows[0][1]):
        header, rows = lines[0][1], rows[1:]
    return np.array([_numbers(path, row, rows[0]) for row in rows]), header


def _separator(line: str) -> str | None:
    """The one between cells: a semicolon, a tab or a comma; None for blanks."""
    return next((one for one in (";", "\t", ",") if one in line), None)


def _cells(line: str, separator: str | None) -> list[str]:
    if separator is None:
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return bool(re.search(r"\d|inf|nan", cell, re.I))


def _numbers(path: str, row: tuple[int, list[str]], first: tuple[int, list[str]]) -> list[float]:
    number, cells = row
    if len(cells) != len(first[1]):
        raise ValueError(
            f"{path}: line {number} has {len(cells)} cells and line {first[0]} has {len(first[1])}"
        )
    for cell in cells:
        if cell.lower() not in _MISSING and not _is_number(cell):
            raise ValueError(f"{path}: line {number}: {cell[:40]!r} is no number")
    return [np.nan if cell.lower() in _MISSING else float(cell) for cell in cells]


def is_table(path: str) -> bool:
    return path.lower().endswith(SUFFIXES)


def checked(path: str, table: NDArray[Any]) -> NDArray[Any]:
    if not table.size:
        raise ValueError(f"{path}: there are no numbers in it")
    return table
