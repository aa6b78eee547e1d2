"""What commands write: rows changed by hand, tables with names, workbooks, pictures, reports."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.plots.info.changes import alternatives_info, change_info
from bayescfx.plots.info.outcomes import potential_info
from bayescfx.plots.info.view import View
from bayescfx.requests.answer_files import as_text_cell
from tests.cli.shell import FUNCTIONS, Shell
from tests.people import people

MODEL = ("--model", f"{FUNCTIONS}:score", "--data", "named.csv", "--id", "who")


@pytest.fixture
def named(shell: Shell) -> Shell:
    """Return the shell with rows that have names."""
    X = people()[0].copy()
    X.insert(0, "who", [f"P{i}" for i in range(len(X))])
    X.to_csv("named.csv", index=False)
    X.head(6).to_csv("six.csv", index=False)
    return shell


# ── a row changed by hand ──


def test_a_row_is_changed_by_hand(named: Shell) -> None:
    X, _ = people()
    words = (*MODEL, "--query", "P3", "--set", "bmi=30", "--set", "age=40")
    ran = named("predict", *words, "--json")
    assert ran.code == 0
    assert ran.content["output"] == 2 * 40 + 30
    assert ran.content["query_output"] == 2 * X["age"][3] + X["bmi"][3]
    assert ran.content["changes"]["bmi"] == {"from": X["bmi"][3], "to": 30}
    assert ran.content["row"]["age"] == 40
    assert (ran.content["miss"], ran.content["reached"], ran.content["broken"]) == (None, None, [])
    ran = named("predict", *words, "--target", ">= 200", "--only-down", "bmi", "--fix", "age")
    assert ran.code == 3  # the target is missed
    assert "90 away from the target: not reached." in ran.out
    assert "Not allowed: 'age' is fixed." in ran.out
    assert "Not allowed: the limits of 'bmi'." in ran.out
    assert named("predict", *words, "--target", ">= 100").code == 0
    ran = named("predict", *words, "--target", "110.5", "--tolerance", "0.2")
    assert ran.code == 0  # within the tolerance
    assert "0.5 away from the target: reached, within the tolerance." in ran.out


def test_levels_are_set_however_they_are_spelt(named: Shell) -> None:
    words = ("predict", *MODEL, "--query", "P3", "--json")
    sex = named(*words).content["row"]["sex"]
    other = "male" if sex == "female" else "female"
    found = named(*words, "--set", f"sex={other.upper()}").content
    assert found["changes"] == {"sex": {"from": sex, "to": other}}


def test_a_cell_is_set_to_missing_where_the_column_may_miss(named: Shell) -> None:
    tree = ("predict", "--model", "m.txt", "--data", "X.csv", "--json")
    words = (*tree, "--query", "3")
    before = named(*words).content
    for text in ("bmi=", "bmi=NA"):
        found = named(*words, "--na", "NA", "--set", text).content
        assert found["changes"] == {"bmi": {"from": before["row"]["bmi"], "to": None}}
        assert found["broken"] == ["'bmi' becomes missing"]
        assert found["output"] != before["output"]
    row = json.dumps({**before["row"], "bmi": None})
    found = named(*tree, "--query", row, "--set", "bmi=30").content
    assert found["changes"] == {"bmi": {"from": None, "to": 30.0}}
    assert found["broken"] == ["'bmi' is missing in the query"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("age=", "--set must fit the columns; 'age' can't be missing. Choose another value."),
        ("bni=3", "there is no feature 'bni'. Did you mean 'bmi'?"),
        ("bmi=fat", "--set for 'bmi' must be numbers; got 'fat'."),
        ("sex=mail", "'sex' has no level 'mail'."),
        ("bmi", "--set must be like name=value; got 'bmi'."),
    ],
)
def test_wrong_changes_are_errors(change: str, message: str, named: Shell) -> None:
    assert message in named.fails("predict", *MODEL, "--query", "P3", "--set", change)


# ── names, and what was before ──


def test_names_travel_through_every_file(named: Shell) -> None:
    words = ("explain-many", *MODEL, "--queries", "six.csv", "--target", ">= 120", "--quiet")
    files = [f"named-out{ending}" for ending in (".csv", ".json", ".html", ".md")]
    ran = named(*words, "--budget", "20", *(w for file in files for w in ("--out", file)))
    assert ran.code == 0
    who = [f"P{i}" for i in range(6)]
    table = pd.read_csv("named-out.csv")
    assert table["who"].tolist() == who
    X, _ = people()
    assert table["age_before"].tolist() == X["age"].head(6).tolist()
    many = cfx.Explanations.from_json(Path("named-out.json").read_text(encoding="utf-8"))
    assert many.index.tolist() == who
    assert many.index.name == "who"
    assert table["changes"].tolist() == many.summary()["changes"].tolist()
    for text in (Path("named-out.html").read_text(encoding="utf-8"), ran.out, many.to_markdown()):
        assert all(name in text for name in who)
    assert many.to_markdown() == Path("named-out.md").read_text(encoding="utf-8")
    met = [a.stopped == "already met" for a in many]
    assert 0 < sum(met) < 6
    assert [text == "already meets the target" for text in table["changes"]] == met
    assert ran.out.count("already meets the target") == sum(met)
    assert named("report", "named-out.json", "--out", "again.csv").code == 0
    pd.testing.assert_frame_equal(pd.read_csv("again.csv"), table)


def test_one_answer_has_its_name_in_tables_and_reports(named: Shell) -> None:
    words = ("explain", *MODEL, "--query", "P3", "--target", "+10%", "--quiet", "--budget", "20")
    files = [f"one-out{ending}" for ending in (".csv", ".json", ".html")]
    assert named(*words, *(w for file in files for w in ("--out", file))).code == 0
    table = pd.read_csv("one-out.csv")
    assert table[["query", "who"]].to_numpy().tolist() == [[0, "P3"]]
    many = pd.read_csv("named.csv").iloc[[3]]
    many.to_csv("only.csv", index=False)
    asked = ("explain-many", *MODEL, "--queries", "only.csv", "--target", "+10%", "--quiet")
    assert named(*asked, "--budget", "20", "--out", "only-out.csv").code == 0
    assert list(pd.read_csv("only-out.csv").columns) == list(table.columns)
    assert named("report", "one-out.json", "--out", "one-again.csv").code == 0
    pd.testing.assert_frame_equal(pd.read_csv("one-again.csv"), table)
    answer = cfx.Explanation.from_json(Path("one-out.json").read_text(encoding="utf-8"))
    known = {"row": "P3", "model": f"{FUNCTIONS}:score", "data": "named.csv"}
    assert known.items() <= answer.about.items()
    assert "<dt>who</dt><dd>P3</dd>" in Path("one-out.html").read_text(encoding="utf-8")


def test_without_identifiers_the_number_of_the_row_is_written(named: Shell) -> None:
    words = ("--model", f"{FUNCTIONS}:score", "--data", "named.csv", "--drop", "who", "--quiet")
    more = ("--query", "3", "--target", "+10%", "--budget", "20")
    ran = named("explain", *words, *more, "--out", "three.csv")
    assert ran.code == 0
    assert pd.read_csv("three.csv")["query"].tolist() == [3]


def test_messages_call_rows_by_their_names(named: Shell) -> None:
    six = pd.read_csv("six.csv").astype({"age": object})
    six.assign(age=[*six["age"][:3], "old", *six["age"][4:]]).to_csv("old.csv", index=False)
    words = ("explain-many", *MODEL, "--target", ">= 120", "--quiet", "--budget", "20")
    ran = named(*words, "--queries", "old.csv", "--out", "old-out.csv")
    assert ran.code == 2
    assert "1 of 6 queries can't be asked; the first is who P3: " in ran.err
    assert pd.read_csv("old-out.csv").set_index("who")["status"]["P3"] == "error"
    ran = named(*words, "--queries", "old.csv", "--out", "old-out.csv", "--jobs", "1")
    assert "1 of 6 queries can't be asked; the first is who P3: " in ran.err
    six.assign(age=[*six["age"][:3], 999, *six["age"][4:]]).to_csv("far.csv", index=False)
    ran = named(*words, "--queries", "far.csv")
    assert "warning: for the query 'P3': the query lies outside the space" in ran.err
    six.assign(age=["old"] * 6).to_csv("none.csv", index=False)
    assert "can be asked; who P0: " in named.fails(*words, "--queries", "none.csv")
    ran = named(*words, "--queries", "six.csv", "--only-down", "age", "--allow", "age")
    assert "" in ran.err
    X = pd.read_csv("named.csv").astype({"age": object})
    X.assign(age=[*X["age"][:7], "?", *X["age"][8:]]).to_csv("marked.csv", index=False)
    printed = named.fails(*words, "--data", "marked.csv", "--queries", "six.csv")
    assert "got '?' in who P7." in printed


def test_the_output_is_called_by_its_name_wherever_it_is_named(named: Shell) -> None:
    words = (*MODEL, "--query", "P3", "--target", "+10%", "--budget", "20")
    printed = ("--output-name", "premium", "--unit", "€")
    files = ("--out", "n.md", "--out", "n.svg", "--out", "n.json")
    ran = named("explain", *words, *printed, *files)
    assert ran.code == 0
    markdown = Path("n.md").read_text(encoding="utf-8")
    for text in (ran.out, markdown):
        assert "prediction" not in text
        assert "Target: premium " in text.replace("\\", "")
    assert re.search(r"Target: premium at least [\d.]+ € \(10 % above [\d.]+ €\)", ran.out)
    assert re.search(r"  premium +[\d.]+ → [\d.]+ €", ran.out)
    assert "premium, €" in markdown
    assert "best premium " in ran.err
    answer = cfx.Explanation.from_json(Path("n.json").read_text(encoding="utf-8"))
    view = View.of(answer)
    assert change_info(view).prediction.name == "premium, €"
    assert alternatives_info(view).names[-1] == "premium, €"
    assert potential_info(answer).name == "premium, €"
    assert "premium, €" in answer._repr_html_()
    ran = named("predict", *MODEL, "--query", "P3", "--set", "age=40", "--target", "9", *printed)
    assert re.search(r": premium [\d.]+ → [\d.]+ €\n[\d.]+ € away from the target", ran.out)
    many = ("explain-many", *MODEL, "--queries", "six.csv", "--target", ">= 120", "--quiet")
    assert named(*many, "--budget", "20", *printed, "--out", "m.md").code == 0
    head = Path("m.md").read_text(encoding="utf-8").splitlines()[2]
    assert head == "| who | status | premium, € | target | best premium, € | rows | changes |"


# ── files ──


def test_workbooks_have_answers_and_features(named: Shell) -> None:
    pytest.importorskip("openpyxl")
    words = ("explain-many", *MODEL, "--queries", "six.csv", "--target", ">= 120", "--quiet")
    assert named(*words, "--budget", "20", "--out", "a.xlsx", "--out", "a.csv").code == 0
    sheets = pd.read_excel("a.xlsx", sheet_name=None)
    assert list(sheets) == ["answers", "features"]
    flat = pd.read_csv("a.csv")
    assert sheets["answers"]["changes"].tolist() == flat["changes"].tolist()
    assert sheets["answers"]["who"].tolist() == flat["who"].tolist()
    assert sheets["features"]["share"].between(0, 1).all()


def test_what_a_workbook_can_not_hold_is_left_out() -> None:
    assert as_text_cell("a\x07b\x1b") == "ab"
    assert as_text_cell("\x00=1+1") == "'=1+1"


@pytest.mark.parametrize(
    ("ending", "start"),
    [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("html", b"<!DOCTYPE html>")],
)
def test_the_ending_decides_the_format_of_a_file(ending: str, start: bytes, named: Shell) -> None:
    words = ("explain-many", *MODEL, "--queries", "six.csv", "--target", ">= 120", "--quiet")
    if not Path("kinds.json").exists():  # the folder is the same for all endings
        assert named(*words, "--budget", "20", "--out", "kinds.json").code == 0
    assert named("report", "kinds.json", "--out", f"kinds.{ending}").code == 0
    assert Path(f"kinds.{ending}").read_bytes().startswith(start)


def test_reports_show_the_given_facts(named: Shell) -> None:
    words = ("explain", *MODEL, "--query", "P3", "--target", "+10%", "--quiet", "--budget", "20")
    printed = ("--title", "For <you>", "--unit", "€", "--output-name", "premium")
    assert named(*words, *printed, "--about", "agent=A & B", "--out", "r.json").code == 0
    assert named("report", "r.json", "--unit", "$", "--about", "date=2026-01-31").code == 0
    text = Path("r.html").read_text(encoding="utf-8")
    for part in ("<title>For &lt;you&gt;</title>", "<dd>A &amp; B</dd>", "<dd>2026-01-31</dd>"):
        assert part in text
    assert "premium, $" in text
    assert "The premium is" in text


def test_facts_of_a_report_may_be_in_the_settings(named: Shell) -> None:
    content = """
        title = "From settings"
        unit = "mm"
        [about]
        office = "Bonn"
    """
    Path("facts.toml").write_text(content, encoding="utf-8")
    words = ("explain", *MODEL, "--query", "P3", "--target", "+10%", "--quiet", "--budget", "20")
    assert named(*words, "--settings", "facts.toml", "--unit", "cm", "--out", "s.json").code == 0
    about = json.loads(Path("s.json").read_text(encoding="utf-8"))["about"]
    assert (about["title"], about["unit"], about["office"]) == ("From settings", "cm", "Bonn")
