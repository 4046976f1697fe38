"""Operators written as Python functions: a subset of the language, on numbers of one type each."""

import ast
from collections.abc import Sequence
from typing import Any

from gpureduce.custom.graph import Graph, Node
from gpureduce.custom.python_expressions import Expressions
from gpureduce.custom.python_source import Source


class _Missing:
    """A function that has not returned yet."""


_FALLS = _Missing()
STEPS_MOST = 30_000  # statements on all ways together: they double where branches return


def translate(source: Source, graph: Graph, given: Sequence[Any]) -> Any:
    """What the function gives back for these values."""
    tree = source.tree()
    args = tree.args
    names = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    if args.vararg or args.kwarg or args.kwonlyargs or args.defaults:
        raise source.wrong(tree, f"{source.name} takes plain arguments alone, without defaults")
    if len(names) != len(given):
        raise source.wrong(tree, f"{source.name} takes {len(names)} arguments, not {len(given)}")
    body = _Body(source, graph, dict(zip(names, given, strict=True)))
    if isinstance(tree, ast.Lambda):
        return body.value(tree.body)
    found = body.run(tree.body)
    if found is _FALLS:
        raise source.wrong(tree.body[-1], f"{source.name} may end here without a return")
    return found


class _Body(Expressions):
    def run(self, statements: Sequence[ast.stmt]) -> Any:
        """The value that is returned, or _FALLS."""
        for place, statement in enumerate(statements):
            self.count(statement)
            if isinstance(statement, ast.Return):
                if statement.value is None:
                    raise self.source.wrong(statement, "a return without a value")
                return self.value(statement.value)
            if not isinstance(statement, ast.If):
                self.execute(statement)
            elif _returns([*statement.body, *statement.orelse]):
                return self.ways(statement, statements[place + 1 :])
            else:
                self.branch(statement)
        return _FALLS

    def count(self, statement: ast.stmt) -> None:
        self.steps += 1
        if self.steps > STEPS_MOST:
            what = f"more than {STEPS_MOST} statements on all ways through it"
            raise self.source.wrong(statement, f"{self.source.name} is too long: {what}")

    def execute(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Assign):
            value = self.value(statement.value)
            for target in statement.targets:
                self.assign(target, value)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self.assign(statement.target, self.value(statement.value))
        elif isinstance(statement, ast.AugAssign):
            before = self.value(_read(statement.target))
            after = self.operation(statement, statement.op, before, self.value(statement.value))
            self.assign(statement.target, after)
        elif isinstance(statement, ast.For):
            self.loop(statement)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return  # a docstring
        elif isinstance(statement, ast.Expr):
            self.value(statement.value)
            raise self.source.wrong(statement, "this has no effect")
        elif not isinstance(statement, ast.Pass):
            raise self.refused(statement)

    def condition(self, s: ast.If) -> Node:
        return self.tried(s.test, self.maker.truth, self.number(s.test))  # type: ignore[no-any-return]

    def branch(self, s: ast.If) -> None:
        """One in which nothing is returned."""
        condition = self.condition(s)
        if condition.op == "const":
            self.run(s.body if condition.detail else s.orelse)
            return
        before = dict(self.names)
        self.run(s.body)
        after, self.names = self.names, before
        self.run(s.orelse)
        names = {**after, **self.names}
        self.names = {n: self.merged(s, condition, after.get(n), self.names.get(n)) for n in names}

    def ways(self, s: ast.If, rest: Sequence[ast.stmt]) -> Any:
        """One that may return: what follows it goes on from either way."""
        condition = self.condition(s)
        if condition.op == "const":
            return self.run([*(s.body if condition.detail else s.orelse), *rest])
        before = dict(self.names)
        yes = self.run([*s.body, *rest])
        self.names = before
        no = self.run([*s.orelse, *rest])
        if yes is _FALLS or no is _FALLS:
            raise self.source.wrong(s, f"{self.source.name} does not return a value on every way")
        return self.merged(s, condition, yes, no)

    def loop(self, s: ast.For) -> None:
        if s.orelse:
            raise self.source.wrong(s.orelse[0], "else of a loop has no place in an operator")
        for item in self.turned(s.iter):
            self.assign(s.target, item)
            if self.run(s.body) is not _FALLS:
                raise self.source.wrong(s, "a return in a loop has no place in an operator")


def _returns(statements: Sequence[ast.stmt]) -> bool:
    return any(isinstance(n, ast.Return) for one in statements for n in ast.walk(one))


def _read(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    return target
