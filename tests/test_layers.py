"""Rules for the whole package. The direction of imports is checked by `lint-imports`."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import bayescfx as cfx
from bayescfx import errors

SOURCE = Path(cfx.__file__).parent
EXTRAS = ("matplotlib", "sklearn", "lightgbm", "tqdm", "httpx", "torch", "onnxruntime")
# The legacy functions of numpy.random, which share one global state.
MODERN = {"default_rng", "Generator", "SeedSequence", "BitGenerator", "PCG64"}
PUBLIC = [name for name in cfx.__all__ if callable(getattr(cfx, name))]


@cache
def modules() -> dict[str, ast.Module]:
    """Return the syntax tree of each module by its path within the package."""
    return {
        str(path.relative_to(SOURCE)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
    }


def calls(tree: ast.AST, name: str) -> list[int]:
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]


def test_the_source_is_found() -> None:
    assert "search/bayes.py" in modules()
    assert calls(ast.parse("print(1)"), "print") == [1]


def test_only_the_command_line_prints() -> None:
    printing = {path for path, tree in modules().items() if calls(tree, "print")}
    assert not {path for path in printing if not path.startswith("cli/")}


def legacy(tree: ast.AST) -> set[str]:
    """Return the attributes of ``np.random`` that share a global state."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "random"
        and isinstance(node.value.value, ast.Name)
        and node.value.value.id in ("np", "numpy")
        and node.attr not in MODERN
    }


def test_nothing_uses_the_global_random_state() -> None:
    assert legacy(ast.parse("np.random.seed(0); np.random.default_rng(0)")) == {"seed"}
    for path, tree in modules().items():
        assert not legacy(tree), path
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        assert "random" not in imported, path


def test_no_module_reads_the_private_names_of_another() -> None:
    for path, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayescfx"):
                private = [a.name for a in node.names if re.match("_(?!_)", a.name)]
                assert not private, f"{path}: {private}"


def test_every_module_has_a_docstring() -> None:
    for path, tree in modules().items():
        assert ast.get_docstring(tree), path


def test_class_names_are_unique() -> None:
    found: dict[str, list[str]] = {}
    for path, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(path)
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


# ── the public face ──


def test_type_checkers_see_the_names_that_are_loaded_on_demand() -> None:
    (block,) = (
        node
        for node in modules()["__init__.py"].body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
    )
    seen = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name  # the mark of an exported name
            seen[alias.name] = node.module
    assert sorted(seen) == cfx.__all__
    for name, module in seen.items():
        value = import_module(f"{module}.{name}") if name == "plots" else getattr(cfx, name)
        assert value is getattr(import_module(str(module)), name)


def test_only_public_names_are_shown() -> None:
    assert [name for name in dir(cfx) if not name.startswith("__")] == cfx.__all__
    with pytest.raises(AttributeError, match="module 'bayescfx' has no attribute 'explian'"):
        getattr(cfx, "explian")  # noqa: B009  # a type checker would refuse the attribute


def test_every_error_and_warning_for_users_is_exported() -> None:
    inner = {"OutOfTime"}  # searches catch it
    found = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    }
    assert found - inner <= set(cfx.__all__)
    for name in found - {"BayesCFXWarning", "SpaceWarning", "SurrogateWarning"}:
        assert issubclass(getattr(errors, name), cfx.BayesCFXError)


def test_everything_exported_from_errors_is_raised_or_warned() -> None:
    source = "".join(ast.unparse(tree) for path, tree in modules().items() if path != "errors.py")
    bases = {"BayesCFXError"}
    for name in {n for n in cfx.__all__ if n in vars(errors)} - bases:
        assert re.search(rf"\b{name}\(|, {name}\b", source), name


def loaded(code: str, *names: str) -> list[str]:
    """Return the modules that some code loads in a new process."""
    code = f"{code}\nimport sys; print(*sorted(set({names!r}) & set(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stderr == ""
    return run.stdout.split()


def test_importing_the_package_loads_nothing() -> None:
    assert loaded("import bayescfx", "numpy", "pandas", "scipy", "bayescfx.explainer") == []
    assert loaded("import bayescfx; bayescfx.BayesCFXError", "numpy", "pandas", "scipy") == []


def test_importing_everything_loads_no_extra_and_none_of_the_slow_parts_of_scipy() -> None:
    slow = [f"scipy.{part}" for part in ("optimize", "stats", "spatial", "integrate", "sparse")]
    assert loaded("from bayescfx import *", *EXTRAS, *slow) == []


def test_plots_need_no_separate_import() -> None:
    assert loaded("import bayescfx; bayescfx.plots.save", "matplotlib") == []


def test_importing_the_package_leaves_logging_and_warnings_alone() -> None:
    code = (
        "import logging, warnings\n"
        "import numpy, scipy.optimize, scipy.special, scipy.stats, pandas\n"
        "before = list(logging.getLogger().handlers), len(warnings.filters)\n"
        "from bayescfx import *\n"
        "assert before == (list(logging.getLogger().handlers), len(warnings.filters))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def documented(obj: Any, section: str = "Parameters") -> list[str]:
    """Return the names under a heading of a numpydoc docstring."""
    text = inspect.getdoc(obj) or ""
    found = re.search(rf"^{section}\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", text, re.S | re.M)
    if found is None:
        return []
    names: list[str] = []
    for line in found[1].splitlines():
        if line and not line.startswith(" "):
            names += [name.strip(" *") for name in line.split(" : ")[0].split(",")]
    return names


def accepted(obj: Any) -> list[str]:
    """Return the names of the arguments of a public object."""
    if inspect.isclass(obj) and issubclass(obj, BaseException):
        return []
    signature = inspect.signature(obj)
    return [name for name in signature.parameters if name not in ("self", "cls")]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_argument_is_documented(name: str) -> None:
    obj = getattr(cfx, name)
    assert documented(obj) == accepted(obj)


def methods() -> list[tuple[str, str]]:
    return [
        (name, verb)
        for name in PUBLIC
        if inspect.isclass(getattr(cfx, name))
        for verb, member in vars(getattr(cfx, name)).items()
        if not verb.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, classmethod | staticmethod))
    ]


@pytest.mark.parametrize(("name", "verb"), methods())
def test_a_method_documents_only_its_own_arguments(name: str, verb: str) -> None:
    method = getattr(getattr(cfx, name), verb)
    assert inspect.getdoc(method)
    known = [n for n in inspect.signature(method).parameters if n not in ("self", "cls")]
    assert [n for n in documented(method) if n not in known] == []


def test_documented_names_are_read_from_docstrings() -> None:
    def f(a: int, b: int) -> None:
        """Do it.

        Parameters
        ----------
        a, b : int
            Numbers: more than one.

        Returns
        -------
        int
            Something.
        """

    assert documented(f) == ["a", "b"]
    assert documented(f, "Returns") == ["int"]
