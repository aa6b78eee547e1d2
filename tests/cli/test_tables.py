"""Data and queries: each form, and each mistake in one line."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.people import people


@pytest.mark.parametrize("form", ["3", "one.json", "one.csv", "-", "object", "list"])
def test_a_query_is_a_row_number_a_json_object_or_a_file(
    form: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (shell.folder / "one.json").read_text()
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    query = {"object": text, "list": f"[{text}]"}.get(form, form)
    ran = shell.explain("--query", query, "--target", "+25%", "--budget", "10", "--json")
    reference = shell.explain("--query", "3", "--target", "+25%", "--budget", "10", "--json")
    assert ran.out == reference.out


def test_a_query_may_have_columns_that_are_ignored(shell: Shell) -> None:
    row = {**json.loads((shell.folder / "one.json").read_text()), "progression": 1.0}
    words = ("--target", "+25%", "--budget", "10", "--json")
    reference = shell.explain("--query", "3", *words).out
    assert shell.explain("--query", json.dumps(row), *words).out == reference
    ran = shell.explain("--query", json.dumps(row), *words, "--drop", "progression")
    assert ran.out == reference


def test_bad_data_is_one_line(shell: Shell) -> None:
    X, _ = people()
    ask = ("--query", "3", "--target", "150")
    model = ("explain", "--model", "m.txt", "--data")
    X.drop(columns="bmi").to_csv("narrow.csv", index=False)
    assert shell.fails(*model, "narrow.csv", *ask) == (
        "error: the data must have every column that the model takes; missing: 'bmi'. Rename or "
        "add the column."
    )
    X.astype({"bmi": object}).assign(bmi=lambda t: t["bmi"].where(t.index != 7, "abc")).to_csv(
        "text.csv", index=False
    )
    assert shell.fails(*model, "text.csv", *ask) == (
        "error: column 'bmi' of 'text.csv' must hold numbers; got 'abc' in row 7. Correct the "
        'cell, or declare it with --kind "bmi=categorical".'
    )
    Path("empty.csv").write_text("")
    assert "the data file 'empty.csv' is empty." in shell.fails(*model, "empty.csv", *ask)
    X.head(0).to_csv("head.csv", index=False)
    assert "has no rows below the column names." in shell.fails(*model, "head.csv", *ask)
    assert "there is no data file 'no.csv'." in shell.fails(*model, "no.csv", *ask)
    assert "must end in .csv, .tsv or .parquet." in shell.fails(*model, "X.xlsx", *ask)
    Path("broken.parquet").write_bytes(b"PAR1 nothing")
    assert "'broken.parquet' can't be read: " in shell.fails(*model, "broken.parquet", *ask)
    Path("latin.csv").write_bytes("größe\n1\n".encode("latin-1"))
    assert "'latin.csv' can't be read: 'utf-8' codec" in shell.fails(*model, "latin.csv", *ask)


def test_a_bad_query_is_one_line(shell: Shell) -> None:
    row = json.loads((shell.folder / "one.json").read_text())

    def message(query: str) -> str:
        words = ("--data", "X.csv", "--query", query, "--target", "150")
        return shell.fails("explain", "--model", "m.txt", *words)

    assert "must be a row of the data, 0 to 441; got 442." in message("442")
    narrow = {k: v for k, v in row.items() if k != "bmi"}
    assert "missing: 'bmi'. Rename or add it." in message(json.dumps(narrow))
    assert "missing: 'bmi'. Did you mean 'BMI'? Rename or add it." in message(
        json.dumps({**narrow, "BMI": 20.0})
    )
    assert "unknown: 'bmy'. Did you mean 'bmi'?" in message(json.dumps({**row, "bmy": 1}))
    assert "has 'mal' in column 'sex', which the data does not have. Did you mean 'male'?" in (
        message(json.dumps({**row, "sex": "mal"}))
    )
    assert "got 'fat' in column 'bmi' of dtype float64." in message(
        json.dumps({**row, "bmi": "fat"})
    )
    assert "error: the query must fit the dtypes of the space; got None in column 'age'" in message(
        json.dumps({**row, "age": None})
    )
    assert "got 30.5 in column 'age' of dtype int64. Correct the cell." in message(
        json.dumps({**row, "age": 30.5})
    )
    assert "the query must be JSON; got" in message("{age: 3}")
    assert "must be one JSON object" in message("[1, 2]")
    assert "the query must be a row number, a JSON object or a file; got 'x'." in message("x")
    assert "the query file 'no.json' can't be read" in message("no.json")
    assert "must have one row; got 5. Use explain-many." in message("five.csv")


def test_a_row_longer_than_the_header_is_refused(shell: Shell) -> None:
    X, _ = people()
    text = X.to_csv(index=False).splitlines()
    Path("shifted.csv").write_text("\n".join([text[0], *(f"7,{line}" for line in text[1:])]))
    ask = ("--query", "3", "--target", "5")
    printed = shell.fails("explain", "--model", "m.txt", "--data", "shifted.csv", *ask)
    assert "must have as many fields in each row as in its first line" in printed
