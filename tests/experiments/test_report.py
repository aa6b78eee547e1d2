"""The page, and the comparison of two runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from experiments import compare, environment, report, results
from experiments.__main__ import EXPERIMENTS, main, results_in
from experiments.claims import RULES, Claim, Estimate, exactly, fact

from tests.test_docs import ITEMS


def claim(key: str, margin: Estimate | None, ours: str = "finds") -> Claim:
    return Claim(key, "Section 1", "says", ours, margin, "because")


def part(name: str, *claims: Claim) -> Any:
    module = SimpleNamespace(tell=lambda _: f"## {name}\n", claims=lambda _: list(claims))
    return name, module, {"seeds": 3}


# -- The page --


def test_the_page_opens_with_every_claim_and_the_rules(tmp_path: Path) -> None:
    parts = [part("A", claim("a.b", fact(True)), claim("a.c", Estimate(0.1, -1.0, 1.0)))]
    text = report.write(parts, tmp_path, tmp_path / "page.md")
    assert "2 claims: 1 reproduced, 0 contradicted, 1 undecided, 0 proved." in text
    assert "| Section 1 | says | finds | **undecided** | because |" in text
    assert text.index("## What holds") < text.index("## A")
    for word, rule in RULES.items():
        assert f"* **{word}**: {rule}." in text
    assert "| [A](#a) | 1 |  | 1 |  |" in text


# -- The page in docs, written by a full run --

fully_run = pytest.mark.skipif(
    not (results.RESULTS / environment.FILE).exists(), reason="no full run has written results"
)


@fully_run
def test_the_page_agrees_with_the_results(tmp_path: Path) -> None:
    done = results_in(results.RESULTS)
    assert len(done) == len(EXPERIMENTS)
    text = report.write(done, results.RESULTS, tmp_path / results.REPORT.name)
    assert text == results.REPORT.read_text(encoding="utf-8")
    details = results.REPORT.with_name("reproduction-details.md")
    assert (tmp_path / details.name).read_text("utf-8") == details.read_text("utf-8")


@fully_run
def test_every_numbered_item_of_the_paper_has_a_claim_and_no_key_comes_twice() -> None:
    claims = report.claims_of(results_in(results.RESULTS))
    where = " ".join(one.where for one in claims)
    assert not [item for item in ITEMS if item not in where]
    assert len({one.key for one in claims}) == len(claims)


def test_a_partial_report_names_the_missing_parts(tmp_path: Path) -> None:
    assert main(["--quick", "--only", "potentials", "--jobs", "1", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "reproduction.md").read_text(encoding="utf-8")
    assert "Incomplete: no results yet for properties, thresholds, existence" in page
    assert "## Figure 2" in page
    assert "| potentials | – |" in page
    assert (tmp_path / "reproduction-details.md").is_file()


def test_the_environment_names_versions_and_no_machine(tmp_path: Path) -> None:
    found = environment.save(tmp_path, {"adult": {"seconds": 61.0, "jobs": 2}})
    assert found == environment.load(tmp_path)
    text = environment.tell(found, {"adult": 5, "taxi": None})
    assert re.search(r"numpy \d+\.\d+", text)
    assert "| adult | 0 … 4 | 61 s, 2 |" in text
    assert "Not from this environment: the results of taxi." in text
    assert str(Path.home()) not in json.dumps(found)
    again = environment.save(tmp_path, {"taxi": {"seconds": 1.0, "jobs": 1}})
    assert list(again["runs"]) == ["adult", "taxi"]
    other = json.loads((tmp_path / environment.FILE).read_text())
    other["software"]["numpy"] = "0.1"
    (tmp_path / environment.FILE).write_text(json.dumps(other))
    last = environment.save(tmp_path, {"taxi": {"seconds": 1.0, "jobs": 1}})
    assert list(last["runs"]) == ["taxi"]


# -- Two runs --


def test_a_different_verdict_is_detected() -> None:
    first = [claim("same", fact(True)), claim("turned", Estimate(0.1, 0.05, 0.2))]
    second = [claim("same", fact(True)), claim("turned", Estimate(0.1, -0.05, 0.2))]
    rows = compare.compare(first, second)
    assert [row["same_verdict"] for row in rows] == [True, False]
    assert [row["figures_agree"] for row in rows] == [True, True]
    assert "| `turned` | reproduced | undecided | **no** | yes |" in compare.table(rows)
    (lost,) = compare.compare([], second[:1])
    assert not lost["same_verdict"]
    assert "| `same` | missing | reproduced | **no** | **no** |" in compare.table([lost])


def test_figures_agree_if_intervals_overlap_or_values_are_close() -> None:
    wide = claim("a", Estimate(0.5, 0.4, 0.6))
    assert compare.agree(wide, claim("a", Estimate(0.7, 0.59, 0.8)))
    assert not compare.agree(wide, claim("a", Estimate(0.7, 0.61, 0.8)))
    assert compare.agree(claim("a", exactly(1.0)), claim("a", exactly(1.009)))
    assert not compare.agree(claim("a", exactly(1.0)), claim("a", exactly(1.02)))
    assert compare.agree(claim("a", None), claim("a", None))
    assert not compare.agree(claim("a", None), wide)


def test_the_page_shows_no_comparison_of_older_results(tmp_path: Path) -> None:
    now = [claim("a", fact(True), "0.5")]
    assert "Not compared" in compare.tell(compare.load(tmp_path), now)
    found = compare.save(compare.compare(now, now), (tmp_path, tmp_path), tmp_path / compare.FILE)
    assert compare.load(tmp_path) == found
    assert "same on 1 of 1 claims; the figures agree on 1" in compare.tell(found, now)
    newer = [claim("a", fact(True), "0.6")]
    assert "newer than the last comparison" in compare.tell(found, newer)


def test_comparing_folders_is_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        out = tmp_path / name
        assert main(["--quick", "--only", "potentials", "--jobs", "1", "--out", str(out)]) == 0
    one, two = (tmp_path / name / "results" for name in ("one", "two"))
    assert main(["compare", str(one), str(two)]) == 0
    assert "| claim | verdict, first |" in capsys.readouterr().out
    assert (one / compare.FILE).is_file()
    assert main(["compare", str(one), str(tmp_path)]) == 2
    (two / "fig2_potentials.json").write_text("{}")
    assert main(["compare", str(one), str(two)]) == 2
    assert "results of another version; run the experiments again" in capsys.readouterr().err
