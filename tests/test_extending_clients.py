"""New ideas on the command line and the page: no client is changed for them.

The classes are those of `tests/test_extending.py`; each fixture is the line that registers one.
"""

from __future__ import annotations

import asyncio
import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.cli.arguments import COMMANDS, Command
from bayescfx.models.adapters import ADAPTERS, Adapter
from bayescfx.models.loaders import LOADERS
from bayescfx.plots.draw import DRAWINGS, drawn
from bayescfx.potentials import AEP, Target
from bayescfx.potentials.target_text import FORMS
from bayescfx.requests.console import Console
from bayescfx.search.methods import METHODS
from bayescfx.space.parameters import NameLists
from bayescfx.space.verbs import VERBS, Verb
from bayescfx.web.app import make_app
from bayescfx.web.exports import PROGRAMS
from bayescfx.web.questions import QuestionQueue
from bayescfx.web.request_forms import make_constraints_form, page_verbs
from tests.cli.shell import Shell
from tests.test_extending import one_group
from tests.web.conftest import ask, make_queue, row, served

DOSES = """\
import numpy as np

def response(rows):
    return 10 * np.log10(rows["dose"]) + rows["age"] / 10 + rows["weight"] / 20
"""
MODEL = ("--model", "doses:response", "--data", "patients.csv", "--query", "0")
EXPLAIN = ("explain", *MODEL, "--quiet", "--json", "--budget", "60", "--kind", "dose=magnitude")


def patients(n: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "dose": 10.0 ** rng.uniform(-1, 1, n),
            "age": rng.integers(20, 80, n),
            "weight": rng.normal(75, 9, n),
        }
    )


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    patients().to_csv(tmp_path / "patients.csv", index=False)
    (tmp_path / "doses.py").write_text(DOSES)
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, capsys)


def best_row(shell: Shell, *words: str) -> Any:
    """Return the row of the best counterfactual that a command prints."""
    ran = shell(*EXPLAIN, *words)
    assert ran.code == 0, ran.err
    return ran.content["counterfactuals"][0]["row"]


# ── a kind of feature ──


def test_a_new_kind_is_an_option_of_the_command_line(shell: Shell) -> None:
    query = patients().iloc[0]
    row = best_row(shell, "--target", "+5", "--between", "dose=0.01:200", "--allow", "dose")
    assert query["dose"] < row["dose"] <= 200
    row = best_row(shell, "--target", "+5", "--between", "dose=:200", "--only-up", "dose")
    assert query["dose"] <= row["dose"] <= 200
    message = shell.fails(*EXPLAIN, "--target", "+5", "--between", "dose=much:200")
    assert message == "error: --between for 'dose' must be numbers; got 'much'."


def test_a_new_kind_is_known_to_settings_files_inspect_and_predict(shell: Shell) -> None:
    (shell.folder / "ask.toml").write_text(
        'data = "patients.csv"\n[features]\ndose = "magnitude"\n'
        "[space]\nbetween = { dose = [0.5, 50.0] }\n"
    )
    shown = shell("inspect", "--settings", "ask.toml", *MODEL[:2])
    assert "magnitude" in shown.out
    assert "between 0.5 and 50" in shown.out
    ran = shell("predict", *MODEL, "--kind", "dose=magnitude", "--set", "dose=3", "--json")
    row = {**patients().iloc[0].to_dict(), "dose": 3.0}
    expected = 10 * np.log10(3.0) + row["age"] / 10 + row["weight"] / 20
    assert ran.content["output"] == pytest.approx(expected)


# ── a rule and its verb: a method of `Space`, and an entry in the table `VERBS` ──


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cfx.Space, "one_group", one_group, raising=False)
    described = Verb(
        "one_group",
        NameLists(),
        lambda space, groups, _: space.one_group(*groups),  # type: ignore[attr-defined]  # the line above
        help="change features of one list only",
        option="--one-group",
        example="A,B",
    )
    monkeypatch.setitem(VERBS, "one_group", described)


@pytest.mark.usefixtures("verb")
def test_a_new_verb_is_an_option_of_the_command_line(shell: Shell) -> None:
    query = patients().iloc[0]
    groups = ("--one-group", "dose", "--one-group", "age,weight")
    row = best_row(shell, "--target", "+4", *groups)
    changed = {name for name in row if row[name] != pytest.approx(query[name], rel=1e-12)}
    assert changed <= {"dose"} or changed <= {"age", "weight"}
    assert "--one-group A,B change features of one list only; repeatable" in (
        " ".join(shell("explain", "--help").out.split())
    )
    assert "there is no feature 'ages'. Did you mean 'age'?" in (
        shell.fails(*EXPLAIN, "--target", "+4", "--one-group", "ages,dose")
    )


@pytest.mark.usefixtures("verb")
def test_a_new_verb_is_known_to_settings_files(shell: Shell) -> None:
    path = shell.folder / "groups.toml"
    path.write_text('[space]\none_group = [["dose"], ["age", "weight"]]\n')
    row = best_row(shell, "--target", "+4", "--settings", "groups.toml")
    assert row == best_row(
        shell, "--target", "+4", "--one-group", "dose", "--one-group", "age,weight"
    )
    path.write_text('[space]\none_group = "dose"\n')
    assert "'space.one_group' in 'groups.toml' must be a list of lists of names; got 'dose'." in (
        shell.fails(*EXPLAIN, "--target", "+4", "--settings", "groups.toml")
    )


# ── a target: a subclass of `Target`, and its form of text in the table `FORMS` ──


@dataclass(frozen=True)
class Multiple(Target):
    """Reach a multiple of f(query)."""

    factor: float

    def potential(self, output: float) -> Any:
        """Return a potential with its peak at the multiple."""
        change = (self.factor - 1.0) * output
        return AEP(output, abs(change), 1 if change > 0 else -1)

    def wanted(self, output: float) -> Any:
        """Return the multiple."""
        return ((self.factor * output, self.factor * output),)

    def to_dict(self) -> dict[str, Any]:
        """Return the target as plain JSON types."""
        return {"kind": "multiple", "factor": self.factor}

    def describe(self) -> str:
        """Return the target in words."""
        return f"{self.factor:g} times the prediction"


@pytest.mark.parametrize("factor", [1.5, 0.5])
def test_a_new_target_is_one_class(factor: float) -> None:
    space = cfx.Space({"a": cfx.Real(0, 10), "b": cfx.Real(0, 10)})
    answer = cfx.explain(
        lambda rows: rows["a"] + rows["b"], [2.0, 2.0], space, Multiple(factor), budget=40, rng=0
    )
    assert answer.reached
    assert answer.best.output == pytest.approx(4 * factor, rel=0.05)


def test_a_new_target_is_text_on_the_command_line(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FORMS, "P times", Multiple)
    ran = shell(*EXPLAIN, "--target", "1.5 times")
    assert ran.code == 0, ran.err
    content = ran.content
    wanted = 1.5 * content["output"]
    assert content["counterfactuals"][0]["output"] == pytest.approx(wanted, rel=0.05)


# ── a search: a class with `rounds`, and an entry in the table `METHODS` ──


def test_a_new_search_is_a_method_of_the_command_line(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--method must be one of" in shell.fails(
        *EXPLAIN, "--target", "+1", "--method", "shrinking"
    )
    monkeypatch.setitem(METHODS, "shrinking", "tests.test_extending:Shrinking")
    ran = shell(*EXPLAIN, "--target", "+1", "--method", "shrinking")
    assert ran.code == 0, ran.err
    (found,) = ran.content["counterfactuals"]
    assert found["valid"]


# ── a model format: a loader, and an entry in the table `LOADERS` ──


def linear(path: Path, *_: Any) -> Any:
    """Return the model in a file of coefficients, and its columns."""
    coefficients = json.loads(path.read_text())
    return lambda rows: sum(rows[name] * a for name, a in coefficients.items()), {}


def test_a_new_model_format_is_loaded_by_its_ending(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shell.folder / "model.linear").write_text('{"dose": 1.0, "age": 0.5, "weight": 0.25}')
    words = ("explain", "--model", "model.linear", *MODEL[2:], "--target", "+2", "--json")
    assert "is of no known kind" in shell.fails(*words)
    monkeypatch.setitem(LOADERS, ".linear", ("coefficients", linear))
    ran = shell(*words, "--quiet")
    assert ran.code == 0, ran.err
    row = ran.content["counterfactuals"][0]["row"]
    expected = row["dose"] + 0.5 * row["age"] + 0.25 * row["weight"]
    assert ran.content["counterfactuals"][0]["output"] == pytest.approx(expected)
    assert cfx.load_model("model.linear").model is not None


# ── a model class: an adapter, and an entry in the table `ADAPTERS` ──


class Table:
    """A model without a function of rows of its own."""

    def ask(self, matrix: Any) -> Any:
        """Return one number per line of a matrix."""
        return matrix.sum(axis=1)


def as_table(model: Table) -> Any:
    """Return the model as a function of rows."""
    return lambda rows: model.ask(np.asarray(rows, dtype=float))


def test_a_new_model_class_is_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    space = cfx.Space({"a": cfx.Real(0, 10), "b": cfx.Real(0, 10)})
    with pytest.raises(cfx.ModelError):
        cfx.explain(Table(), [1.0, 1.0], space, cfx.reach(7), budget=30, rng=0)
    adapter = Adapter(as_table, lambda _: None, lambda _: None)
    monkeypatch.setitem(ADAPTERS, f"{Table.__module__}.Table", adapter)
    answer = cfx.explain(Table(), [1.0, 1.0], space, cfx.reach(7), budget=30, rng=0)
    assert answer.reached


# ── a plot: numbers, a drawing, and an entry in the table `DRAWINGS` ──


@dataclass(frozen=True)
class CostInfo:
    """The costs of the counterfactuals."""

    costs: list[float]


def draw_costs(info: CostInfo, ax: Any) -> None:
    """Draw one bar per counterfactual."""
    ax.bar(range(len(info.costs)), info.costs)


def test_a_new_plot_is_a_class_and_a_function(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setitem(DRAWINGS, CostInfo, (draw_costs, lambda info: 1.0 + len(info.costs)))
    ax = drawn(CostInfo([1.0, 2.5]), detached=True)
    bars: Any = ax.patches
    assert [bar.get_height() for bar in bars] == [1.0, 2.5]
    cfx.plots.save(ax, tmp_path / "costs.svg")
    assert (tmp_path / "costs.svg").stat().st_size > 0


# ── a command: a function, its options, and an entry in the table `COMMANDS` ──


def add_shout(parser: ArgumentParser, _: Command) -> None:
    """Add the options of `shout`."""
    parser.add_argument("word", help="what to print")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--debug", action="store_true")


def shout(options: Namespace, console: Console) -> int:
    """Print a word louder."""
    console.write(options.word.upper())
    return 0


def test_a_new_command_is_a_function(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    command = Command(f"{__name__}:shout", "print a word louder", f"{__name__}:add_shout")
    monkeypatch.setitem(COMMANDS, "shout", command)
    ran = shell("shout", "hey")
    assert (ran.code, ran.out) == (0, "HEY\n")
    assert "print a word louder" in shell("--help").out


# ── the page ──


@pytest.fixture
def queue(shell: Shell) -> Iterator[QuestionQueue]:
    """Return the queue of a page about doses, with the kind of a feature given."""
    table = patients()
    table.insert(0, "name", [f"P{i}" for i in range(len(table))])
    table.to_csv(shell.folder / "people.csv", index=False)
    found = make_queue(shell.folder, "--kind", "dose=magnitude", model="doses:response")
    yield found
    found.close()


def test_a_new_kind_a_new_target_and_a_new_search_are_known_to_the_page(
    queue: QuestionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METHODS, "shrinking", "tests.test_extending:Shrinking")
    monkeypatch.setitem(FORMS, "P times", Multiple)
    with served(queue) as page:
        kinds = {f["name"]: f["kind"] for f in page.get("/api/site").json()["features"]}
        assert kinds["dose"] == "magnitude"
        before = row(page)
        limits = {"between": {"dose": [0.01, 200]}, "allow": ["dose"]}
        found = ask(page, cells=before["cells"], target="+5", space=limits)
        best = found["answer"]["counterfactuals"][0]
        assert before["cells"]["dose"] < best["cells"]["dose"] <= 200
        asked = {"cells": before["cells"], "budget": 60}
        best = ask(page, **asked, target="1.5 times")["answer"]["counterfactuals"][0]
        assert best["output"] == pytest.approx(1.5 * before["output"], rel=0.05)
        found = ask(page, **asked, target="+1", method="shrinking")
        assert found["answer"]["method"] == "shrinking"


@pytest.mark.usefixtures("verb")
def test_a_new_verb_is_a_field_of_the_pages_form(queue: QuestionQueue) -> None:
    assert "one_group" in [verb.name for verb in page_verbs()]
    form = make_constraints_form()
    given = form.model_validate({"one_group": [["dose"], ["age"]]}).given()
    assert given == {"one_group": [["dose"], ["age"]]}
    assert form.model_validate({"one_group": "dose\nage,weight"}).given() == {
        "one_group": [["dose"], ["age", "weight"]]
    }
    with pytest.raises(ValueError, match="one_group"):
        form.model_validate({"one_group": 3})
    space = queue.site.constrain(given)
    assert "changes only dose or age" in str(space)


def test_a_new_route_is_one_function(queue: QuestionQueue) -> None:
    app = make_app(queue)

    @app.get("/api/extremes")
    def extremes() -> dict[str, float]:
        """Return the lowest and the highest output of the listed rows."""
        return {"low": queue.site.outputs.min(), "high": queue.site.outputs.max()}

    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://page") as client:
            return await client.get("/api/extremes")

    found = asyncio.run(get()).json()
    assert found["low"] < found["high"]
    assert "/api/extremes" in app.openapi()["paths"]


def test_a_new_exported_file_is_one_function(
    queue: QuestionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROGRAMS, "target", lambda site, form: f"{form.target}\n")
    with served(queue) as page:
        found = ask(page, target="+1", budget=60)
        exported = page.get(f"/api/questions/{found['id']}/export/target")
        refused = page.get(f"/api/questions/{found['id']}/export/pkl")
    assert (exported.status_code, exported.text) == (200, "+1\n")
    assert refused.status_code == 422
    assert "an export must be one of json, csv, html, md" in refused.json()["error"]
