"""Damaged files and modified texts: read correctly, or refused with the library's own error."""

from __future__ import annotations

import json
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bayescfx as cfx
from bayescfx.errors import BayesCFXError
from tests.fuzz.calls import TABLE, answer, model

#: What is put in the place of a value in JSON.
OTHERS: tuple[Any, ...] = (
    *(None, True, -1, 1e308, "x", [], [1], [[1, 2]], {}),
    *({"$": "timestamp"}, {"$": "zzz", "v": 1}),
)


def use(text: str) -> None:
    """Read an answer and use all of its outputs."""
    found = cfx.Explanation.from_json(text)
    str(found)
    found._repr_html_()
    found.to_frame()
    found.to_frame(changes_only=True)
    found.verify(model)
    cfx.Explanation.from_json(found.to_json())
    cfx.Explanations([found]).summary()


def places(plain: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values of a JSON content."""
    items = plain.items() if isinstance(plain, dict) else enumerate(plain)
    for key, value in items:
        yield (*at, key)
        if isinstance(value, dict | list):
            yield from places(value, (*at, key))


def changed(plain: Any, at: tuple[Any, ...], value: Any) -> Any:
    """Return JSON content with one value replaced, or removed by ``...``."""
    copy = json.loads(json.dumps(plain))
    inner = copy
    for key in at[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[at[-1]]
    else:
        inner[at[-1]] = value
    return copy


def survives(read: Callable[..., object], *given: Any) -> None:
    """Read something; only the library's own errors of one line may be raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read(*given)
        except BayesCFXError as error:
            message = str(error)
        else:
            return
    assert len(message) > 20
    assert "\n" not in message


def tampered(n: int | None, seed: int = 0) -> Iterator[tuple[tuple[Any, ...], Any, str]]:
    """Yield an answer as JSON with one value changed: `n` of them, or every one."""
    plain = json.loads(answer().to_json())
    every = [(at, value) for at in places(plain) for value in (..., *OTHERS)]
    chosen = np.random.default_rng(seed).permutation(len(every))[:n]
    for at, value in (every[i] for i in chosen):
        yield at, value, json.dumps(changed(plain, at, value))


def check_tampered(n: int | None) -> None:
    for at, value, text in tampered(n):
        try:
            survives(use, text)
        except Exception as error:
            error.add_note(f"{at} = {value!r}")
            raise


def test_some_changed_answers_are_read_or_refused() -> None:
    check_tampered(150)


@pytest.mark.slow
def test_every_changed_answer_is_read_or_refused() -> None:
    check_tampered(None)


@pytest.mark.parametrize("share", np.linspace(0.0, 0.999, 12))
def test_texts_that_are_cut_off_are_refused(share: float) -> None:
    text = answer().to_json()
    with pytest.raises(cfx.ArchiveError):
        cfx.Explanation.from_json(text[: int(share * len(text))])
    with pytest.raises(cfx.ArchiveError):
        cfx.Explanation.from_json("[" * int(1 + share * 100_000))


# ── stores ──


def stored(path: Path) -> Path:
    """Make a file of evaluations."""
    with cfx.Evaluations.open(path, model="m") as store:
        store.append(TABLE.head(3), model(TABLE.head(3)))
    return path


def reopened(path: Path) -> None:
    with cfx.Evaluations.open(path) as store:
        assert store.to_frame().shape[1] > 0
        for _ in store:
            pass
        store.append(TABLE.head(3), [1.0, 2.0, 3.0])


def check_bytes(folder: Path, n: int) -> None:
    content = stored(folder / "whole.db").read_bytes()
    rng = np.random.default_rng(0)
    for k in range(n):
        raw = bytearray(content)
        match k % 3:
            case 0:
                raw = raw[: int(rng.integers(len(raw)))]
            case 1:
                for at in rng.integers(len(raw), size=20):
                    raw[at] = int(rng.integers(256))
            case 2:
                at = int(rng.integers(len(raw)))
                raw[at : at + 512] = bytes(512)
        path = folder / f"{k}.db"
        path.write_bytes(bytes(raw))
        survives(reopened, path)


def test_some_damaged_stores_are_read_or_refused(tmp_path: Path) -> None:
    check_bytes(tmp_path, 30)


@pytest.mark.slow
def test_many_damaged_stores_are_read_or_refused(tmp_path: Path) -> None:
    check_bytes(tmp_path, 1_000)


LINES = (
    "UPDATE meta SET value = '{' WHERE key = 'layout'",
    "UPDATE meta SET value = '[]' WHERE key = 'layout'",
    "UPDATE meta SET value = replace(value, 'names', 'name')",
    "UPDATE meta SET value = replace(value, 'float64', 'x')",
    "UPDATE meta SET value = '3' WHERE key = 'layout'",
    "DELETE FROM meta",
    "UPDATE evaluations SET cells = 'x'",
    "UPDATE evaluations SET cells = '[]'",
    "UPDATE evaluations SET cells = '[1, 2]'",
    'UPDATE evaluations SET cells = \'[{"$": "timestamp", "v": 3}, 1, 1, 1, 1, 1]\'',
    "UPDATE evaluations SET cells = x'ff00'",
    "UPDATE evaluations SET output = 'many'",
    "UPDATE evaluations SET output = x'ff'",
    "UPDATE evaluations SET output = 1e999",
    "DROP TABLE evaluations",
    "DROP TABLE meta",
    "ALTER TABLE evaluations RENAME COLUMN cells TO cell",
    "PRAGMA user_version = 99",
)


@pytest.mark.parametrize("line", LINES)
def test_changed_stores_are_read_or_refused(line: str, tmp_path: Path) -> None:
    path = stored(tmp_path / "known.db")
    db = sqlite3.connect(path)
    db.execute(line)
    db.commit()
    db.close()
    survives(reopened, path)


# ── spaces ──


def test_changed_spaces_are_read_or_refused() -> None:
    plain: Any = answer().space.to_dict()
    for at in places(plain):
        for value in (..., None, "x", [1]):
            survives(cfx.Space.from_dict, changed(plain, at, value))
