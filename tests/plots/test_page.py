"""The report: one HTML file, well formed, that needs nothing else."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

import bayescfx as cfx
from bayescfx import plots
from bayescfx.plots.page import page
from tests.plots.conftest import linear


class Checker(HTMLParser):
    """Collect tags and text; complain of what is not closed."""

    VOID = ("meta", "img", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def checked(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return checker


def test_a_report_is_well_formed_escaped_and_needs_nothing_else(
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
    assert "answer 2" in text
    assert all(name in text for name in ("x0", "x1", "x2"))
    assert html == page(answer)


def test_a_report_of_an_answer_read_back_works(mixed: cfx.Explanation) -> None:
    text = "".join(checked(page(cfx.Explanation.from_json(mixed.to_json()))).text)
    assert "not restored: derive('bmi')" in text


def test_a_report_without_a_surrogate_leaves_its_pictures_out(numbers: cfx.Explanation) -> None:
    html = page(replace(numbers, evaluations=cfx.Evaluations()))
    assert "How the prediction responds" not in html
    assert "How the prediction responds" in page(numbers)
    checked(html)


def test_a_report_of_many_answers_has_a_section_for_each(many: cfx.Explanations) -> None:
    text = "".join(checked(page(many)).text)
    assert all(f"Query {i}" in text for i in range(4))
    checked(page(cfx.Explanations([])))
