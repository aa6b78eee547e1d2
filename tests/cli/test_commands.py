"""The commands, as a user types them: answers, files and exit codes."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import bayescfx as cfx
from tests.cli.shell import FUNCTIONS, LINEAR, MANY, Shell
from tests.people import categories, people

lightgbm: Any = importlib.import_module("lightgbm")


def test_an_answer_is_a_table_and_sentences_on_stdout(shell: Shell) -> None:
    ran = shell(*LINEAR, "--query", "3", "--target", "+20%", "--fix", "age,sex,glucose")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith("Target: prediction ")
    assert lines[2].split()[:3] == ["bmi", "25.3", "→"]
    assert lines[3].split()[0] == "prediction"
    assert lines[5].startswith("Target reached.")


def test_json_is_the_answer_that_python_gives(shell: Shell) -> None:
    ran = shell.explain("--query", "3", "--target", ">= 170", "--fix", "age,sex", "--json")
    X, _ = people()
    model = lightgbm.Booster(model_file="m.txt")
    space = cfx.Space.from_data(X).fix("age", "sex")
    answer = cfx.explain(model, X.iloc[3], space, cfx.at_least(170), budget=14, rng=0)
    assert isinstance(answer.rows, pd.DataFrame)
    content = ran.content
    assert ran.err == ""
    assert ran.code == 0
    assert content["status"] == answer.status == "reached"
    assert content["output"] == answer.output
    (found,) = content["counterfactuals"]
    assert found["output"] == answer.best.output
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
        (("--target", "+25%", "--budget", "60"), "reached", 0),
        (("--target", "+25%", "--budget", "3"), "best_guess", 3),
        (("--target", ">= 5000", "--allow", "glucose,sex"), "unreachable", 4),
        (("--target", ">= 10"), "reached", 0),
    ],
)
def test_exit_codes_by_status(words: tuple[str, ...], status: str, code: int, shell: Shell) -> None:
    ran = shell.explain("--query", "3", "--json", *words)
    assert (ran.content["status"], ran.code) == (status, code)


def test_a_query_that_meets_the_target_needs_no_change(shell: Shell) -> None:
    ran = shell.explain("--query", "3", "--target", ">= 10")
    assert "The query already meets the target." in ran.out


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


def test_only_allowed_features_move_and_together(shell: Shell) -> None:
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


def test_the_residual_of_a_derived_column_can_be_kept(shell: Shell) -> None:
    words = ("--query", "0", "--target", "+10%", "--json", "--kind", "bmi=real")
    ran = shell(*LINEAR, *words, "--derive", f"bmi={FUNCTIONS}:double")
    own = people()[0].iloc[0]
    assert f"derive('bmi') gives {2 * own['age']}, but the query has {own['bmi']}" in ran.err
    ran = shell(*LINEAR, *words, "--derive-residual", f"bmi={FUNCTIONS}:double")
    assert "derive" not in ran.err
    (found,) = ran.content["counterfactuals"]
    kept = own["bmi"] - 2 * own["age"]
    assert found["row"]["bmi"] == pytest.approx(2 * found["row"]["age"] + kept)
    assert found["changes"]["bmi"]["follows"] is True
    assert found["n_changes"] == len(found["changes"]) - 1


def test_strict_limits_bind_a_query_outside(shell: Shell) -> None:
    words = ("--query", "3", "--target", "+5%", "--json")
    ran = shell(*LINEAR, *words, "--between", "bmi=26:30", "--fix", "bmi")
    assert "'bmi' is 25.3 (between 26 and 30)" in ran.err
    assert "bmi stays at 25.3, outside its limits (between 26 and 30)." in ran.content["text"]
    ran = shell(*LINEAR, *words, "--strict-between", "bmi=26:30")
    assert "outside its limits" not in ran.err
    (found,) = ran.content["counterfactuals"]
    assert 26 <= found["row"]["bmi"] <= 30
    Path("strict.toml").write_text("[space]\nstrict_between = { bmi = [26, 30] }\n")
    again = shell(*LINEAR, *words, "--settings", "strict.toml")
    assert again.content["counterfactuals"] == [found]


def test_kinds_can_be_corrected(shell: Shell) -> None:
    words = ("--query", "3", "--target", "+25%", "--json", "--budget", "20")
    assert shell.explain(*words, "--kind", "age=categorical").code in (0, 3)
    ran = shell("inspect", "--data", "X.csv", "--kind", "age=categorical")
    assert "age          categorical" in ran.out


def test_an_answer_in_a_file_is_complete(shell: Shell) -> None:
    words = ("--out", "answer.json", "--out", "answer.csv")
    ran = shell.explain("--query", "3", "--target", "+25%", *words)
    answer = cfx.Explanation.from_json((shell.folder / "answer.json").read_text())
    assert str(answer) in ran.out
    assert answer.seed == 0
    assert answer.verify(lightgbm.Booster(model_file="m.txt"))
    table = pd.read_csv(shell.folder / "answer.csv")
    assert table["output"].tolist() == pytest.approx([answer.best.output], rel=1e-15)


def test_scored_rows_are_kept_and_reused(shell: Shell) -> None:
    words = ("--query", "3", "--target", "+25%", "--evaluations", "seen.db", "--json")
    first = shell.explain(*words, "--budget", "60").content
    second = shell.explain(*words, "--budget", "1").content
    assert first["n_evaluations"] > 1
    assert second["n_evaluations"] <= 1
    assert second["status"] == "reached"
    other = shell.fails(*LINEAR, *words[:-3], "--evaluations", "X.csv")
    assert "X.csv" in other


def test_a_retrained_model_does_not_reuse_rows_of_the_old_one(shell: Shell) -> None:
    X, y = people()
    outputs = []
    words = ("--query", "3", "--target", "+25%", "--evaluations", "old.db", "--model", "again.txt")
    for scale in (1.0, 2.0):
        model = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1)
        model.fit(categories(X), scale * y).booster_.save_model(shell.folder / "again.txt")
        ran = shell("explain", "--data", "X.csv", *words, "--json")
        assert ("old.db holds rows of other models (1): not used." in ran.err) == (scale == 2.0)
        outputs.append(ran.content["output"])
    assert outputs[1] == pytest.approx(2.0 * outputs[0])
    assert len(shell("store", "list", "old.db").out.splitlines()) == 2
    shell.explain(*words, "--forget", "--json")  # of this model alone
    assert len(shell("store", "list", "old.db").out.splitlines()) == 2
    assert "--forget must have a file to empty" in shell.fails(*LINEAR, *words[:4], "--forget")


def test_many_answers_are_one_table(shell: Shell) -> None:
    words = ("--queries", "five.csv", "--target", "+10%", "--budget", "20", "--quiet")
    ran = shell(*MANY, *words, "--out", "many.csv", "--out", "many.json")
    assert ran.code == 0
    assert ran.out.splitlines()[-1].startswith("5 of 5 reached. Scored ")
    table = pd.read_csv(shell.folder / "many.csv")
    assert table["query"].tolist() == [0, 1, 2, 3, 4]
    assert set(table["status"]) == {"reached"}
    many = cfx.Explanations.from_json((shell.folder / "many.json").read_text())
    assert [a.best.output for a in many] == table["output"].tolist()


def test_no_cell_of_a_table_is_a_formula(shell: Shell) -> None:
    X, _ = people()
    levels = {"low": "=1+1", "middle": "-1.5", "high": "@SUM(A1)"}
    X = X.assign(**{"+job": X["glucose"].map(levels)}).assign(**{"-5": "-A1"})
    X = X.drop(columns="glucose")
    X.to_csv("formulas.csv", index=False)
    X.groupby("+job").head(1).to_csv("q.csv", index=False)  # one row of each level
    words = ("explain-many", "--model", f"{FUNCTIONS}:score", "--data", "formulas.csv", "--quiet")
    more = ("--queries", "q.csv", "--target", "+1%", "--budget", "9", "--out", "a.csv")
    assert shell(*words, *more).code in (0, 3, 4)
    table = pd.read_csv("a.csv")
    assert {"'+job", "-5"} <= set(table.columns)
    assert set(table["'+job"]) == {"'=1+1", "-1.5", "'@SUM(A1)"}
    assert set(table["-5"]) == {"'-A1"}
    assert table["age"].dtype.kind == "i"


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
    assert table["query"].tolist() == [0, 1, 2, 3]
    assert table["status"].tolist() == ["reached", "error", "reached", "reached"]
    assert "'mle'" in table["error"].iloc[1]


def test_it_is_an_error_if_no_row_can_be_explained(shell: Shell) -> None:
    people()[0].head(2).drop(columns="bmi").to_csv("narrow.csv", index=False)
    message = shell.fails(*MANY, "--queries", "narrow.csv", "--target", "+10%")
    assert "no row of 'narrow.csv' can be asked: the query must have every column" in message


def test_exit_code_of_many_is_the_worst(shell: Shell) -> None:
    words = ("--queries", "five.csv", "--quiet", "--budget", "12")
    assert shell(*MANY, *words, "--target", "+10%").code == 0
    assert shell(*MANY, *words, "--target", ">= 9000", "--allow", "sex").code == 4
    words = ("--queries", "five.csv", "--quiet", "--budget", "1")
    assert shell(*MANY, *words, "--target", "+10%").code == 3


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
    assert "## Figure 2" in (tmp_path / "reproduction.md").read_text(encoding="utf-8")
    assert (tmp_path / "figures" / "fig2_potentials.png").is_file()


def test_reproduce_prefers_the_clone_it_is_called_in(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "__init__.py").touch()  # or a package on PYTHONPATH comes first
    (tmp_path / "experiments" / "__main__.py").write_text(
        "import sys, pathlib\npathlib.Path('seen').write_text(' '.join(sys.argv[1:]))\nsys.exit(7)"
    )
    monkeypatch.chdir(tmp_path)
    words = ("taxi", "adult", "--quick", "--data", "here")
    assert shell("reproduce", *words, "--quiet").code == 7
    expected = f"--quick --only taxi adult --data {tmp_path / 'here'}"
    assert (tmp_path / "seen").read_text() == expected


def test_reproduce_without_a_clone_names_the_repository(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cfx, "__file__", str(tmp_path / "a" / "b" / "c" / "__init__.py"))
    assert "the paper's experiments are in the repository, not in" in shell.fails("reproduce")


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (("--kind", "sex=ordinal"), 'with --kind "NAME=low < middle < high".'),
        (("--only-up", "sex"), 'with --kind "NAME=low < middle < high".'),
        (("--require", "sex <= 3"), "Write levels in quotes; join rules with"),
        (("--output", "1"), "the model has one output; got --output 1. Leave it out."),
        (("--kind", "sex=oridnal"), "such as '%d/%m/%Y'; got 'oridnal'. Did you mean"),
    ],
)
def test_advice_is_in_terms_of_options(words: tuple[str, ...], printed: str, shell: Shell) -> None:
    assert printed in shell.fails(*LINEAR, "--query", "3", "--target", "+5", "--quiet", *words)
