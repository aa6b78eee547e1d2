"""Tables as people have them: missing cells, separators, dates, names of rows."""

from __future__ import annotations

import importlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.errors import SettingsError
from bayescfx.models.loaded import Loaded
from bayescfx.requests.table_files import TableFormat, check_numbers, read_chunks, read_table
from tests.cli.shell import FUNCTIONS, MANY, Shell
from tests.models.test_categories import boosted, flats, quick
from tests.people import people

ASK = ("--target", "+9", "--budget", "12", "--quiet")


def houses(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "key": [f"00{i}" for i in range(n)],
            "area": rng.integers(40, 200, n),
            "pool": rng.choice(["None", "small", "large"], n),
            "sold": pd.date_range("2016-01-01", periods=n).strftime("%Y-%m-%d"),
        }
    )


def one_hot(X: pd.DataFrame) -> Any:
    """Return a pipeline whose encoder knows the levels of `pool`."""
    compose: Any = importlib.import_module("sklearn.compose")
    encoding: Any = importlib.import_module("sklearn.preprocessing")
    linear: Any = importlib.import_module("sklearn.linear_model")
    pipeline: Any = importlib.import_module("sklearn.pipeline")
    coded = compose.make_column_transformer(
        (encoding.OneHotEncoder(), ["pool"]), ("passthrough", ["area"])
    )
    y = X["area"] + 50.0 * (X["pool"] == "large") - 30.0 * (X["pool"] == "None")
    return pipeline.make_pipeline(coded, linear.LinearRegression()).fit(X[["area", "pool"]], y)


def test_only_an_empty_cell_is_missing_unless_na_has_more_texts(tmp_path: Path) -> None:
    path = str(tmp_path / "x.csv")
    Path(path).write_text("a,b\nNone,1\nNA,\n,3\nnull,4\n")
    plain = read_table(path)
    assert plain["a"].fillna("missing").tolist() == ["None", "NA", "missing", "null"]
    assert plain["b"].tolist()[0] == 1.0
    marked = read_table(path, table_format=TableFormat(na=("NA", "3")))
    assert marked["a"].fillna("missing").tolist() == ["None", "missing", "missing", "null"]
    assert marked["b"].isna().tolist() == [False, True, True, False]
    known = read_table(path, table_format=TableFormat(na=("NA",), levels={"a": frozenset(["NA"])}))
    assert known["a"].fillna("missing").tolist() == ["None", "NA", "missing", "null"]


def test_na_is_for_parquet_and_json_too(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    path = str(tmp_path / "x.parquet")
    pd.DataFrame({"a": ["NA", "x", ""], "b": [1, 2, 3]}).to_parquet(path)
    table = read_table(path, table_format=TableFormat(na=("NA",)))
    assert table["a"].fillna("missing").tolist() == ["missing", "x", ""]
    assert TableFormat(na=("NA",)).read_row({"a": "NA", "b": None, "c": 1}) == (
        {"a": None, "b": None, "c": 1},
        None,
    )


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["1", "NA", "NA", "NA"], "got 'NA' in row 1. If it means missing, pass --na 'NA', or"),
        (["1", "2", "3", "?"], "got '?' in row 3. If it means missing, pass --na '?', or"),
        (["1,234", "5,678"], "got '1,234' in row 0. Write it with a point, or"),
        (["12,00", "1.300,00"], "got '12,00' in row 0. Write it with a point, or"),
        (["1", "2", "3", "x"], "got 'x' in row 3. Correct the cell, or"),
        (["a", "b", "NA", "1"], None),
        (["NA", "None"], None),
    ],
)
def test_missing_marks_among_numbers_are_errors(cells: list[str], message: str | None) -> None:
    table = pd.DataFrame({"a": cells}, index=["same"] * len(cells))
    check_numbers(table, ["a"], "x.csv")
    if message is None:
        check_numbers(table, [], "x.csv")
        return
    with pytest.raises(SettingsError) as caught:
        check_numbers(table, [], "x.csv")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "columns", "cells"),
    [
        ("a;b\n1,5;x\n2,25;y\n", ["a", "b"], [1.5, 2.25]),
        ("a;b\n1.5;x,y\n2.25;y,z\n", ["a", "b"], [1.5, 2.25]),
        ("a|b\n1.5|x\n2.25|y\n", ["a", "b"], [1.5, 2.25]),
        ("a\tb\n1.5\tx;1\n2.25\ty;2\n", ["a", "b"], [1.5, 2.25]),
        ('a,b\n1.5,"x;y"\n2.25,"y\n;z"\n', ["a", "b"], [1.5, 2.25]),
        ("a;b (m, n)\n1.5;x\n2.25;y\n", ["a", "b (m, n)"], [1.5, 2.25]),
        ("a\n1.5\n2.25\n", ["a"], [1.5, 2.25]),
        ("a;b;\n1,5;x;\n2,25;y;\n", ["a", "b"], [1.5, 2.25]),
        ("a;a;b\n15e-1;;x\n2,25;1;y\n", ["a", "a.1", "b"], [1.5, 2.25]),
        ("a;b\n1,234;x\n5,678;y\n", ["a", "b"], ["1,234", "5,678"]),  # thousands, or not?
        ("a;b;c\n1,5;x;1.5\n2,25;y;2.5\n", ["a", "b", "c"], ["1,5", "2,25"]),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz"])
def test_a_table_is_read_exactly_as_written(
    text: str, columns: list[str], cells: list[Any], ending: str, tmp_path: Path
) -> None:
    path = str(tmp_path / f"x.{ending}")
    pandas_write = {"index": False, "header": False, "sep": "\x01", "quoting": 3}
    pd.DataFrame(text.splitlines()).to_csv(path, **pandas_write)  # type: ignore[call-overload]
    assert read_table(path).columns.tolist() == columns
    assert read_table(path)["a"].tolist() == cells
    parts = [part["a"].tolist() for part in read_chunks(path, 1)]
    assert parts == [cells[:1], cells[1:]]


def test_a_level_of_the_model_stays_one_whatever_it_is_called(shell: Shell) -> None:
    joblib: Any = pytest.importorskip("joblib", reason="needs joblib")
    X = houses()
    model = one_hot(X)
    joblib.dump(model, "pool.joblib")
    X.to_csv("houses.csv", sep=";", index=False)
    base = ("explain", "--model", "pool.joblib", "--trust-pickle", "--data", "houses.csv")
    row = int((X["pool"] == "None").to_numpy().argmax())
    for more in ((), ("--na", "None")):
        ran = shell(*base, "--query", str(row), *ASK, "--json", *more)
        assert ran.content["output"] == pytest.approx(model.predict(X.iloc[[row]])[0])


@pytest.mark.parametrize(
    "ending",
    [".joblib", ".txt", pytest.param(".json", marks=pytest.mark.slow)],
)
def test_categories_of_a_file_are_levels_whatever_they_are_called(
    shell: Shell, ending: str
) -> None:
    """Text, digits that are text, and missing cells, as they are in a file with semicolons."""
    X, y = flats()
    X["heat by"] = X["heat by"].where(X["heat by"] != "gas fired", "0815").replace("Öl", "null")
    X["grade"] = X["grade"].astype(str)
    table = X.astype({"heat by": "category", "grade": "category", "seen": "category"})
    model = (boosted("XGBRegressor") if ending == ".json" else quick("LGBMRegressor")).fit(table, y)
    file = f"flats{ending}"
    if ending == ".joblib":
        importlib.import_module("joblib").dump(model, file)
    else:
        getattr(model, "booster_", model).save_model(file)
    X.to_csv("flats.csv", index=False, sep=";")
    expected = model.predict(table)
    base = ("--model", file, "--data", "flats.csv", "--trust-pickle", "--na", "NA", "--quiet")
    ran = shell("inspect", *base, "--na", "null", "--json")
    assert ran.content["features"]["heat by"]["levels"] == ["0815", "NA", "Wärmepumpe", "null"]
    assert ran.err == ""
    for row in (0, 17, 20):  # the second misses the level
        for query in (str(row), X.iloc[[row]].to_json(orient="records")):
            ran = shell("predict", *base, "--query", query, "--json")
            assert ran.content["output"] == pytest.approx(expected[row], rel=1e-6), ran
    X[10:30].to_csv("some.csv", index=False, sep=";")
    words = ("--queries", "some.csv", "--target", ">= 150", "--budget", "400", "--json")
    ran = shell("explain-many", *base, *words)
    assert [a["output"] for a in ran.content["answers"]] == pytest.approx(list(expected[10:30]))
    found = pd.DataFrame([a["counterfactuals"][0]["row"] for a in ran.content["answers"]])
    again = pd.DataFrame({name: found[name].astype(table[name].dtype) for name in table})
    outputs = [a["counterfactuals"][0]["output"] for a in ran.content["answers"]]
    assert outputs == pytest.approx(list(model.predict(again)))


def test_a_missing_mark_that_the_model_does_not_know_is_a_warning(shell: Shell) -> None:
    joblib: Any = pytest.importorskip("joblib", reason="needs joblib")
    X = houses()
    joblib.dump(one_hot(X[X["pool"] != "None"]), "small.joblib")
    X.to_csv("houses.csv", index=False)
    base = ("inspect", "--model", "small.joblib", "--trust-pickle", "--data", "houses.csv")
    ran = shell(*base, "--quiet")
    assert "column 'pool' has 'None', which the model was not trained on." in ran.err
    assert "pass --na 'None'" in ran.err


def test_levels_of_encoders_are_found_wherever_they_are() -> None:
    selection: Any = pytest.importorskip("sklearn.model_selection", reason="needs scikit-learn")
    X = houses()
    y = X["area"].astype(float)
    search = selection.GridSearchCV(one_hot(X), {}, cv=2).fit(X[["area", "pool"]], y)
    for model in (one_hot(X), search):
        loaded = Loaded.of(model)
        assert set(loaded.levels["pool"]) == {"None", "small", "large"}
        assert loaded.categorical == ("pool",)


def test_dates_are_points_in_time_and_the_model_gets_its_own_type(shell: Shell) -> None:
    houses().to_csv("houses.csv", index=False)
    Path("dated.py").write_text(
        "import pandas as pd\n"
        "def text(rows):\n    return rows['sold'].str[5:7].astype(float) * 10 + rows['area']\n"
        "def times(rows):\n    return rows['sold'].dt.month * 10.0 + rows['area']\n"
    )
    answers = []
    for name in ("text", "times"):
        base = ("--model", f"dated:{name}", "--data", "houses.csv", "--id", "key")
        found = shell("inspect", *base, "--json").content["features"]["sold"]
        assert found["kind"] == "moment"
        assert found["low"] == "2016-01-01T00:00:00"
        fixed = ("--fix", "area,pool", "--query", "003", "--target", "+10")
        ran = shell("explain", *base, *fixed, "--budget", "20", "--json")
        assert ran.code == 0, ran
        message = (
            "note: the model scores one or two rows, beside the budget, to show how it takes dates."
        )
        assert message in ran.err
        answers.append(ran.content["counterfactuals"][0]["row"]["sold"][:8])
    assert answers == ["2016-02-", "2016-02-"]


@pytest.mark.parametrize(("form", "place"), [("%d/%m/%Y", 1), ("%-m/%-d/%Y", 0)])
def test_dates_with_slashes_are_points_in_time(shell: Shell, form: str, place: int) -> None:
    X = houses(n=100)
    X["sold"] = pd.to_datetime(X["sold"]).dt.strftime(form)
    X.to_csv("slashes.csv", index=False)
    X.head(2).assign(sold=[X["sold"][1], "soon"]).to_csv("two.csv", index=False)
    Path(f"slashed{place}.py").write_text(
        "def times(rows):\n    return rows['sold'].dt.month * 10.0 + rows['area']\n"
        "def text(rows):\n"
        f"    months = rows['sold'].str.split('/').str[{place}]\n"
        "    return months.astype(float) * 10 + rows['area']\n"
    )
    for name in ("text", "times"):
        base = (
            "--model",
            f"slashed{place}:{name}",
            "--data",
            "slashes.csv",
            "--id",
            "key",
            "--drop",
            "pool",
        )
        found = shell("inspect", *base, "--json").content["features"]["sold"]
        assert (found["kind"], found["low"]) == ("moment", "2016-01-01T00:00:00")
        query = json.dumps({"area": 50, "sold": X["sold"][40]})  # in February
        ran = shell("predict", *base, "--query", query, "--set", f"sold={X['sold'][70]}", "--json")
        assert (ran.content["query_output"], ran.content["output"]) == (70, 80), ran
        words = ("--queries", "two.csv", "--target", "+10", "--fix", "area", *ASK)
        ran = shell("explain-many", *base, *words, "--json")
        assert ran.content["answers"][0]["counterfactuals"][0]["output"] == X["area"][0] + 20
        assert [line["query"] for line in ran.content["failures"]] == [1]
        assert "'soon'" in ran.content["failures"][0]["error"]


def test_ambiguous_dates_are_a_warning(shell: Shell) -> None:
    days = [f"0{day}/0{month}/2016" for day in range(1, 7) for month in range(1, 7)]
    pd.DataFrame({"sold": days, "area": range(36)}).to_csv("months.csv", index=False)
    ran = shell("inspect", "--data", "months.csv", "--json")
    assert ran.content["features"]["sold"]["kind"] == "categorical"
    message = "warning: column 'sold' may be dates with the day or the month first, such as"
    assert ran.err.startswith(message)
    assert "Say which it is with the kind '%d/%m/%Y' or '%m/%d/%Y'." in ran.err
    base = ("inspect", "--data", "months.csv", "--kind", "sold=%d/%m/%Y")
    ran = shell(*base, "--json", "--out", "months.toml")
    assert ran.content["features"]["sold"]["high"] == "2016-06-06T00:00:00"
    assert ran.err == ""
    ran = shell("inspect", "--settings", "months.toml", "--json")
    assert ran.content["features"]["sold"]["kind"] == "moment"
    Path("dates.py").write_text("def months(rows):\n    return rows['sold'].dt.month + 0.0\n")
    model = ("--model", "dates:months")
    shell(*base, *model, "--out", "times.toml")
    ran = shell("predict", *model, "--settings", "times.toml", "--query", "1", "--json")
    assert ran.content["output"] == 2  # as its second row is 01/02/2016


def test_a_year_is_a_point_in_time_and_no_number(shell: Shell) -> None:
    houses().to_csv("houses.csv", index=False)
    base = ("inspect", "--data", "houses.csv", "--id", "key")
    ran = shell(*base, "--between", "sold=2016-02:2017")
    assert "2016-02-01 and 2017-01-01" in ran.out
    assert "'sold', a point in time" in shell.fails(*base, "--require", "sold >= 2016")


def test_a_column_names_the_rows_and_is_no_feature(shell: Shell) -> None:
    houses().to_csv("houses.csv", index=False)
    Path("area.py").write_text("def f(rows):\n    return rows['area'] * 1.0\n")
    base = ("--model", "area:f", "--data", "houses.csv", "--id", "key")
    ran = shell("explain", *base, "--query", "007", *ASK, "--json")
    assert ran.content["id"] == "007"
    assert "key" not in ran.content["counterfactuals"][0]["row"]
    assert ran.content["output"] == houses()["area"][7]
    message = shell.fails("explain", *base, "--query", "7", *ASK)
    assert "the query must be the 'key' of one row of the data; got '7'." in message
    base = (*base[:-1], "kei")
    message = shell.fails("explain", *base, "--query", "007", *ASK)
    assert "--id must be a column of the data; got 'kei'. Did you mean 'key'?" in message


def test_names_in_the_index_of_a_parquet_file_are_kept_however_it_was_written(
    tmp_path: Path,
) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    path, names = str(tmp_path / "x.parquet"), [f"n{i}" for i in range(7)]
    # Levels differ from one row group to the next: Arrow reads no further at once.
    cells = {"a": range(7), "b": pd.Categorical(names)}
    pd.DataFrame(cells, index=pd.Index(names, name="who")).to_parquet(path, row_group_size=2)
    for n in (3, None):
        table = pd.concat([*read_chunks(path, n, table_format=TableFormat(id="who"))])
        assert (table.index.name, table.index.tolist()) == ("who", names)
        assert table["a"].tolist() == list(range(7))
    for part in read_chunks(path, 3):
        assert part.index.equals(pd.RangeIndex(len(part)))


def test_a_name_that_is_a_number_stays_one_for_scripts(shell: Shell) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    X, _ = people()
    X.assign(who=np.arange(len(X)) + 100).to_parquet("numbered.parquet")
    words = ("--data", "numbered.parquet", "--id", "who", "--query", "107", *ASK, "--json")
    assert shell("explain", "--model", f"{FUNCTIONS}:score", *words).content["id"] == 107


@pytest.mark.parametrize("jobs", [(), ("--jobs", "1")])
def test_names_travel_through_many_queries(shell: Shell, jobs: tuple[str, ...]) -> None:
    pytest.importorskip("joblib", reason="needs joblib")
    X, _ = people()
    X.head(3).assign(who=["007", "x,1", "007"]).to_csv("named.csv", index=False)
    out = "named-answers.csv"
    words = ("--queries", "named.csv", "--id", "who", *ASK, "--out", out, *jobs)
    ran = shell(*MANY, *words)
    assert ran.code in (0, 3), ran
    table = pd.read_csv(out, dtype=str)
    assert table["query"].tolist() == ["0", "1", "2"]
    assert table["who"].tolist() == ["007", "x,1", "007"]
    message = shell.fails(*MANY, "--queries", "five.csv", "--id", "who", *ASK, "--out", out, *jobs)
    assert message == "error: the queries file 'five.csv' must have the column 'who' of --id."


def test_names_are_in_the_answers_for_scripts(shell: Shell) -> None:
    X, _ = people()
    X.head(2).assign(who=["a", "b"], age=[40, "?"]).to_csv("named.csv", index=False)
    words = ("--queries", "named.csv", "--id", "who", *ASK)
    content = shell(*MANY, *words, "--json", "--out", "named.json").content
    assert [answer["id"] for answer in content["answers"]] == ["a"]
    assert [lost["id"] for lost in content["failures"]] == ["b"]
    assert json.loads(Path("named.json").read_text())["index"] == [["who"], ["a"]]
    lines = shell(*MANY, *words).out.splitlines()
    assert lines[0].split()[0] == "who"
    assert [line.split()[0] for line in lines[1:3]] == ["a", "b"]


def test_a_query_on_standard_input_may_be_a_table(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (shell.folder / "one.csv").read_text()
    words = ("--target", "+25%", "--budget", "10", "--json")
    reference = shell.explain("--query", "3", *words).out
    for given in (text, text.replace(",", ";"), text.replace(",", "\t")):
        monkeypatch.setattr("sys.stdin", io.StringIO(given))
        assert shell.explain("--query", "-", *words).out == reference
    monkeypatch.setattr("sys.stdin", io.StringIO(text + text.splitlines()[1]))
    ran = shell.explain("--query", "-", *words)
    assert "the query must have one row; got 2. Use explain-many." in ran.err


def test_a_model_that_was_trained_with_names_of_rows_and_ignores_them(shell: Shell) -> None:
    joblib: Any = pytest.importorskip("joblib", reason="needs joblib")
    compose: Any = importlib.import_module("sklearn.compose")
    linear: Any = importlib.import_module("sklearn.linear_model")
    pipeline: Any = importlib.import_module("sklearn.pipeline")
    X = houses().assign(number=np.arange(60.0))
    X.to_csv("houses.csv", index=False)
    chosen = compose.make_column_transformer(("passthrough", ["area", "number"]))
    model = pipeline.make_pipeline(chosen, linear.LinearRegression())
    joblib.dump(model.fit(X, X["area"] + 3 * X["number"]), "whole.joblib")
    base = ("explain", "--model", "whole.joblib", "--trust-pickle", "--data", "houses.csv")
    ran = shell(*base, "--id", "key", "--query", "007", *ASK, "--json")
    assert ran.content["output"] == pytest.approx(X["area"][7] + 21)
    ran = shell(
        *base, "--id", "key", "--query", "007", *(word for word in ASK if word != "--quiet")
    )
    message = "note: the model scores 10 rows, beside the budget, to show whether it predicts from"
    assert f"{message} 'key'." in ran.err
    message = shell.fails(*base, "--id", "number", "--query", "7.0", *ASK)
    assert "its outputs depend on 'number'. Leave --id out." in message
