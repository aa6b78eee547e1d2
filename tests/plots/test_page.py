"""The report: one self-contained HTML file, well formed."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayescfx as cfx
from bayescfx import plots
from bayescfx.plots.info.changes import change_info, rounded_to
from bayescfx.plots.info.view import View
from bayescfx.plots.report_file import as_html as page
from tests.plots.conftest import linear, with_row


class Checker(HTMLParser):
    """Collect tags and text; fail if a tag is not closed."""

    VOID = ("meta", "img", "br", "wbr")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.body: list[str] = []  # what is not folded

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & {*self.open}:
            self.text.append(data)
            if "details" not in self.open:
                self.body.append(data)


def checked(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return checker


def test_a_report_is_well_formed_escaped_and_self_contained(
    mixed: cfx.Explanation, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    plots.report(mixed, path)
    found = checked(path.read_text(encoding="utf-8"))
    tags = {tag for tag, _ in found.seen}
    assert not tags & {"script", "link", "iframe", "b"}
    pictures = [attributes for tag, attributes in found.seen if tag == "img"]
    assert len(pictures) >= 5
    for attributes in pictures:
        assert (attributes["src"] or "").startswith("data:image/svg+xml;base64,")
        assert attributes["alt"]
    text = "".join(found.text)
    assert "hours <b>&$x$" in text
    assert mixed.verdict in text


def test_a_report_shows_every_answer_and_the_whole_query() -> None:
    X = np.random.default_rng(0).uniform(size=(60, 3))
    answer = cfx.explain(
        linear, X[0], cfx.Space.from_data(X), cfx.increase(by=1), budget=40, n=2, rng=0
    )
    html = page(answer)
    text = "|".join(checked(html).text)
    assert "Answer 2" in text
    assert all(name in text for name in ("x0", "x1", "x2"))
    assert html == page(answer)


def test_an_archived_answer_has_a_report(mixed: cfx.Explanation) -> None:
    text = "".join(checked(page(cfx.Explanation.from_json(mixed.to_json()))).text)
    assert "not restored: derive('bmi')" in text


def test_a_report_without_a_surrogate_leaves_its_pictures_out(numbers: cfx.Explanation) -> None:
    html = page(replace(numbers, evaluations=cfx.Evaluations()))
    assert "How the prediction responds" not in html
    assert "How the prediction responds" in page(numbers)
    checked(html)


def test_a_report_works_where_no_allowed_row_was_scored() -> None:
    X = np.random.default_rng(0).uniform(size=(30, 2))
    space = cfx.Space.from_data(X).require("x0 <= 0.2")
    answer = cfx.explain(lambda X: X.sum(axis=1), [0.9, 0.9], space, 0.1, budget=1, rng=0)
    assert np.isnan(answer.reachable).all()
    assert "outputs seen|none" in "|".join(checked(page(answer)).text)


def test_a_report_states_its_facts_without_jargon(mixed: cfx.Explanation, tmp_path: Path) -> None:
    answer = replace(mixed, about={"model": "m<i>.onnx", "unit": "h", "row": "4711"})
    about = {"data": "people & co.csv", "date": "2026-01-31"}
    path = tmp_path / "a.html"
    plots.report(answer, path, title="Hours <of> 4711", output="pay", unit="€", about=about)
    found = checked(path.read_text(encoding="utf-8"))
    body = " ".join(found.body)
    for text in ("Hours <of> 4711", "m<i>.onnx", "people & co.csv", "4711", "2026-01-31"):
        assert text in body
    assert "The pay is" in body
    assert "the target is 500 €." in body
    for word in ("surrogate", "potential", "Shapley", "Gaussian", "prediction"):
        assert word not in body
    assert "surrogate" in " ".join(found.text)  # the mathematics, folded
    plots.report(mixed, path)
    assert dt.date.today().isoformat() in path.read_text(encoding="utf-8")


def test_changed_columns_come_before_unchanged_ones() -> None:
    X = pd.DataFrame(np.random.default_rng(0).uniform(size=(60, 4)), columns=list("abcd"))
    space = cfx.Space.from_data(X).fix("d")
    answer = cfx.explain(lambda X: X["a"] * 9, X.iloc[0], space, 8.0, budget=40, rng=0)
    found = checked(page(answer))
    assert "a" in found.body
    assert "d" not in found.body
    assert "d" in found.text
    assert "3 columns stay the same" in found.text


def number(text: str) -> Decimal:
    return Decimal(text.replace("−", "-"))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=8), st.floats(-1e3, 1e3))
def test_parts_are_rounded_so_that_they_add_up(parts: list[float], more: float) -> None:
    whole = round(sum(parts) + more / 1e4)
    found = rounded_to(whole, parts)
    assert sum(found) == whole
    close = 2 + abs(whole - sum(parts)) / len(parts)
    assert all(abs(n - part) <= close for n, part in zip(found, parts, strict=True))


@pytest.mark.parametrize("scale", [1e-9, 0.01, 1.0, 1234.5])
def test_effects_add_up_as_printed(scale: float) -> None:
    X = np.random.default_rng(0).uniform(size=(50, 5))
    slopes = scale * np.array([1.0, 1 / 3, 1 / 7, 1 / 9, 1 / 11])
    answer = cfx.explain(
        lambda X: X @ slopes, X[0], cfx.Space.from_data(X), X[1] @ slopes, budget=30, rng=0
    )
    best = replace(answer.best, output=float(X[1] @ slopes))
    info = change_info(View.of(with_row(replace(answer, counterfactuals=(best,)), X[1])))
    assert len(info.changes) == 5
    assert sum(number(c.effect_text) for c in info.changes) == number(info.prediction.change)
    if scale > 1e-6:
        before, after = map(number, info.prediction.texts)
        assert before + number(info.prediction.change) == after


def test_a_report_of_many_lists_changes_and_folds_the_rest() -> None:
    jobs = ["clerk", "cook", "a <b>very</b> long name of a job"]
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"job": rng.choice(jobs, 90), "pay": rng.uniform(0, 9, 90).round(1)})
    X.index = pd.Index([f"N{i}" for i in range(90)], name="person")
    f = lambda X: 10.0 * (X["job"] == "cook") + X["pay"]  # noqa: E731  # a bare callable
    space = cfx.Space.from_data(X).allow("job")
    answers = cfx.explain_many(f, X.head(30), space, cfx.at_least(10), rng=0)
    html = page(answers)
    assert len(html) < 100_000
    found = checked(html)
    text = "|".join(found.text)
    start = X.head(30)["job"]
    for job in (jobs[0], jobs[2]):
        assert f"{job} → cook ({(start == job).sum()})" in text
    assert f"{(start == 'cook').sum()} already reached" in text
    listed = [label for label in X.index[:30] if label in found.body]
    assert listed == X.index[:30][start != "cook"].tolist()
    assert "img" not in {tag for tag, _ in found.seen}
    assert "script" in {tag for tag, _ in found.seen}
    assert "N0" not in (Path(plots.__file__).parent / "report.js").read_text(encoding="utf-8")
    down = cfx.Space.from_data(X).allow("pay").only_down("pay")
    far = cfx.explain_many(f, X.head(3), down, cfx.at_least(99), rng=0, budget=30)
    assert "3 for which no change comes closer" in "".join(checked(page(far)).text)
    checked(page(cfx.Explanations([])))


def test_a_report_of_many_may_be_sheets_of_paper(many: cfx.Explanations, tmp_path: Path) -> None:
    path = tmp_path / "many.pdf"
    plots.report(cfx.Explanations([*many] * 4), path, title="All")
    content = path.read_bytes()
    assert content.startswith(b"%PDF")
    assert content.count(b"/Type /Page ") > 1
    plots.report(many[0], path)
    assert path.read_bytes().startswith(b"%PDF")
    with pytest.raises(
        cfx.SettingsError, match=r"`path` must end in .html or .pdf; got '.*many.txt'"
    ):
        plots.report(many, tmp_path / "many.txt")
    with pytest.raises(cfx.SettingsError, match="`unit` must be a text; got 3"):
        plots.report(many, path, unit=3)  # type: ignore[arg-type]  # on purpose
