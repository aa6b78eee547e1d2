"""`store`: check, list, export and merge files of evaluations."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bayescfx.errors import SettingsError
from bayescfx.requests.console import Console
from bayescfx.requests.evaluation_files import (
    find_damage,
    list_models,
    merge_files,
    read_all,
    read_rows,
)

#: Arguments of ``DataFrame.to_csv`` and so on, by the ending of an exported file.
EXPORTS: dict[str, dict[str, Any]] = {
    ".csv": {"index": False},
    ".parquet": {"index": False},
    ".json": {"orient": "records", "date_format": "iso"},
}


def store(options: Namespace, console: Console) -> int:
    """Run an action on files; return 0 if nothing is wrong with them."""
    if options.action not in ACTIONS:
        raise SettingsError(f"store must be {', '.join(ACTIONS)}; got {options.action!r}.")
    files = list(map(Path, options.files))
    least, action = ACTIONS[options.action]
    if len(files) < least:
        raise SettingsError(f"store {options.action} must have {least} or more files; see --help.")
    written = {"export": files[1:], "merge": files[:1]}.get(options.action, [])
    _check_files([file for file in files if file not in written])
    return action(files, console)


def _check_files(files: list[Path]) -> None:
    """Raise if there is no such file."""
    for file in files:
        if not file.is_file():
            raise SettingsError(f"{str(file)!r} must be a file of evaluations; there is none.")


def _check(files: list[Path], console: Console) -> int:
    """Write whether every row of each file can be read."""
    are_whole = [_check_one(path, console) for path in files]
    return 0 if all(are_whole) else 2


def _check_one(path: Path, console: Console) -> bool:
    """Write whether every row of a file can be read, and return it."""
    problem = find_damage(path)
    n_rows = 0
    n_lost = 0
    for stored in read_rows(path):
        n_rows += len(stored.outputs)
        n_lost += stored.n_lost
    if n_lost:
        problem = problem or "rows can not be read"
    state = f"damaged ({problem}); {n_lost} rows lost" if problem else "whole"
    plain = {"file": str(path), "rows": n_rows, "lost": n_lost}
    console.write(f"{path}: {n_rows} rows, {state}", plain)
    return not problem


def _list(files: list[Path], console: Console) -> int:
    """Write which models there are rows and runs of."""
    for path in files:
        for model in list_models(path):
            runs = f", runs: {', '.join(model.runs)}" if model.runs else ""
            name = model.name or "model without a name"
            plain = {"model": model.name, "rows": model.n_rows, "runs": list(model.runs)}
            console.write(f"{path}: {name}: {model.n_rows} rows{runs}", plain)
    return 0


def _export(files: list[Path], console: Console) -> int:
    """Write all readable rows as one table, with the model's name in front."""
    source = files[0]
    target = files[1]
    ending = target.suffix.lower()
    if ending not in EXPORTS:
        raise SettingsError(f"store export must write .csv, .parquet or .json; got {ending!r}.")
    table, n_lost = read_all(source)
    getattr(table, f"to_{ending[1:]}")(target, **EXPORTS[ending])
    plain = {"rows": len(table), "lost": n_lost}
    console.write(f"{target}: {len(table)} rows, {n_lost} lost", plain)
    return 2 if n_lost else 0


def _merge(files: list[Path], console: Console) -> int:
    """Add the rows of several files to the first, model by model."""
    target = files[0]
    n_rows, n_lost = merge_files(target, files[1:])
    plain = {"rows": n_rows, "lost": n_lost}
    console.write(f"{target}: {sum(n_rows.values())} rows, {n_lost} lost", plain)
    return 2 if n_lost else 0


#: The least number of files, and the function, of each action.
ACTIONS: dict[str, tuple[int, Callable[[list[Path], Console], int]]] = {
    "check": (1, _check),
    "list": (1, _list),
    "export": (2, _export),
    "merge": (2, _merge),
}
