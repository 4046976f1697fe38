"""Tables of numbers in text files: what is no number is told, never passed over."""

import csv
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SUFFIXES = (".csv", ".tsv", ".txt")
_MISSING = {"", "nan", "na", "n/a", "null", "none", "-"}


def read(path: str) -> tuple[NDArray[Any], str]:
    """Numbers, int64 where all are whole and fit, else float64, and the header line or "". Empty
    cells and NA are NaN; a cell of text, a date or a row of another length is an error with its
    place. # begins a comment."""
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        lines = [(n, line) for n, line in enumerate(file, 1) if line.strip(" \r\n")]
    lines = [(n, line) for n, line in lines if not line.lstrip().startswith("#")]
    first = next((line for _, line in lines if line.strip()), "")
    separator = _separator(path, first)
    if separator != "\t":  # else a line of tabs is one of empty cells
        lines = [(n, line) for n, line in lines if line.strip()]
    if not first:
        return np.empty((0, 0)), ""
    rows = [(n, _cells(line, separator)) for n, line in lines]
    header = ""
    if any(rows[0][1]) and not any(map(_is_number, rows[0][1])):
        header, rows = lines[0][1].strip(), rows[1:]
    if rows and all(len(row[1]) == len(rows[0][1]) and all(map(_is_whole, row[1])) for row in rows):
        return np.array([[int(cell) for cell in row[1]] for row in rows]), header
    return np.array([_numbers(path, row, rows[0]) for row in rows]), header


def _separator(path: str, line: str) -> str | None:
    """The one between cells: a semicolon, a tab or a comma; None for blanks. Tabs at a line's ends
    alone are blanks too, but in a .tsv file."""
    if path.lower().endswith(".tsv") and "\t" in line:
        return "\t"
    return next((one for one in (";", "\t", ",") if one in line.strip()), None)


def _cells(line: str, separator: str | None) -> list[str]:
    if separator is None:
        return line.split()
    line = line.strip(" \r\n" if separator == "\t" else None)
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return bool(re.search(r"\d|inf|nan", cell, re.I)) and "_" not in cell


def _is_whole(cell: str) -> bool:
    return bool(re.fullmatch(r"[+-]?\d{1,19}", cell)) and -(1 << 63) <= int(cell) < 1 << 63


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
    return is_table_only(path) or path.lower().endswith(".dat")


def is_table_only(path: str) -> bool:
    """A .dat file may have raw numbers in it."""
    return path.lower().endswith(_SUFFIXES)


def checked(path: str, table: NDArray[Any]) -> NDArray[Any]:
    if not table.size:
        raise ValueError(f"{path}: there are no numbers in it")
    return table
