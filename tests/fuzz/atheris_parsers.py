"""Coverage-guided fuzzing of the parsers with atheris: only documented errors are allowed.

``python -m tests.fuzz.atheris_parsers rules -max_total_time=60``, or any other of `PARSERS`. It
begins with `SEEDS` and needs atheris, of the group ``heavy``.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODULES = ("settings", "settings_file", "table_files", "query_rows")


def parsers() -> dict[str, Callable[[str], object]]:
    """Return the parsers by name; the library is imported here, so that atheris instruments it."""
    cfx = importlib.import_module("bayescfx")
    settings, settings_file, tables, rows = (
        importlib.import_module(f"bayescfx.requests.{name}") for name in MODULES
    )
    targets = importlib.import_module("bayescfx.potentials.target_text")
    kinds = {"a": cfx.Real(0, 9), "b c": cfx.Integer(0, 9), "d": cfx.Categorical(["x", "y"])}
    kinds["o"] = cfx.Ordinal(["low", "high"])
    space = cfx.Space(kinds)
    row = {"a": 1.0, "b c": 1, "d": "x", "o": "low"}
    data = importlib.import_module("pandas").DataFrame([row] * 3)

    def rules(text: str) -> object:
        return space.require(text).around(row)

    def queries(text: str) -> object:
        if text.strip() == "-" or "." in text:  # the standard input, and files
            return None
        cells, _ = rows.read_query(text, data, tables.TableFormat())
        rows.check_levels(cells, space.features)
        return space.around(cells)

    def archives(text: str) -> object:
        return repr(cfx.Explanation.from_json(text))

    def spaces(text: str) -> object:
        try:
            plain = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return repr(cfx.Space.from_dict(plain))

    def files(text: str) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "settings.toml")
            path.write_text(text, encoding="utf-8")
            return settings_file.read_settings_file(path, settings.OPTIONS)

    def csv(text: str) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "table.csv")
            path.write_text(text, encoding="utf-8")
            table = tables.read_table(str(path))
            tables.check_numbers(table, {}, str(path))
            found = cfx.Space.from_data(table)
            return found.around(rows.row_cells(table, 0))

    found = (rules, targets.parse_target, queries, archives, spaces, files, csv)
    return dict(zip(SEEDS, found, strict=True))


def explanation() -> str:
    """Return an answer as JSON, in which an archive is a change away."""
    cfx = importlib.import_module("bayescfx")
    space = cfx.Space({"a": cfx.Real(0, 9), "d": cfx.Categorical(["x", "y"])})
    model: Any = lambda rows: rows["a"]  # noqa: E731  # a bare callable
    answer = cfx.explain(model, {"a": 1.0, "d": "x"}, space, 3.0, budget=5, method="random", rng=0)
    return str(answer.to_json())


def described() -> str:
    """Return a space as JSON."""
    cfx = importlib.import_module("bayescfx")
    space = cfx.Space({"a": cfx.Real(0, 9), "d": cfx.Categorical(["x", "y"])})
    return json.dumps(space.require("a <= 7").max_changes(1).to_dict())


#: What each parser begins with.
SEEDS: dict[str, list[str | Callable[[], str]]] = {
    "rules": [
        "a + 2 * `b c` <= 7",
        "d == 'x' or a > 3 and not d in ['x', 'y']",
        "o == 'high' -> a >= 1e-3",
        "1 <= a < 5",
    ],
    "targets": ["+10%", ">= 1.5e3", "between 1 and 2", "[1, 2]", "± 3 percent", "=-20%"],
    "queries": [
        '{"a": 1, "b c": 2, "d": "x", "o": "low"}',
        "2",
        '[{"a": null, "b c": 2, "d": "y", "o": "high"}]',
    ],
    "archives": [explanation],
    "spaces": [described],
    "settings": ['budget = 9\n[features]\na = "real"\n[space]\nfix = ["a"]\nmax_changes = 2'],
    "csv": ["a,b\n1,x\n2.5,y\n", 'd,"e f"\n2020-01-01,\n2021-02-03,True\n'],
}


def survive(parser: Callable[[str], object], text: str) -> None:
    """Parse a text; only documented errors may be raised."""
    errors = importlib.import_module("bayescfx.errors")
    with warnings.catch_warnings(), contextlib.suppress(errors.BayesCFXError):
        warnings.simplefilter("ignore")
        parser(text)


def main() -> None:
    """Fuzz the parser named by the first argument."""
    atheris: Any = importlib.import_module("atheris")
    name = sys.argv.pop(1)
    with atheris.instrument_imports(include=["bayescfx"]):
        parser = parsers()[name]
        for seed in SEEDS[name]:
            survive(parser, seed if isinstance(seed, str) else seed())

    def one(data: bytes) -> None:
        survive(parser, data.decode(errors="replace"))

    with tempfile.TemporaryDirectory() as corpus:
        for i, seed in enumerate(SEEDS[name]):
            Path(corpus, str(i)).write_text(seed if isinstance(seed, str) else seed(), "utf-8")
        atheris.Setup([*sys.argv, corpus], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
