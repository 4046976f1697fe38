"""The text of a Python function, and what the names in it stand for."""

import ast
import builtins
import copy
import inspect
import math
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from gpureduce.custom.errors import OperatorError, at_place
from gpureduce.custom.functions import IN_PYTHON
from gpureduce.custom.scalars import kind_of


class Meaning(NamedTuple):
    """sort: "number", "array", "module", "function" or "type"; all of it pickles."""

    sort: str
    of: Any


class Source(NamedTuple):
    """A function as text. line is the first of text in its file; column what was cut off the
    beginning of lines."""

    name: str
    file: str
    line: int
    column: int
    text: str
    names: Mapping[str, Meaning]

    def tree(self) -> ast.FunctionDef | ast.Lambda:
        (statement,) = ast.parse(self.text).body
        if isinstance(statement, ast.FunctionDef):
            return statement
        assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Lambda)
        return statement.value

    def wrong(self, node: ast.AST, message: str) -> OperatorError:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        lines = [""] * (self.line - 1) + self.text.split("\n")
        where = f"{self.name} in {self.file}"
        return at_place(where, "\n".join(lines), line + self.line - 1, column + 1, message)


def source_of(function: Any, of: str) -> Source:
    if not isinstance(function, types.FunctionType):
        raise TypeError(
            f"{function!r} is no function of Python's: give a plain function of {of}, "
            "made by def or lambda"
        )
    name = function.__name__
    code = function.__code__
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise OperatorError(f"{name}: an async function is no operator")
    try:
        lines, _ = inspect.findsource(code)
    except (OSError, TypeError) as error:
        raise _unseen(name, str(error)) from None
    whole = "".join(lines)
    try:
        with warnings.catch_warnings():  # those of the file have been given
            warnings.simplefilter("ignore")
            tree = ast.parse(whole)
            node = _found(tree, code)
    except SyntaxError as error:
        raise OperatorError(f"{name}: its file cannot be read: {error}") from None
    if node is None and code.co_filename.startswith("<"):  # of a later text of that name
        raise _unseen(name, f"{code.co_filename} does not give its code")
    if node is None:
        raise OperatorError(
            f"{name}: {code.co_filename} does not give its code: its source has changed since it "
            "was imported, or it was made by exec or rewritten (as asserts are by pytest)"
        )
    if isinstance(node, ast.FunctionDef):
        node.decorator_list = []
    text = ast.get_source_segment(whole, node)
    if text is None:
        raise OperatorError(f"{name}: its source cannot be read")
    # Lines after the first keep the indentation of the file.
    first = node.lineno
    cut = node.col_offset
    rest = [line[min(cut, len(line) - len(line.lstrip())) :] for line in text.split("\n")[1:]]
    text = "\n".join([text.split("\n")[0], *rest])
    if isinstance(node, ast.Lambda):
        text = f"({text})"
    file = code.co_filename.rpartition("/")[2]
    return Source(name, file, first, cut, text, _names(name, function))


def _unseen(name: str, why: str) -> OperatorError:
    return OperatorError(
        f"{name}: its source cannot be read ({why}), as that of what is typed at a prompt or "
        "made by python -c or exec: save it in a file and import or run that, or write it in C "
        "and give the text to gpureduce.Operator"
    )


def _found(tree: ast.Module, code: types.CodeType) -> ast.FunctionDef | ast.Lambda | None:
    """What has that code, at its line if it can be: the lines above may have changed."""
    found = _lambdas if code.co_name == "<lambda>" else _functions
    for compiled in (_of_file, _of_cell):
        made = found(tree, code, compiled)
        here = [node for node, its in made if _parts(its) == _parts(code)]
        if here:
            break
    near = [node for node in here if _first(node) == code.co_firstlineno] or here
    return near[0] if near else None


def _first(node: ast.FunctionDef | ast.Lambda) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return min([node.lineno, *(d.lineno for d in decorators)])


Compiled = Callable[[ast.Module, str], Iterator[types.CodeType]]


def _functions(
    tree: ast.Module, code: types.CodeType, compiled: Compiled
) -> Iterator[tuple[ast.FunctionDef, types.CodeType]]:
    """All of that name in the file with their code: no two begin on one line."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    lines = {_first(node): node for node in nodes if node.name == code.co_name}
    for made in compiled(tree, code.co_filename):
        if made.co_name == code.co_name and made.co_firstlineno in lines:
            yield lines[made.co_firstlineno], made


def _lambdas(
    tree: ast.Module, code: types.CodeType, compiled: Compiled
) -> Iterator[tuple[ast.Lambda, types.CodeType]]:
    """All of the file with their code, which depends on what is imported and assigned around them:
    they are told apart by lines that the file has not."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    other = copy.deepcopy(tree)
    past = max(getattr(node, "end_lineno", None) or 0 for node in ast.walk(tree)) + 1
    lines: dict[int, ast.Lambda] = {}
    for node in ast.walk(other):
        if isinstance(node, ast.Lambda):
            node.lineno = node.end_lineno = past + len(lines)
            node.end_col_offset = node.col_offset
            lines[node.lineno] = nodes[len(lines)]
    for made in compiled(other, code.co_filename):
        # A def may begin there too, with a lambda as its decorator.
        if made.co_name == "<lambda>" and made.co_firstlineno in lines:
            yield lines[made.co_firstlineno], made


def _of_file(tree: ast.Module, file: str) -> Iterator[types.CodeType]:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # of a notebook's cell
    return _codes(compile(tree, file, "exec", flags, dont_inherit=True))


def _of_cell(tree: ast.Module, file: str) -> Iterator[types.CodeType]:
    """A notebook's cells are compiled a statement at a time, and an import beside a function
    changes its code."""
    for statement in tree.body:
        yield from _of_file(ast.Module([statement], []), file)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield inner
            yield from _codes(inner)


_STARS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def _parts(code: types.CodeType) -> tuple[Any, ...]:
    """What is the same of two functions that do the same, wherever they are."""
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
    names = (code.co_varnames, code.co_names, code.co_freevars, code.co_cellvars)
    constants = [_constant(one) for one in code.co_consts]
    return code.co_code, code.co_flags & _STARS, counts, names, constants


def _constant(value: Any) -> Any:
    """repr tells 1 from 1.0 and 0.0 from -0.0; that of code has its address, sets no order."""
    if isinstance(value, types.CodeType):
        return _parts(value)
    return sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)


def _names(name: str, function: types.FunctionType) -> dict[str, Meaning]:
    """What the function closes over and takes of its module, as far as it means something here."""
    found: dict[str, Meaning] = {}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    given: dict[str, Any] = {}
    for key in _globals(function.__code__):
        if key in function.__globals__:
            given[key] = function.__globals__[key]
        elif hasattr(builtins, key):
            given[key] = getattr(builtins, key)
    for key, cell in cells:
        try:
            given[key] = cell.cell_contents
        except ValueError:  # the function itself, for one, before it is assigned
            continue
    for key, value in given.items():
        if value is function or getattr(value, "__wrapped__", None) is function:
            found[key] = Meaning("itself", name)
        elif meaning := meaning_of(value):
            found[key] = meaning
        else:
            found[key] = Meaning("unknown", type(value).__name__)
    return found


def _globals(code: types.CodeType) -> set[str]:
    """Comprehensions are code of their own until Python 3.12."""
    inner = [_globals(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*inner)


_BUILTINS = {abs: "abs", min: "min", max: "max", sum: "sum", range: "range", pow: "pow",
             tuple: "tuple", list: "tuple"}  # fmt: skip
_TYPES = {float: "f8", int: "i8", bool: "b1", complex: "c16"}
_ROUNDED = {math.floor: "floor", math.ceil: "ceil", math.trunc: "trunc"}  # to an int


def meaning_of(value: Any) -> Meaning | None:
    if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
        return Meaning("number", value)
    if isinstance(value, np.generic):
        return Meaning("number", value) if kind_of(value.dtype) else None
    if isinstance(value, tuple | list | np.ndarray):
        return _array(value)
    if isinstance(value, types.ModuleType) and value in (math, np):
        return Meaning("module", value.__name__)
    try:
        if value in _TYPES:
            return Meaning("type", np.dtype(_TYPES[value]).str)
        if value in _BUILTINS:
            return Meaning("function", _BUILTINS[value])
        if value in _ROUNDED:
            return Meaning("function", f"int {_ROUNDED[value]}")
    except TypeError:  # what has no hash
        return None
    if isinstance(value, type) and issubclass(value, np.generic):
        dtype = np.dtype(value)
        return Meaning("type", dtype.str) if kind_of(dtype) else None
    return _function(value)


def _array(value: Any) -> Meaning | None:
    if isinstance(value, np.ndarray) and type(value) not in (np.ndarray, np.memmap):
        return None  # masks, units and matrices are more than their numbers
    try:
        array = np.asarray(value)
    except ValueError:  # rows of several lengths
        return None
    if array.dtype == object or kind_of(array.dtype) is None or not 1 <= array.ndim <= 2:
        return None
    if array.size > 4096:
        return None
    return Meaning("array", np.array(value) if isinstance(value, np.ndarray) else _fixed(value))


def _fixed(value: Any) -> Any:
    """What is changed later changes no operator."""
    return tuple(map(_fixed, value)) if isinstance(value, list | tuple) else copy.copy(value)


_NUMPYS = {"where": "where", "minimum": "minimum", "maximum": "maximum", "square": "square",
           "conjugate": "conjugate", "conj": "conjugate", "real": "real",
           "imag": "imag"}  # fmt: skip


def _function(value: Callable[..., Any]) -> Meaning | None:
    name = getattr(value, "__name__", "")
    module = getattr(value, "__module__", "")
    is_numpys = isinstance(value, np.ufunc) and getattr(np, name, None) is value
    if is_numpys or (name in _NUMPYS and getattr(np, name, None) is value):
        found = _NUMPYS.get(name) or IN_PYTHON.get(name)
        return Meaning("function", found) if found else None
    if module == "math" and name in IN_PYTHON:
        return Meaning("function", IN_PYTHON[name])
    return None
