"""Text and tables as HTML and Markdown."""

from __future__ import annotations

import pandas as pd

import bayescfx as cfx
from bayescfx import markup


def test_all_text_is_escaped() -> None:
    table = markup.table(["<a>"], [["&b", "<c>"]])
    assert "<a>" not in table
    assert "&lt;a&gt;" in table
    assert "&amp;b" in table
    assert "&lt;c&gt;" in table
    assert markup.paragraph("<p>") == "<p>&lt;p&gt;</p>"
    assert markup.plain("a|b\n*c*") == r"a\|b \*c\*"


def test_columns_are_aligned_by_class() -> None:
    assert "<table>" in markup.table(["a"], [["b"]])
    assert '<table class="last-left">' in markup.table(["a"], [["b"]], last_left=True)
    assert '<table class="all-left">' in markup.table(["a"], [["b"]], all_left=True)
    assert markup.markdown(["a", "b"], [["c", "d"]]).splitlines()[1] == "| :-- | --: |"


def test_a_space_shows_its_features_and_rules_in_a_notebook() -> None:
    data = pd.DataFrame({"age": [20, 40, 60], "<b>": [0.5, 1.5, 2.5]})
    space = cfx.Space.from_data(data).only_up("age").max_changes(1)
    html = space._repr_html_()
    assert html.count("<tr>") == 3
    assert "&lt;b&gt;" in html
    assert "only up" in html
    for line in str(space).splitlines()[-2:]:  # the rule and the cost
        assert markup.paragraph(line.strip()) in html


def test_a_counterfactual_shows_its_changes_in_a_notebook() -> None:
    row = pd.Series({"bmi": 27.4})
    changes = {"bmi": (32.1, 27.4)}
    html = cfx.Counterfactual(row, 171.0, 1.0, changes, 1.2, True)._repr_html_()
    assert '<th scope="row">bmi</th><td>32.1</td><td>27.4</td>' in html
    assert "<p>Prediction 171, valid, cost 1.2.</p>" in html
    html = cfx.Counterfactual(row, 214.0, 0.0, {}, 0.0, False)._repr_html_()
    assert "<p>No change: prediction 214, not valid, cost 0.</p>" in html
    assert "<table" not in html
