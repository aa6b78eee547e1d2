"""Measure the structure of the package: traces of one call, and figures of the source.

::

    python -m tests.structure                          # two tables
    python -m tests.structure --json                   # the same figures as JSON
    python -m tests.structure --names                  # with the functions of each trace
    PYTHONPATH=OTHER/src python -m tests.structure     # of another checkout

A trace counts, with a profile function in every thread, what one call uses of the package after
the same call with another query has warmed it up:

* functions: distinct functions and methods; comprehensions, generator expressions, lambdas and
  module bodies do not count,
* modules: distinct files of these functions,
* frames: the largest number of frames of the package on one stack, comprehensions included.

Proofs are left out.

With this counting the commit before the redesign (d7c74fd) has 228 functions, 47 modules and 16
frames in a sweep; issue 26 gives 220, 46 and 16.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import inspect
import io
import json
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import bayescfx

PACKAGE = Path(str(bayescfx.__file__)).parent
HAS_PROOFS = "prove" in inspect.signature(bayescfx.explain).parameters  # not in older commits


# -- Traces ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trace:
    """What one call uses of the package."""

    functions: int
    modules: int
    frames: int
    names: list[str]  # of the functions, with their modules


class Tracer:
    """A profile function that records calls of the package while it is active."""

    def __init__(self) -> None:
        self.folder = str(PACKAGE) + os.sep
        self.codes: set[CodeType] = set()
        self.deepest = 0
        self.is_active = False

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Record a call."""
        if not self.is_active or event != "call" or not self._is_ours(frame.f_code):
            return
        self.codes.add(frame.f_code)
        self.deepest = max(self.deepest, self._depth(frame))

    def _is_ours(self, code: CodeType) -> bool:
        return code.co_filename.startswith(self.folder)

    def _depth(self, frame: FrameType) -> int:
        """Return the number of frames of the package on the stack."""
        n_frames = 0
        at: FrameType | None = frame
        while at is not None:
            n_frames += self._is_ours(at.f_code)
            at = at.f_back
        return n_frames

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Record while the block runs, in this thread and in the threads that have the tracer."""
        self.codes.clear()
        self.deepest = 0
        self.is_active = True
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            self.is_active = False

    @property
    def trace(self) -> Trace:
        """Return the figures of the last recording."""
        functions = [code for code in self.codes if not code.co_name.startswith("<")]
        modules = {code.co_filename for code in functions}
        names = [
            f"{code.co_filename.removeprefix(self.folder)} {code.co_qualname}" for code in functions
        ]
        return Trace(len(functions), len(modules), self.deepest, sorted(names))


def trace_calls() -> dict[str, Trace]:
    """Return the traces of the four calls: sweep, Bayes-CFX, command line, page."""
    tracer = Tracer()
    threading.setprofile(tracer)
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            problem = _make_problem(folder)
            return {
                "sweep": _trace(tracer, lambda row: _explain(problem, row)),
                "bayes-cfx": _trace(tracer, lambda row: _explain_bayes(problem, row)),
                "command line": _trace(tracer, lambda row: _run_command(folder, row)),
                "page": _trace_page(tracer, folder),
            }
    finally:
        threading.setprofile(None)


def _trace(tracer: Tracer, call: Callable[[int], object]) -> Trace:
    """Call twice, with rows 0 and 1, and record the second."""
    call(0)
    with tracer.recording():
        call(1)
    return tracer.trace


@dataclass(frozen=True, eq=False)
class Problem:
    """LightGBM on the diabetes data in raw units."""

    model: Any
    X: Any
    space: bayescfx.Space


def _make_problem(folder: Path) -> Problem:
    """Fit the model, and write model and data to a folder."""
    import joblib
    import lightgbm
    from sklearn.datasets import load_diabetes

    data = load_diabetes(as_frame=True, scaled=False)
    model = lightgbm.LGBMRegressor(random_state=0, verbose=-1, n_jobs=1)
    model.fit(data.data, data.target)
    joblib.dump(model, folder / "model.joblib")
    data.data.to_csv(folder / "data.csv", index=False)
    return Problem(model, data.data, bayescfx.Space.from_data(data.data))


def _explain(problem: Problem, row: int) -> None:
    """Call `explain` with its defaults, without the proof: a sweep."""
    target = bayescfx.reach(percent=25)
    query = problem.X.iloc[row]
    options: dict[str, Any] = {"prove": False} if HAS_PROOFS else {}
    answer = bayescfx.explain(problem.model, query, problem.space, target, rng=0, **options)
    assert answer.method == "sweep"


def _explain_bayes(problem: Problem, row: int) -> None:
    """Call `explain` with 40 rows: Bayes-CFX."""
    target = bayescfx.reach(percent=25)
    query = problem.X.iloc[row]
    answer = bayescfx.explain(
        problem.model, query, problem.space, target, method="bayes-cfx", budget=40, rng=0
    )
    assert answer.method == "bayes-cfx"


def _run_command(folder: Path, row: int) -> None:
    """Run ``bayescfx explain``."""
    words = ["explain", *_files(folder), "--query", str(row), "--target", "=+25%"]
    words += ["--prove", "0"] if HAS_PROOFS else []
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        code = _command_line(words)
    assert code == 0, shown.getvalue()


def _command_line(words: list[str]) -> int:
    from bayescfx.cli import main

    return main(words)


def _files(folder: Path) -> list[str]:
    """Return the arguments that name model and data."""
    model = ["--model", str(folder / "model.joblib"), "--trust-pickle"]
    return [*model, "--data", str(folder / "data.csv")]


def _trace_page(tracer: Tracer, folder: Path) -> Trace:
    """Return the trace of one question on the page, which a server in a thread shows.

    The thread ends with the process: the command has no other end than Ctrl-C.
    """
    import httpx

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    words = ["serve", *_files(folder), "--port", str(port), "--quiet"]
    threading.Thread(target=_command_line, args=(words,), daemon=True).start()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as page:
        _wait_for(page)
        rows = page.get("/api/rows", params={"limit": 2}).json()["rows"]
        return _trace(tracer, lambda row: _ask_page(page, rows[row]["cells"], rows[row]["output"]))


def _wait_for(page: Any) -> None:
    """Wait until the server answers."""
    import httpx

    until = time.monotonic() + 60
    while time.monotonic() < until:
        with contextlib.suppress(httpx.TransportError):
            if page.get("/api/site").status_code == 200:
                return
        time.sleep(0.1)
    raise AssertionError("the page has not started within 60 s")


def _ask_page(page: Any, cells: dict[str, Any], output: float) -> None:
    """Send what the page sends for one question: the target, the question, its events."""
    goal = {"target": "=+25%", "output": output}
    meaning = page.post("/api/target", json=goal)
    if meaning.status_code == 404:  # the path before the redesign
        meaning = page.post("/api/goal", json=goal)
    assert meaning.status_code == 200, meaning.text
    space = {"fix": ["sex"], "only_up": ["age"]}
    question = {"cells": cells, "target": "=+25%", "space": space, "method": "sweep"}
    posted = page.post("/api/questions", json=question)
    assert posted.status_code == 202, posted.text
    number = posted.json()["id"]
    events = page.get(f"/api/questions/{number}/events").text
    assert "event: end" in events
    assert page.get(f"/api/questions/{number}").json()["state"] == "done"


# -- Figures of the source ------------------------------------------------------------------------

BRANCHES = (
    ast.If,
    ast.For,
    ast.While,
    ast.IfExp,
    ast.And,
    ast.Or,
    ast.ExceptHandler,
    ast.comprehension,
    ast.BoolOp,
    ast.Assert,
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (*FUNCTIONS, ast.ClassDef, ast.Module)
LONGEST = 60  # lines of a function
PLAIN_NUMBERS = (0, 1, 2)  # they count, halve and negate; anything else tunes something
CHANGING = ("update", "setdefault", "pop", "clear", "popitem")


@dataclass(frozen=True)
class Source:
    """Figures of the source code."""

    lines: int
    modules: int
    functions: int
    branches_per_function: float
    packed_assignments: float  # share of assignments such as ``a, b = x, y``
    docstrings: float  # share of lines
    long_functions: list[str]  # over 60 lines
    search_modules: int
    search_literals: int  # numbers in search/ that are no field of a class and no constant
    vars_assignments: int  # changes of an object through ``vars``
    names_used_twice: list[str]


def measure_source(folder: Path = PACKAGE) -> Source:
    """Return the figures of all modules below a folder."""
    trees = {path: ast.parse(path.read_text()) for path in sorted(folder.rglob("*.py"))}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
    assignments = [node for node in nodes if isinstance(node, ast.Assign)]
    n_lines = sum(len(path.read_text().splitlines()) for path in trees)
    names = Counter(path.stem for path in trees if path.name != "__init__.py")
    search = [tree for path, tree in trees.items() if folder / "search" in path.parents]
    return Source(
        lines=n_lines,
        modules=len(trees),
        functions=len(functions),
        branches_per_function=statistics.mean(map(_count_branches, functions)),
        packed_assignments=sum(map(_is_packed, assignments)) / max(1, len(assignments)),
        docstrings=sum(map(_docstring_lines, nodes)) / n_lines,
        long_functions=list(_long_functions(folder, trees)),
        search_modules=len(search),
        search_literals=sum(map(_count_literals, search)),
        vars_assignments=sum(map(_is_vars_assignment, nodes)),
        names_used_twice=sorted(name for name, count in names.items() if count > 1),
    )


def _count_branches(function: ast.AST) -> int:
    """Return the number of branches, inner functions included, plus one."""
    return 1 + sum(isinstance(node, BRANCHES) for node in ast.walk(function))


def _is_packed(node: ast.Assign) -> bool:
    """Return whether a tuple is assigned to a tuple."""
    is_tuple = any(isinstance(target, ast.Tuple) for target in node.targets)
    return is_tuple and isinstance(node.value, ast.Tuple)


def _docstring_lines(node: ast.AST) -> int:
    """Return the number of lines of a node's docstring."""
    if not isinstance(node, DOCUMENTED) or ast.get_docstring(node) is None:
        return 0
    return _n_lines(node.body[0])


def _n_lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _long_functions(folder: Path, trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Yield the functions that are too long, with file and number of lines."""
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS) and _n_lines(node) > LONGEST:
                yield f"{path.relative_to(folder)} {node.name} ({_n_lines(node)})"


def _count_literals(tree: ast.Module) -> int:
    """Return the number of numeric literals without a name.

    Numbers that are the value of a class field or of a module constant have a name.
    """
    statements = list(tree.body)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            statements += node.body
    named: set[ast.AST] = set()
    for statement in statements:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            named.update(ast.walk(statement))
    literals = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return sum(node not in named and _is_tuning_number(node.value) for node in literals)


def _is_tuning_number(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and value not in PLAIN_NUMBERS


def _is_vars_assignment(node: ast.AST) -> bool:
    """Return whether a node changes an object through ``vars(x)[...] = ...`` or a method."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Store | ast.Del) and _is_vars(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in CHANGING and _is_vars(node.func.value)
    return False


def _is_vars(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars"


# -- Report ---------------------------------------------------------------------------------------


def as_text(traces: dict[str, Trace], source: Source) -> str:
    """Return both tables."""
    lines = [
        f"{PACKAGE}",
        "",
        f"{'trace of one call':24}{'functions':>10}{'modules':>10}{'frames':>8}",
    ]
    for name, trace in traces.items():
        lines.append(f"  {name:22}{trace.functions:10}{trace.modules:10}{trace.frames:8}")
    lines += ["", "source"]
    for name, value in asdict(source).items():
        lines.append(f"  {name.replace('_', ' '):22}{_cell(value):>10}")
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value) if value else "none"
    if isinstance(value, float):
        return f"{100 * value:.1f} %" if value < 1 else f"{value:.2f}"
    return str(value)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--names", action="store_true", help="print the traced functions, too")
    chosen = parser.parse_args()
    with contextlib.redirect_stdout(sys.stderr):  # the server prints its address
        traces = trace_calls()
    source = measure_source()
    if chosen.json:
        content = {name: asdict(trace) for name, trace in traces.items()}
        text = json.dumps({"traces": content, "source": asdict(source)})
    else:
        text = as_text(traces, source)
    if chosen.names and not chosen.json:
        for name, trace in traces.items():
            text += f"\n\n{name}\n  " + "\n  ".join(trace.names)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    os._exit(0)  # the server's thread has no other end


if __name__ == "__main__":
    main()
