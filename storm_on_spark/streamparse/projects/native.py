"""Native classes from the simple components of a streamparse project. Code is read and rewritten, never imported."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from storm_on_spark.api.component import BaseBasicBolt, BaseRichSpout

SUFFIX: Final = "_native.py"
_MODULES: Final = frozenset({"streamparse", "pystorm"})
_RENAMED: Final = {"initialize": "prepare", "process": "execute"}
_TAKEN: Final = {
    "Bolt": frozenset(dir(BaseBasicBolt)) - {"__init__"},
    "Spout": (frozenset(dir(BaseRichSpout)) | {"collector"}) - {"next_tuple", "ack", "fail", "activate", "deactivate"},
}
_ARGUMENTS: Final = {
    "Bolt": {"initialize": 3, "process": 2},
    "Spout": {"initialize": 3, "next_tuple": 1, "ack": 2, "fail": 2, "activate": 1, "deactivate": 1, "exhausted": 1},
}
_OTHERS: Final = frozenset({"process_tick", "process_batch", "group_key", "run", "is_tick", "is_heartbeat"})


@dataclass(frozen=True)
class Native:
    """What becomes of one component."""

    file: str
    """Where the component is, relative to the project."""
    line: int
    what: str
    """Its class."""
    target: str
    """The file of the native class, relative to the project; empty if it is not simple."""
    why: str
    """What is not simple."""


class _NotSimpleError(Exception):
    pass


def native_of(file: str, tree: ast.Module, kinds: dict[str, str]) -> tuple[list[Native], str]:
    """Returns what becomes of the components of a file, and the code of the native ones, or an empty string.

    Args:
        file: its path in the project.
        tree: its code.
        kinds: the names of its components' classes, with the class of pystorm that each is derived from.
    """
    found: list[Native] = []
    made: list[ast.stmt] = []
    module = _Module(tree)
    target = file.removesuffix(".py") + SUFFIX
    tops = {statement.name: statement for statement in tree.body if isinstance(statement, ast.ClassDef)}
    names_of_classes = Counter(statement.name for statement in ast.walk(tree) if isinstance(statement, ast.ClassDef))
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef) or node.name not in kinds:
            continue
        try:
            if tops.get(node.name) is not node or names_of_classes[node.name] > 1:
                raise _NotSimpleError("it is not a class at the top of its file, or there are two of its name")
            made.append(_Rewriter(node, kinds[node.name], module).made)
            found.append(Native(file, node.lineno, node.name, target, ""))
        except _NotSimpleError as error:
            found.append(Native(file, node.lineno, node.name, "", str(error)))
    if not made:
        return found, ""
    needed = module.needed(made)
    code = ast.unparse(ast.fix_missing_locations(ast.Module([*needed, *made], [])))
    names = sorted({base.id for node in made for base in node.bases if isinstance(base, ast.Name)})  # type: ignore[attr-defined]
    head = [
        f'"""Native classes, made from {Path(file).name} by storm-spark migrate."""',
        "from __future__ import annotations",
        *(["import logging as _logging"] if "_log." in code else []),
        f"from storm_on_spark import {', '.join([*names, 'Fields'])}",
        *(["_log = _logging.getLogger(__name__)"] if "_log." in code else []),
    ]
    text = "\n".join([*head, code]) + "\n"
    compile(text, target, "exec", dont_inherit=True)
    return found, text


class _Module:
    """The names at the top of a file: imports, functions, and constants may be taken along."""

    def __init__(self, tree: ast.Module) -> None:
        self._places: dict[str, ast.stmt] = {}
        self._counts: dict[str, int] = {}
        self._order = tree.body
        for statement in tree.body:
            for name in _bound(statement):
                self._counts[name] = self._counts.get(name, 0) + 1
                self._places[name] = statement

    def is_pystorms(self, base: ast.expr) -> bool:
        """Whether an expression is a class of streamparse or pystorm itself."""
        if isinstance(base, ast.Name):
            place = self._places.get(base.id)
            return isinstance(place, ast.ImportFrom) and (place.module or "").partition(".")[0] in _MODULES
        return isinstance(base, ast.Attribute) and ast.unparse(base).partition(".")[0] in _MODULES

    def check(self, node: ast.AST, own: frozenset[str] = frozenset()) -> None:
        """Checks that a class or function uses only names that can be taken along.

        Raises:
            _NotSimpleError: it uses others.
        """
        for name in sorted(_free(node) - own):
            if name in self._places:
                place = self._places[name]
                if self._counts[name] > 1:
                    raise _NotSimpleError(f"it uses {name}, which its file sets more than once")
                if isinstance(place, ast.ImportFrom) and (place.module or "").partition(".")[0] in _MODULES:
                    raise _NotSimpleError(f"it uses {name} of {place.module}")
                if isinstance(place, ast.Import) and place.names[0].name.partition(".")[0] in _MODULES:
                    raise _NotSimpleError(f"it uses {name}")
                if isinstance(place, ast.FunctionDef):
                    self.check(place, own | {name})
                elif isinstance(place, (ast.Assign, ast.AnnAssign)):
                    _literal(place.value, f"it uses {name} of its file, which is not a constant")
                elif not isinstance(place, (ast.Import, ast.ImportFrom)):
                    raise _NotSimpleError(f"it uses {name} of its file, which is not an import, function or constant")
            elif not hasattr(builtins, name):
                raise _NotSimpleError(f"it uses {name}, which its file does not import by name")

    def needed(self, made: list[ast.stmt]) -> list[ast.stmt]:
        """Returns the statements at the top of the file that classes need, in their order."""
        wanted: set[int] = set()
        waiting: list[ast.AST] = list(made)
        while waiting:
            for name in _free(waiting.pop()):
                place = self._places.get(name)
                if place is not None and id(place) not in wanted and not isinstance(place, ast.ClassDef):
                    wanted.add(id(place))
                    waiting.append(place)
        return [statement for statement in self._order if id(statement) in wanted]


def _bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    else:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _free(node: ast.AST) -> set[str]:
    """Returns the names that a class or function reads and does not bind itself."""
    if isinstance(node, (ast.ClassDef, ast.Module)):
        return set().union(*map(_free, node.body))
    read: set[str] = set()
    stored: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            (read if isinstance(inner.ctx, ast.Load) else stored).add(inner.id)
        elif isinstance(inner, ast.arg):
            stored.add(inner.arg)
        elif isinstance(inner, ast.ExceptHandler) and inner.name:
            stored.add(inner.name)
        elif isinstance(inner, (ast.Import, ast.ImportFrom)):
            stored.update(_bound(inner))
    return read - stored


def _literal(value: ast.expr | None, why: str) -> object:
    try:
        return ast.literal_eval(value)  # type: ignore[arg-type]
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise _NotSimpleError(why) from None


class _Rewriter(ast.NodeTransformer):
    """Makes the native class of one component.

    Raises:
        _NotSimpleError: it is not simple, and why.
    """

    def __init__(self, node: ast.ClassDef, kind: str, module: _Module) -> None:
        if kind not in _TAKEN:
            raise _NotSimpleError(f"a {kind} has no native class that does the same")
        if len(node.bases) != 1 or node.keywords or node.decorator_list or not module.is_pystorms(node.bases[0]):
            raise _NotSimpleError("it has other bases than streamparse's, or a decorator")
        self._kind, self._method, self._tuple, self._context = kind, "", "", ""
        self._own: set[str] = {"emit", "logger"}
        body = ast.parse(ast.unparse(node)).body[0]
        assert isinstance(body, ast.ClassDef)  # what was unparsed was one
        self._collect(body)
        taken = {"collector", "_log", "_logging", "Fields", "BaseBasicBolt", "BaseRichSpout"}
        if used := taken & {inner.id for inner in ast.walk(body) if isinstance(inner, ast.Name)}:
            raise _NotSimpleError(f"it uses the name {min(used)}")
        module.check(ast.Module(body.body, []))
        outputs: object = []
        made: list[ast.stmt] = []
        for statement in body.body:
            if isinstance(statement, ast.FunctionDef):
                made.append(self._function(statement))
            elif _names(statement) == ["outputs"]:
                outputs = _literal(statement.value, "its outputs are not a list of names")  # type: ignore[attr-defined]
            else:
                made.append(statement)
        if not isinstance(outputs, (list, tuple)) or not all(isinstance(name, str) for name in outputs):
            raise _NotSimpleError("its outputs are not a list of names")
        needed = "process" if kind == "Bolt" else "next_tuple"
        if needed not in self._own:
            raise _NotSimpleError(f"it has no {needed} of its own")
        if kind == "Spout":
            made.extend(_spout_methods(made))
        if outputs:
            fields = ", ".join(map(repr, outputs))
            made += _methods(f"def declare_output_fields(self, declarer):\n    declarer.declare(Fields({fields}))")
        body.bases = [ast.Name("BaseBasicBolt" if kind == "Bolt" else "BaseRichSpout", ast.Load())]
        body.body = made
        self.made: ast.stmt = body

    def _collect(self, body: ast.ClassDef) -> None:
        for statement in body.body:
            if isinstance(statement, ast.FunctionDef):
                self._own.add(statement.name)
                known = statement.name in _ARGUMENTS[self._kind]
                if statement.name in _OTHERS or (statement.name in _TAKEN[self._kind] and not known):
                    raise _NotSimpleError(f"it has a method {statement.name}")
                if statement.decorator_list:
                    raise _NotSimpleError(f"its method {statement.name} has a decorator")
            elif names := _names(statement):
                if any(name.startswith("auto_") or name in {"exit_on_exception", "max_fails"} for name in names):
                    raise _NotSimpleError(f"it sets {', '.join(names)}")
                if names != ["outputs"]:
                    _literal(statement.value, f"its {', '.join(names)} is no constant")  # type: ignore[attr-defined]
                self._own.update(names)
            elif not (
                isinstance(statement, ast.Pass)
                or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
            ):
                raise _NotSimpleError("it has more than methods and constants")
        for node in ast.walk(body):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is(node.value, "self"):
                if node.attr in _TAKEN[self._kind] or node.attr in {"emit", "logger"}:
                    raise _NotSimpleError(f"it sets self.{node.attr}, which is another thing in a native class")
                self._own.add(node.attr)

    def _function(self, function: ast.FunctionDef) -> ast.stmt:
        name, arguments = function.name, function.args
        count = _ARGUMENTS[self._kind].get(name)
        plain = not (arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs)
        if not arguments.args or arguments.args[0].arg != "self":
            raise _NotSimpleError(f"the first argument of its method {name} is not self")
        if count is not None and (not plain or len(arguments.args) != count or arguments.defaults):
            raise _NotSimpleError(f"its method {name} has other arguments than pystorm's")
        self._method = name
        self._tuple = arguments.args[1].arg if name == "process" else ""
        self._context = arguments.args[2].arg if name == "initialize" else ""
        function.body = [self.visit(statement) for statement in function.body]
        if name == "process" and self._kind == "Bolt":
            arguments.args.append(ast.arg("collector"))
            function.body.insert(_after_docstring(function.body), *ast.parse(f"if {self._tuple}.is_tick: return").body)
        if name == "initialize" and self._kind == "Spout":
            arguments.args.append(ast.arg("collector"))
            function.name = "open"
            function.body.insert(_after_docstring(function.body), *ast.parse("self.collector = collector").body)
        elif self._kind == "Bolt":
            function.name = _RENAMED.get(name, name)
        return function

    # --- expressions ------------------------------------------------------------------------------------

    def visit_Expr(self, node: ast.Expr) -> ast.AST:  # ast's name
        """Rewrites an emit, which is a separate statement."""
        call = node.value
        if not (isinstance(call, ast.Call) and _is_self(call.func, "emit")):
            return self.generic_visit(node)
        keywords = [keyword.arg for keyword in call.keywords]
        if len(call.args) != 1 or isinstance(call.args[0], ast.Starred):
            raise _NotSimpleError("it emits with more than the values")
        if self._kind == "Bolt":
            if self._method != "process":
                raise _NotSimpleError(f"it emits in its method {self._method}, not in process")
            if keywords:
                raise _NotSimpleError(f"it emits with {', '.join(map(str, keywords))}")
            call.func = ast.Attribute(ast.Name("collector", ast.Load()), "emit", ast.Load())
        else:
            if keywords not in ([], ["tup_id"]):
                raise _NotSimpleError(f"it emits with {', '.join(map(str, keywords))}")
            if self._method == "initialize":
                raise _NotSimpleError("it emits in initialize")
            call.func = ast.parse("self.collector.emit", mode="eval").body
            for keyword in call.keywords:
                keyword.arg = "message_id"
                keyword.value = self.visit(keyword.value)
        call.args = [self.visit(call.args[0])]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Refuses methods of the named tuple of values."""
        if self._tuple and isinstance(node.func, ast.Attribute) and self._values(node.func.value):
            raise _NotSimpleError(f"it calls {node.func.attr} of its tuple's values")
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Takes a value by its position."""
        if self._values(node.value) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
            return node
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Takes all values at once."""
        if self._values(node.value) and all(isinstance(target, ast.Tuple) for target in node.targets):
            node.targets = [self.visit(target) for target in node.targets]
            return node
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Rewrites what is read of `self` and of the values."""
        if self._values(node.value):
            return ast.Subscript(ast.Name(self._tuple, ast.Load()), ast.Constant(node.attr), ast.Load())
        if _is(node.value, "self"):
            if node.attr == "logger":
                return ast.Name("_log", ast.Load())
            if node.attr == "emit":
                raise _NotSimpleError("it uses what emit returns")
            if node.attr not in self._own or node.attr in _ARGUMENTS[self._kind]:
                raise _NotSimpleError(f"it uses self.{node.attr}")
            return node
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Refuses whole tuples, contexts and components."""
        if node.id in {"self", "super", "_log", "_logging"}:
            raise _NotSimpleError(f"it uses {node.id} in another way than self.name")
        if node.id and node.id in (self._tuple, self._context):
            raise _NotSimpleError(f"it uses {node.id} in another way than for its values")
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Refuses functions in methods."""
        raise _NotSimpleError(f"there is a function {node.name} in its method {self._method}")

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """Refuses lambdas."""
        raise _NotSimpleError(f"there is a lambda in its method {self._method}")

    def visit_Global(self, node: ast.Global) -> ast.AST:
        """Refuses variables of the module."""
        raise _NotSimpleError(f"it sets the global {', '.join(node.names)}")

    def _values(self, node: ast.AST) -> bool:
        return (
            bool(self._tuple)
            and isinstance(node, ast.Attribute)
            and node.attr == "values"
            and _is(node.value, self._tuple)
        )


def _names(statement: ast.stmt) -> list[str]:
    """Returns the names that an assignment of a class sets."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_self(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name and _is(node.value, "self")


def _after_docstring(body: list[ast.stmt]) -> int:
    first = body[0]
    return int(isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant))


def _methods(code: str) -> list[ast.stmt]:
    return ast.parse(code).body


def _spout_methods(made: list[ast.stmt]) -> list[ast.stmt]:
    if any(isinstance(method, ast.FunctionDef) and method.name == "open" for method in made):
        return []
    return _methods("def open(self, conf, context, collector):\n    self.collector = collector")
