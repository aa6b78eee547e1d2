"""The command line, as a user types it: answers, files, exit codes and messages."""

from __future__ import annotations

import importlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import bayescfx as cfx
from bayescfx.cli import demo, main
from bayescfx.cli.app import in_options
from bayescfx.cli.arguments import parse
from bayescfx.cli.console import Console
from bayescfx.cli.progress import Progress
from bayescfx.cli.targets import parse_target
from bayescfx.search.turns import Step
from tests.people import categories, people
from tests.servers import Scoring, serving

joblib: Any = importlib.import_module("joblib")
lightgbm: Any = importlib.import_module("lightgbm")

FUNCTION = """\
import os

def score(rows):
    return rows["age"] * 2.0 + rows["bmi"]

def noisy(rows):
    print("printed by the model")
    os.write(1, b"written by compiled code\\n")
    return score(rows)

def broken(rows):
    raise RuntimeError("no such\\n  luck")

def fragile(rows):
    if (rows["age"] > 61).any():
        raise ValueError("too old")
    return score(rows)

def double(rows):
    return rows["age"] * 2
"""


@dataclass(frozen=True)
class Ran:
    """What a command wrote and returned."""

    code: int
    out: str
    err: str

    @property
    def content(self) -> Any:
        """The answer as JSON."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Shell:
    """Run commands in a folder with a model, data and a module."""

    folder: Path
    capture: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> Ran:
        """Run a command."""
        self.capture.readouterr()
        try:
            code = main(words)
        except SystemExit as stop:
            code = int(str(stop.code))
        seen = self.capture.readouterr()
        return Ran(code, seen.out, seen.err)

    def explain(self, *words: str) -> Ran:
        """Run `explain` on the LightGBM model without progress, with a small budget."""
        base = ("--model", "m.txt", "--data", "X.csv", "--quiet", "--budget", "25")
        return self("explain", *base, *words)

    def fails(self, *words: str) -> str:
        """Run a command that must fail for bad input, and return its one line."""
        ran = self(*words)
        assert ran.code == 2, ran
        assert ran.out == ""
        lines = [line for line in ran.err.splitlines() if not line.startswith("note: ")]
        assert len(lines) == 1, ran.err
        assert lines[0].startswith("error: ")
        return lines[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    X, y = people()
    X.assign(progression=y).to_csv(folder / "X.csv", index=False)
    X.iloc[[3]].to_csv(folder / "one.csv", index=False)
    X.head(5).to_csv(folder / "five.csv", index=False)
    X.assign(progression=y).to_parquet(folder / "X.parquet")
    (folder / "one.json").write_text(json.dumps(X.iloc[3].to_dict(), default=float))
    (folder / "functions_of_rows.py").write_text(FUNCTION)
    model = lightgbm.LGBMRegressor(n_estimators=40, verbose=-1, n_jobs=1)
    model.fit(categories(X), y).booster_.save_model(str(folder / "m.txt"))
    return folder


@pytest.fixture
def shell(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    monkeypatch.chdir(folder)
    return Shell(folder, capsys)


FUNCTIONS = "functions_of_rows"
LINEAR = (
    *("explain", "--model", f"{FUNCTIONS}:score", "--data", "X.csv", "--drop", "progression"),
    *("--budget", "25"),
)


# ── explain ──


def test_an_answer_is_a_table_and_sentences_on_stdout(shell: Shell) -> None:
    ran = shell(*LINEAR, "--query", "3", "--target", "+20%", "--fix", "age,sex,glucose")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].split() == ["now", "then"]
    assert lines[1].split()[0] == "bmi"
    assert lines[2].split()[0] == "prediction"
    assert any(line.startswith("Answer: bmi 25.3 → ") for line in lines)
    assert any(line.startswith("Reached;") for line in lines)


def test_json_is_the_answer_that_python_gives(shell: Shell) -> None:
    ran = shell.explain("--query", "3", "--target", ">= 170", "--fix", "age,sex", "--json")
    X, _ = people()
    model = lightgbm.Booster(model_file="m.txt")
    space = cfx.Space.from_data(X).fix("age", "sex")
    answer = cfx.explain(model, X.iloc[3], space, cfx.at_least(170), budget=25, rng=0)
    assert isinstance(answer.rows, pd.DataFrame)
    content = ran.content
    assert ran.err == ""
    assert ran.code == 0
    assert content["status"] == answer.status == "reached"
    assert content["output"] == answer.output
    (found,) = content["counterfactuals"]
    assert found["output"] == found["prediction"] == answer.best.output
    assert found["row"] == dict(answer.rows.iloc[0])
    assert found["changes"] == {
        name: {"from": before, "to": after} for name, (before, after) in answer.best.changes.items()
    }


def test_the_same_seed_gives_the_same_answer_and_another_may_not(shell: Shell) -> None:
    words = ("--query", "3", "--target", "+25%", "--budget", "15", "--json")
    first, second = shell.explain(*words), shell.explain(*words, "--seed", "0")
    assert first.out == second.out
    assert shell.explain(*words, "--seed", "5").content["seed"] == 5


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (("--target", "+25%"), "reached", 0),
        (("--target", "+25%", "--budget", "3"), "best_guess", 3),
        (("--target", ">= 5000", "--allow", "glucose,sex"), "unreachable", 4),
        (("--target", ">= 10"), "reached", 0),
    ],
)
def test_exit_codes_tell_how_it_ended(
    words: tuple[str, ...], status: str, code: int, shell: Shell
) -> None:
    ran = shell.explain("--query", "3", "--json", *words)
    assert (ran.content["status"], ran.code) == (status, code)


def test_a_query_that_has_what_is_wanted_needs_no_change(shell: Shell) -> None:
    ran = shell.explain("--query", "3", "--target", ">= 10")
    assert "Answer: no change" in ran.out


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


def test_data_may_be_parquet(shell: Shell) -> None:
    words = ("--query", "3", "--target", "+25%", "--budget", "10", "--json", "--quiet")
    ran = shell("explain", "--model", "m.txt", "--data", "X.parquet", *words)
    assert ran.out == shell.explain(*words).out


def test_the_columns_that_the_model_does_not_take_are_named(shell: Shell) -> None:
    words = ("--query", "3", "--target", "150", "--budget", "3")
    ran = shell("explain", "--model", "m.txt", "--data", "X.csv", *words)
    assert "note: columns that the model does not take: progression." in ran.err


def test_limits_and_rules_are_kept(shell: Shell) -> None:
    ran = shell(
        *LINEAR,
        *("--query", "3", "--target", "+10%", "--json", "-n", "3", "--budget", "60", "--quiet"),
        *("--only-up", "age", "--between", "bmi=18:26", "--between", "glucose=low|middle"),
        *("--move", "age=-2:5", "--require", "bmi <= age", "--max-changes", "2"),
    )
    assert ran.code == 0
    for found in ran.content["counterfactuals"]:
        row = found["row"]
        assert 24 <= row["age"] <= 29
        assert 18 <= row["bmi"] <= 26
        assert row["glucose"] in ("low", "middle")
        assert row["bmi"] <= row["age"]
        assert len(found["changes"]) <= 2


def test_only_what_is_allowed_moves_and_together(shell: Shell) -> None:
    words = ("--query", "3", "--target", "-10%", "--json", "--quiet")
    ran = shell(*LINEAR, *words, "--allow", "bmi,age", "--together", "bmi,age")
    (found,) = ran.content["counterfactuals"]
    assert set(found["changes"]) == {"age", "bmi"}
    ran = shell(*LINEAR, *words, "--only-down", "age", "--near-data", "--move", "bmi=-1:")
    assert ran.code in (0, 3)


def test_a_derived_column_follows_the_others(shell: Shell) -> None:
    words = ("--query", "0", "--target", "+10%", "--json", "--quiet")
    ran = shell(*LINEAR, *words, "--kind", "bmi=real", "--derive", f"bmi={FUNCTIONS}:double")
    (found,) = ran.content["counterfactuals"]
    assert found["row"]["bmi"] == 2 * found["row"]["age"]


def test_kinds_can_be_corrected(shell: Shell) -> None:
    words = ("--query", "3", "--target", "+25%", "--json", "--budget", "20")
    assert shell.explain(*words, "--kind", "age=categorical").code in (0, 3)
    ran = shell("inspect", "--data", "X.csv", "--kind", "age=categorical")
    assert "age          categorical" in ran.out


# ── files ──


def test_an_answer_in_a_file_is_complete(shell: Shell) -> None:
    words = ("--out", "answer.json", "--out", "answer.csv")
    ran = shell.explain("--query", "3", "--target", "+25%", *words)
    answer = cfx.Explanation.from_json((shell.folder / "answer.json").read_text())
    assert str(answer) in ran.out
    assert answer.seed == 0
    assert answer.verify(lightgbm.Booster(model_file="m.txt"))
    table = pd.read_csv(shell.folder / "answer.csv")
    assert table["output"].tolist() == pytest.approx([answer.best.output], rel=1e-15)


def test_what_the_model_said_is_kept_and_used_again(shell: Shell) -> None:
    words = ("--query", "3", "--target", "+25%", "--evaluations", "seen.db", "--json")
    first = shell.explain(*words).content
    second = shell.explain(*words, "--budget", "1").content
    assert first["n_evaluations"] > 1
    assert second["n_evaluations"] <= 1
    assert second["status"] == "reached"
    other = shell.fails(*LINEAR, *words[:-3], "--evaluations", "X.csv")
    assert "X.csv" in other


# ── settings files ──

SETTINGS = """\
model = "m.txt"
data = "X.csv"
target = "+25%"
budget = 30
seed = 1

[features]
age = "integer"

[features.bmi]
step = 0.5

[space]
fix = ["sex"]
only_up = ["age"]
max_changes = 2
require = ["bmi <= age"]

[space.between]
bmi = [18, 40]
glucose = ["low", "middle"]

[space.cost]
weight = 0.2
"""


def test_a_settings_file_holds_options_and_space(shell: Shell) -> None:
    nested = shell.folder / "shared"
    nested.mkdir()
    (nested / "s.toml").write_text(
        SETTINGS.replace('"m.txt"', '"../m.txt"').replace('"X.csv"', '"../X.csv"')
    )
    ran = shell("explain", "--settings", "shared/s.toml", "--query", "3", "--json", "--quiet")
    assert ran.code in (0, 3)
    (found,) = ran.content["counterfactuals"]
    assert ran.content["seed"] == 1
    assert found["row"]["sex"] == "female"
    assert found["row"]["age"] >= 24
    assert "bmi" not in found["changes"] or found["row"]["bmi"] * 2 % 1 == 0


def test_the_command_line_goes_first_and_adds_to_the_space(shell: Shell) -> None:
    (shell.folder / "s.toml").write_text(SETTINGS)
    words = ("--settings", "s.toml", "--query", "3", "--json", "--quiet")
    ran = shell("explain", *words, "--seed", "2", "--target", "+20%", "--fix", "glucose,bmi")
    assert (ran.content["seed"], ran.content["target"]) == (2, "+20 %")
    assert set(ran.content["counterfactuals"][0]["changes"]) <= {"age"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("budgt = 3", r"has an unknown name 'budgt'. Did you mean 'budget'?"),
        ('budget = "x"', "'budget' in 'bad.toml' must be a whole number; got 'x'."),
        ("budget = true", "'budget' in 'bad.toml' must be a whole number; got True."),
        ("[space]\nfx = []", "[space] in 'bad.toml' has an unknown name 'fx'. Did you mean 'fix'?"),
        ("[space]\nfix = 'a'", "'space.fix' in 'bad.toml' must be a list of names; got 'a'."),
        ("budget = ", "the settings file 'bad.toml' must be TOML; got"),
        ("trust_pickle = true", "'trust_pickle' must not be in a settings file, because it decid"),
        ("[features]\nbmi = 3", "features.bmi must be a kind or a table; got 3."),
        ("[features]\nbm = 'real'", "the features name 'bm', which is no column that the model t"),
        ("[features]\nbmi = 'rael'", "the kind of 'bmi' must be one of real, integer, ordinal"),
        ("[features.bmi]\nstp = 1", "features.bmi must have only kind, low, high, step; got 'stp"),
        ("[space.between]\nbmi = [1]", "between for 'bmi' must be [low, high]; got [1]."),
        ("[space.cost]\nweigt = 1", "space.cost must have only weight, norm and per_feature; got"),
        ("[space.near_data]\nq = 1", "space.near_data must have only quantile and neighbours; g"),
    ],
)
def test_a_bad_settings_file_is_one_line(text: str, message: str, shell: Shell) -> None:
    (shell.folder / "bad.toml").write_text(text + "\n")
    words = ("--model", "m.txt", "--data", "X.csv", "--query", "3", "--target", "150")
    assert message in shell.fails("explain", "--settings", "bad.toml", *words)


def test_a_settings_file_that_is_not_there_is_one_line(shell: Shell) -> None:
    message = shell.fails("explain", "--settings", "no.toml", "--query", "3")
    assert "the settings file 'no.toml' can't be read: No such file" in message


# ── inspect ──


def test_inspect_shows_what_is_inferred_and_how_to_correct_it(shell: Shell) -> None:
    ran = shell("inspect", "--data", "X.csv", "--model", "m.txt")
    assert ran.code == 0
    assert "glucose  categorical  'high', 'low', 'middle'" in ran.out
    assert "not taken by the model: progression" in ran.out
    assert "outputs on 100 rows:" in ran.out
    assert '--kind "NAME=real|integer|ordinal|categorical"' in ran.out


def test_inspect_points_at_whole_numbers_and_missing_cells(shell: Shell) -> None:
    table = pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": [0.5, 1.5, 2.0]})
    table.to_csv(shell.folder / "gaps.csv", index=False)
    ran = shell("inspect", "--data", "gaps.csv")
    assert "missing cells: a (1)" in ran.out
    assert "whole numbers only, so perhaps integer: a" in ran.out


def test_inspect_writes_a_settings_file_that_can_be_used(shell: Shell) -> None:
    words = ("--data", "X.csv", "--model", "m.txt")
    shell("inspect", *words, "--fix", "sex", "--out", "space.toml")
    direct = shell.explain("--query", "3", "--target", "+25%", "--fix", "sex", "--json")
    ran = shell(
        "explain",
        "--settings",
        "space.toml",
        "--query",
        "3",
        "--target",
        "+25%",
        "--json",
        "-n1",
        *("--budget", "10"),
    )
    assert ran.content["counterfactuals"][0]["row"]["sex"] == "female"
    assert direct.content["output"] == ran.content["output"]


def test_inspect_gives_json(shell: Shell) -> None:
    content = shell("inspect", "--data", "X.csv", "--model", "m.txt", "--json").content
    assert content["features"]["age"]["kind"] == "integer"
    assert content["features"]["sex"]["kind"] == "categorical"
    assert content["ignored"] == ["progression"]
    assert len(content["outputs"]) == 3


def test_inspect_names_the_labels_of_a_classifier(shell: Shell) -> None:
    X, y = people()
    labels = pd.qcut(y, 3, labels=["a", "b", "c"]).astype(str)
    joblib.dump(LogisticRegression(max_iter=2000).fit(X[["age", "bmi"]], labels), "three.joblib")
    words = ("--model", "three.joblib", "--trust-pickle", "--data", "X.csv")
    ran = shell("inspect", *words)
    assert ran.code == 0
    assert "a classifier of a, b, c: choose one with --label" in ran.out
    assert "outputs" not in ran.out
    assert "outputs for b on 100 rows: " in shell("inspect", *words, "--label", "b").out
    assert shell("inspect", *words, "--json").content["labels"] == ["a", "b", "c"]
    message = shell.fails("explain", *words, "--query", "3", "--target", "0.9", "--quiet")
    assert message == "error: the label must be one of a, b, c; got none. Name one with --label."


# ── explain-many ──

MANY = ("explain-many", "--model", f"{FUNCTIONS}:score", "--data", "X.csv", "--drop", "progression")


def test_many_answers_are_one_table(shell: Shell) -> None:
    words = ("--queries", "five.csv", "--target", "+10%", "--budget", "20", "--quiet")
    ran = shell(*MANY, *words, "--out", "many.csv", "--out", "many.json")
    assert ran.code == 0
    assert ran.out.splitlines()[-1].startswith("5 of 5 reached; ")
    table = pd.read_csv(shell.folder / "many.csv")
    assert table["query"].tolist() == [0, 1, 2, 3, 4]
    assert set(table["status"]) == {"reached"}
    many = cfx.Explanations.from_json((shell.folder / "many.json").read_text())
    assert [a.best.output for a in many] == table["output"].tolist()


def test_many_answers_are_those_of_python(shell: Shell) -> None:
    X, _ = people()
    queries = X.head(8)
    queries.to_csv(shell.folder / "more.csv", index=False)
    words = ("--queries", "more.csv", "--target", "+10%", "--budget", "4", "--json", "--quiet")
    ran = shell(*MANY, *words)
    many = cfx.explain_many(
        lambda rows: rows["age"] * 2.0 + rows["bmi"],
        queries,
        cfx.Space.from_data(X),
        cfx.increase(percent=10),
        budget=4,
        rng=0,
    )
    predictions = [a["counterfactuals"][0]["output"] for a in ran.content["answers"]]
    assert predictions == [a.best.output for a in many]
    assert [a["query"] for a in ran.content["answers"]] == list(range(8))


def test_blocks_of_queries_learn_from_each_other(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bayescfx.cli.asking.BLOCK", 2)
    people()[0].iloc[[3, 4, 3, 4, 5]].to_csv(shell.folder / "twice.csv", index=False)
    words = ("--queries", "twice.csv", "--target", ">= 10", "--quiet")
    ran = shell(*MANY, *words, "--json", "--out", "twice.json")
    assert [a["n_evaluations"] for a in ran.content["answers"]] == [1, 1, 0, 0, 1]
    text = (shell.folder / "twice.json").read_text()
    assert len(json.loads(text)["evaluations"]) == 1
    assert len(cfx.Explanations.from_json(text)) == 5


def test_blocks_are_those_of_python_called_for_one_after_another(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bayescfx.cli.asking.BLOCK", 2)
    X, _ = people()
    X.head(4).to_csv(shell.folder / "four.csv", index=False)
    words = ("--queries", "four.csv", "--target", "+10%", "--budget", "6", "--json", "--quiet")
    ran = shell(*MANY, *words)
    known, rng = cfx.Evaluations(), np.random.default_rng(0)
    expected = [
        (answer.best.output, answer.n_evaluations)
        for start in (0, 2)
        for answer in cfx.explain_many(
            lambda rows: rows["age"] * 2.0 + rows["bmi"],
            X.iloc[start : start + 2],
            cfx.Space.from_data(X),
            cfx.increase(percent=10),
            budget=6,
            evaluations=known,
            rng=rng,
        )
    ]
    assert expected == [
        (a["counterfactuals"][0]["output"], a["n_evaluations"]) for a in ran.content["answers"]
    ]


def test_a_bad_row_among_many_does_not_cost_the_others_their_answers(shell: Shell) -> None:
    X, _ = people()
    X.head(4).assign(sex=["male", "mle", "female", "male"]).to_csv("mixed.csv", index=False)
    words = ("--queries", "mixed.csv", "--target", "+10%", "--budget", "15", "--quiet")
    ran = shell(*MANY, *words, "--out", "mixed-out.csv")
    assert ran.code == 2
    assert ran.err.startswith(
        "error: 1 of 4 queries can't be asked; the first is row 1: the query has 'mle' in column "
        "'sex', which the data does not have. Did you mean 'male'?"
    )
    table = pd.read_csv(shell.folder / "mixed-out.csv")
    assert table["query"].tolist() == [0, 2, 3, 1]
    assert table["status"].tolist() == ["reached", "reached", "reached", "error"]
    assert "'mle'" in table["error"].iloc[3]


def test_if_no_row_can_be_asked_that_is_the_error(shell: Shell) -> None:
    people()[0].head(2).drop(columns="bmi").to_csv("narrow.csv", index=False)
    message = shell.fails(*MANY, "--queries", "narrow.csv", "--target", "+10%")
    assert "no row of 'narrow.csv' can be asked: the query must have every column" in message


def test_exit_code_of_many_is_the_worst(shell: Shell) -> None:
    words = ("--queries", "five.csv", "--quiet", "--budget", "12")
    assert shell(*MANY, *words, "--target", "+10%").code == 0
    assert shell(*MANY, *words, "--target", ">= 9000", "--allow", "sex").code == 4
    words = ("--queries", "five.csv", "--quiet", "--budget", "1")
    assert shell(*MANY, *words, "--target", "+10%").code == 3


# ── a model that fails half-way ──


def score(rows: Any) -> Any:
    return rows["age"] * 2.0 + rows["bmi"]


@pytest.fixture
def dying() -> Iterator[Scoring]:
    """Yield a server that stops to answer after some rows."""
    with serving(Scoring(score, fails_after=12)) as server:
        yield server


def test_an_endpoint_that_goes_down_half_way_leaves_the_best_so_far(
    shell: Shell, dying: Scoring
) -> None:
    words = ("--query", "3", "--target", "= 160.123", "--tolerance", "0.00001", "--retries", "0")
    ran = shell(
        *("explain", "--model", dying.url, "--data", "X.csv", "--drop", "progression", *words),
        *("--quiet", "--json", "--out", "rescued.json", "--budget", "60"),
    )
    assert ran.code == 2
    assert ran.err.startswith(f"error: the model failed after {dying.rows} rows: the model at ")
    assert "Start the server, or correct the address. The answer is the best of what" in ran.err
    assert ran.err.rstrip().endswith("with --evaluations FILE it goes on from there.")
    assert ran.err.count("\n") == 1
    answer = cfx.Explanation.from_json((shell.folder / "rescued.json").read_text())
    assert len(answer.evaluations) == dying.rows == answer.n_evaluations
    assert ran.content["stopped"] == "interrupted"
    X, _ = people()
    outputs = answer.evaluations.outputs
    assert abs(answer.best.output - 160.123) == np.abs(outputs - 160.123).min()
    assert answer.output == score(X.iloc[3])


def test_what_was_reached_before_the_endpoint_went_down_is_an_answer(
    shell: Shell, dying: Scoring
) -> None:
    ran = shell(
        *("explain", "--model", dying.url, "--data", "X.csv", "--drop", "progression"),
        *("--query", "3", "--target", "+1", "--tolerance", "0.9", "--retries", "0", "-n", "3"),
        *("--quiet", "--json", "--budget", "60"),
    )
    assert ran.code == 0
    assert ran.content["status"] == "reached"
    assert ran.err.startswith(f"warning: the model failed after {dying.rows} rows: the model at ")


def test_an_endpoint_that_is_down_from_the_start_is_an_error(shell: Shell) -> None:
    with serving(Scoring(score, fails_after=0)) as server:
        message = shell.fails(
            *("explain", "--model", server.url, "--data", "X.csv", "--drop", "progression"),
            *("--query", "3", "--target", "150", "--retries", "0", "--quiet"),
        )
    assert f"the model at {server.url}/invocations does not answer: " in message
    assert "(1 attempts). Start the server, or correct the address." in message


def test_many_keep_what_was_answered_when_the_endpoint_goes_down(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bayescfx.cli.asking.BLOCK", 6)
    people()[0].head(9).to_csv(shell.folder / "long.csv", index=False)
    # Enough for the first block, and for f(query) of the second.
    with serving(Scoring(score, fails_after=6 * 4 + 4)) as server:
        ran = shell(
            *("explain-many", "--model", server.url, "--data", "X.csv", "--drop", "progression"),
            *("--queries", "long.csv", "--target", "+10%", "--budget", "4", "--retries", "0"),
            *("--quiet", "--out", "kept.csv", "--evaluations", "kept.db"),
        )
        rows = server.rows
    assert ran.code == 2
    assert ran.err.startswith("error: the model failed half-way: the model at ")
    assert "9 of 9 queries have answers" in ran.err
    assert "They are in kept.csv." in ran.err
    table = pd.read_csv(shell.folder / "kept.csv")
    assert table["query"].tolist() == list(range(9))
    with cfx.Evaluations.open(shell.folder / "kept.db") as known:
        assert len(known) == rows


def test_queries_left_without_an_answer_are_listed(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bayescfx.cli.asking.BLOCK", 6)
    people()[0].head(9).to_csv(shell.folder / "long.csv", index=False)
    with serving(Scoring(score, fails_after=6 * 4 + 1)) as server:
        ran = shell(
            *("explain-many", "--model", server.url, "--data", "X.csv", "--drop", "progression"),
            *("--queries", "long.csv", "--target", "+10%", "--budget", "4", "--retries", "0"),
            *("--quiet", "--out", "kept.csv"),
        )
    assert ran.code == 2
    assert ran.err.startswith("error: the model failed half-way: the model at ")
    assert "6 of 9 queries have answers" in ran.err
    table = pd.read_csv(shell.folder / "kept.csv")
    assert (table["status"] == "error").sum() == 3
    assert set(table["error"].dropna()) == {"not answered: the model failed before"}


def test_a_model_that_raises_is_named_in_one_line_with_a_traceback_on_demand(shell: Shell) -> None:
    words = (
        *("explain", "--model", f"{FUNCTIONS}:broken", "--data", "X.csv", "--drop", "progression"),
        *("--query", "3", "--target", "150"),
    )
    message = shell.fails(*words)
    assert (
        "the model failed: RuntimeError: no such luck (while evaluating row {'age': 24, " in message
    )
    assert message.endswith("See the traceback with --debug.")
    ran = shell(*words, "--debug")
    assert ran.code == 2
    assert "Traceback (most recent call last):" in ran.err
    assert "RuntimeError: no such" in ran.err


def test_rows_for_which_the_model_fails_can_be_skipped(shell: Shell) -> None:
    words = ("--data", "X.csv", "--drop", "progression", "--query", "3", "--target", "[140, 141]")
    model = ("explain", "--model", f"{FUNCTIONS}:fragile", "--quiet", "--json")
    ran = shell(*model, *words, "--on-fault", "skip")
    assert ran.code == 0


# ── bad input: one line, exit code 2 ──


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
    assert "must end in .csv or .parquet." in shell.fails(*model, "X.xlsx", *ask)
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
    assert "missing: bmi. Rename or add it." in message(json.dumps(narrow))
    assert (
        "missing: bmi. Did you mean 'BMI'? It has BMI, which the data does not. Rename or add it."
    ) in message(json.dumps({**narrow, "BMI": 20.0}))
    assert "unknown: bmy. Did you mean 'bmi'? Rename it or" in message(
        json.dumps({**row, "bmy": 1})
    )
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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target", "abc"), "the target must be like '>= 150', '<= 0.3', '+20%'"),
        (("--target", "[160, 140]"), "`low` must not exceed `high`; got 160 and 140. Swap them."),
        (("--fix", "agee"), "error: there is no feature 'agee'. Did you mean 'age'?"),
        (("--between", "bmi"), "--between must be like name=value; got 'bmi'."),
        (("--between", "bmi=a:b"), "limits of 'bmi' must be numbers like 18:32; got 'a'."),
        (("--between", "bmi=3"), "limits of 'bmi' must be like low:high; got '3'."),
        (("--between", "sex=x"), "'sex' has no level 'x'."),
        (("--move", "sex=-1:1"), "error: --move needs an order, but 'sex' is Categorical."),
        (("--require", "bmi <"), "a rule must be a comparison"),
        (("--kind", "bmi"), "--kind must be like name=value; got 'bmi'."),
        (("--drop", "bm"), "--drop must name columns of the data; got 'bm'."),
        (("--budget", "0"), "error: --budget must be a whole number of at least 1; got 0."),
        (("--budget", "x"), "argument --budget: invalid int value: 'x'. See bayescfx explain --h"),
        (("--tolerance", "2"), "error: --tolerance must be at least 0 and less than 1; got 2.0."),
        (("--timeout", "-1"), "--timeout must be seconds >= 0; got -1.0."),
        (("--method", "magic"), "error: --method must be one of 'bayes-cfx', 'bayes'"),
        (("--max-changes", "0"), "error: --max-changes must be a whole number >= 1; got 0."),
        (("-n", "0"), "error: -n must be a whole number of at least 1; got 0."),
        (("--seed", "-1"), "error: --seed must be a whole number >= 0; got -1."),
        (("--label", "x"), "the label 'x' must be one of a classifier's; this model is none."),
        (("--out", "a.xyz"), "--out must end in .json, .csv, .html, .png, .svg, .pdf; got 'a.xyz'"),
        (("--out", "no/a.csv"), "--out 'no/a.csv' can't be written: no such folder."),
        (("--header", "x"), "--header must be like 'Name: value'; got 'x'."),
        (("--derive", "bmi=math:pi"), "derive 'bmi' must be a function of rows; got 'math:pi'."),
        (("--http-timeout", "0"), "error: --http-timeout must be seconds > 0; got 0.0."),
        (("--nonsense",), "unrecognized arguments: --nonsense. See bayescfx --help."),
    ],
)
def test_bad_options_are_one_line(words: tuple[str, ...], message: str, shell: Shell) -> None:
    base = ("explain", "--model", "m.txt", "--data", "X.csv", "--query", "3", "--target", "150")
    assert message in shell.fails(*base, *words)


@pytest.mark.parametrize("option", ["model", "data", "query", "target"])
def test_what_is_not_given_is_asked_for(option: str, shell: Shell) -> None:
    given = {"model": "m.txt", "data": "X.csv", "query": "3", "target": "150"}
    words = [w for name, value in given.items() if name != option for w in (f"--{name}", value)]
    assert f"--{option} must be given; got none. Add --{option}, or {option} = … to the" in (
        shell.fails("explain", *words)
    )


def test_bad_models_are_one_line(shell: Shell) -> None:
    ask = ("--data", "X.csv", "--query", "3", "--target", "150")
    whole = (shell.folder / "m.txt").read_bytes()
    Path("cut.txt").write_bytes(whole[: len(whole) // 2])
    message = shell.fails("explain", "--model", "cut.txt", *ask)
    assert "'cut.txt' can't be read as a LightGBM model: it is cut off or was changed." in message
    Path("empty.onnx").write_bytes(b"")
    message = shell.fails("explain", "--model", "empty.onnx", *ask)
    assert "'empty.onnx' can't be read as an ONNX model: " in message
    Path("rubbish.skops").write_bytes(b"no archive")
    message = shell.fails("explain", "--model", "rubbish.skops", *ask)
    assert "'rubbish.skops' can't be read as a skops file: File is not a zip file." in message
    Path("m.pkl").write_bytes(b"")
    message = shell.fails("explain", "--model", "m.pkl", *ask)
    assert "is a pickle, which can run any code when it is loaded." in message
    assert "--trust-pickle" in message
    message = shell.fails("explain", "--model", "no.onnx", *ask)
    assert "there is no model file 'no.onnx'. Give a file that ends in .onnx" in message


# ── report, reproduce, demo ──


def test_a_report_is_a_page_beside_the_answer(shell: Shell) -> None:
    words = ("--target", "+10%", "--budget", "12", "--quiet")
    shell(*LINEAR, "--query", "3", *words, "--out", "a.json", "--out", "a.svg")
    assert "<svg" in (shell.folder / "a.svg").read_text()
    assert shell("report", "a.json").out == "a.html\n"
    assert "<!DOCTYPE html>" in (shell.folder / "a.html").read_text()
    shell(*MANY, "--queries", "five.csv", *words, "--out", "b.json", "--out", "b.html")
    assert "<!DOCTYPE html>" in (shell.folder / "b.html").read_text()
    ran = shell("report", "b.json", "--out", "c.html", "--out", "c.csv", "--json")
    assert ran.content == ["c.html", "c.csv"]
    assert len(pd.read_csv(shell.folder / "c.csv")) == 5


def test_a_report_of_something_else_is_one_line(shell: Shell) -> None:
    assert "the answer 'no.json' can't be read" in shell.fails("report", "no.json")
    Path("other.json").write_text('{"a": 1}')
    assert "must hold an explanation; got None." in shell.fails("report", "other.json")
    Path("broken.json").write_text('{"a": ')
    assert "`text` must be JSON; got" in shell.fails("report", "broken.json")


def test_reproduce_runs_the_papers_experiments(shell: Shell, tmp_path: Path) -> None:
    ran = shell("reproduce", "potentials", "--quick", "--quiet", "--out", str(tmp_path))
    assert ran.code == 0
    assert "## Figure 3" in (tmp_path / "reproduction.md").read_text(encoding="utf-8")
    assert (tmp_path / "figures" / "fig3_potentials.png").is_file()


def test_reproduce_prefers_the_clone_it_is_called_in(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "__main__.py").write_text(
        "import sys, pathlib\npathlib.Path('seen').write_text(' '.join(sys.argv[1:]))\nsys.exit(7)"
    )
    monkeypatch.chdir(tmp_path)
    words = ("taxi", "adult", "--quick", "--data", "here")
    assert shell("reproduce", *words, "--quiet").code == 7
    expected = f"--quick --only taxi adult --data {tmp_path / 'here'}"
    assert (tmp_path / "seen").read_text() == expected


def test_reproduce_without_a_clone_says_where_the_experiments_are(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cfx, "__file__", str(tmp_path / "a" / "b" / "c" / "__init__.py"))
    assert "the paper's experiments are in the repository, not in" in shell.fails("reproduce")


def test_the_demo_shows_the_answer_that_its_python_gives(shell: Shell, tmp_path: Path) -> None:
    ran = shell("demo", "--folder", str(tmp_path))
    assert ran.code == 0
    assert "What would have to change for that to be 25 % lower" in ran.out
    assert ran.out.endswith(demo.CODE)
    names: dict[str, Any] = {}
    exec(demo.CODE.replace("print(answer)", ""), names)
    assert str(names["answer"]) in ran.out
    assert "rows: best prediction" in ran.err
    assert (tmp_path / "bayescfx-demo.png").read_bytes().startswith(b"\x89PNG")
    assert "<!DOCTYPE html>" in (tmp_path / "bayescfx-demo.html").read_text()


def test_the_demo_needs_a_folder(shell: Shell) -> None:
    assert "--folder must be a folder; got 'nowhere'." in shell.fails("demo", "--folder", "nowhere")


# ── the process ──


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "bayescfx", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )


def test_nothing_but_the_answer_is_on_stdout_whatever_the_model_prints(folder: Path) -> None:
    words = ("explain", "--model", f"{FUNCTIONS}:noisy", *LINEAR[3:])
    ran = run(folder, *words, "--query", "3", "--target", "+10%", "--json", "--budget", "10")
    assert json.loads(ran.stdout)["status"] in ("reached", "best_guess")
    assert "printed by the model" in ran.stderr
    assert "written by compiled code" in ran.stderr


def test_without_a_command_help_is_shown(shell: Shell) -> None:
    ran = shell()
    assert ran.code == 2
    assert "explain-many" in ran.err
    assert "exit codes:" in ran.err
    ran = shell("--version")
    assert (ran.code, ran.out) == (0, f"bayescfx {cfx.__version__}\n")
    assert "invalid choice: 'foo'" in shell.fails("foo")


def test_an_unexpected_error_is_one_line_with_its_own_code(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("bayescfx.cli.commands.gather", fail)
    ran = shell("explain")
    assert ran.code == 1
    assert ran.err == "error: unexpected KeyError: 'lost'. See the traceback with --debug.\n"


def test_an_interruption_has_its_own_code(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bayescfx.cli.commands.gather", stop)
    assert shell("explain").code == 130


def test_a_warning_is_one_line_said_once(shell: Shell) -> None:
    row = json.loads((shell.folder / "one.json").read_text())
    query = json.dumps({**row, "bmi": 99.0})
    ran = shell(*LINEAR, "--query", query, "--target", "+10%", "--quiet")
    assert ran.err.count("warning: ") == 1
    assert "warning: the query lies outside the space, which grew for it: 'bmi' by the" in ran.err


def test_advice_for_python_becomes_advice_for_the_command_line() -> None:
    text = "Exclude that region with space.require, or pass on_fault='skip'."
    assert in_options(text) == "Exclude that region with --require, or pass --on-fault skip."


# ── targets, arguments, progress ──


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (">= 150", cfx.at_least(150)),
        (">150", cfx.at_least(150)),
        ("≥ 1.5e2", cfx.at_least(150)),
        ("at least 150", cfx.at_least(150)),
        ("<= 0.3", cfx.at_most(0.3)),
        ("<.3", cfx.at_most(0.3)),
        ("≤ -3", cfx.at_most(-3)),
        ("+20%", cfx.increase(percent=20)),
        ("+ 20 %", cfx.increase(percent=20)),
        ("+20", cfx.increase(by=20)),
        ("-15", cfx.decrease(by=15)),
        ("-15%", cfx.decrease(percent=15)),
        ("−15", cfx.decrease(by=15)),
        ("±10%", cfx.change(percent=10)),
        ("+-10", cfx.change(by=10)),
        ("+/- 10 percent", cfx.change(percent=10)),
        ("[140,160]", cfx.between(140, 160)),
        ("[-5; 5]", cfx.between(-5, 5)),
        ("140..160", cfx.between(140, 160)),
        ("140:160", cfx.between(140, 160)),
        ("between 140 and 160", cfx.between(140, 160)),
        ("150", cfx.reach(150)),
        ("= -15", cfx.reach(-15)),
        ("reach 150", cfx.reach(150)),
    ],
)
def test_targets_as_text(text: str, target: Any) -> None:
    assert parse_target(text) == target


@pytest.mark.parametrize("text", ["", "abc", "20%", "[1]", ">= +20%", "1 2", "--5", "nan", "inf"])
def test_other_texts_are_no_targets(text: str) -> None:
    with pytest.raises(cfx.TargetError, match=r"the target must be like '>= 150'"):
        parse_target(text)


def test_a_target_with_a_minus_is_no_option() -> None:
    assert parse(["explain", "--target", "-15%", "--budget", "3"]).target == "-15%"
    assert parse(["explain", "--target=-15"]).target == "-15"


class Terminal(io.StringIO):
    """A stream that someone watches."""

    def isatty(self) -> bool:
        return True


def step(question: int, n: int, *, reached: bool = False) -> Step:
    return Step(question, n, 10, 1.5, 0.5, reached, 1.0)


def test_progress_is_a_bar_on_a_terminal_and_plain_lines_elsewhere() -> None:
    pytest.importorskip("tqdm", reason="needs tqdm")
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        progress = Progress(Console(io.StringIO(), stream), total=10)
        for n in range(1, 11):
            progress(step(0, n, reached=n > 5))
        progress.close()
    assert "\r" in terminal.getvalue()
    assert "10/10" in terminal.getvalue()
    lines = file.getvalue().splitlines()
    assert len(lines) <= 8
    assert lines[-1].startswith("  ")
    assert lines[-1].endswith("rows: best prediction 1.5, reached")


def test_progress_without_tqdm_is_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    terminal = Terminal()
    progress = Progress(Console(io.StringIO(), terminal), total=20, questions=2)
    progress(step(0, 10))
    progress(step(1, 10, reached=True))
    assert terminal.getvalue().splitlines()[-1] == "  20 of at most 20 rows: 1 of 2 reached"


def test_quiet_shows_no_progress() -> None:
    stream = io.StringIO()
    progress = Progress(Console(io.StringIO(), stream, quiet=True), total=2)
    progress(step(0, 2))
    assert stream.getvalue() == ""
