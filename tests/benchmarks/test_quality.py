"""The arithmetic of the quality gate, and one question asked for real."""

from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import quality
from benchmarks.quality import Record, compare, load, store, summarise


def records(cost: float = 1.0, n_hits: int = 4, rows: int = 40, n_seeds: int = 4) -> list[Record]:
    """Return answers of two queries; costs and rows vary a little between seeds."""
    return [
        Record(f"bayes: table model free {query}", 0, seed, *outcome, cpu=0.5)
        for query in (1, 2)
        for seed in range(n_seeds)
        for outcome in [
            (seed < n_hits, cost * (1 + 0.01 * seed) if seed < n_hits else None, rows + seed)
        ]
    ]


def test_the_same_records_are_not_worse() -> None:
    [found] = compare(summarise(records()), summarise(records()))
    assert not found.is_worse
    assert found.hits.new == found.hits.old == 1.0
    assert found.cost is not None
    assert found.cost.new == pytest.approx(1.0)
    assert found.rows.new == pytest.approx(1.0)
    assert found.cpu == pytest.approx(1.0)


@pytest.mark.parametrize("changed", [{"cost": 1.2}, {"n_hits": 1}, {"rows": 60}])
def test_a_worse_figure_is_found(changed: dict[str, float]) -> None:
    [found] = compare(summarise(records(**changed)), summarise(records()))  # type: ignore[arg-type]  # counts are int
    assert found.is_worse


@pytest.mark.parametrize("changed", [{"cost": 1.005}, {"cost": 0.8}, {"rows": 20}])
def test_better_figures_and_differences_within_the_margin_pass(changed: dict[str, float]) -> None:
    [found] = compare(summarise(records(**changed)), summarise(records()))  # type: ignore[arg-type]  # counts are int
    assert not found.is_worse


def test_one_lost_hit_of_all_is_within_the_margin() -> None:
    new = records()
    new[0] = replace(new[0], hit=False, cost=None)
    [found] = compare(summarise(new), summarise(records()))
    assert found.hits.new == 7 / 8
    assert not found.hits.is_worse


def test_a_question_that_never_hits_has_no_cost() -> None:
    [found] = compare(summarise(records(n_hits=0)), summarise(records()))
    assert found.cost is None
    assert found.hits.is_worse


def test_the_exit_code_is_1_if_a_figure_is_worse(capsys: pytest.CaptureFixture[str]) -> None:
    baseline = summarise(records())
    assert quality.report(compare(baseline, baseline), "same") == 0
    assert "Not worse." in capsys.readouterr().out
    assert quality.report(compare(summarise(records(cost=2.0)), baseline), "more expensive") == 1
    assert "2.000 (+" in capsys.readouterr().out


def test_a_stored_baseline_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "quality.json"
    store(quality.Run(records(), 0.05), "abc1234", path)
    units, about = load(path)
    assert about["commit"] == "abc1234"
    assert about["calibration_seconds"] == 0.05
    assert not compare(summarise(records()), units)[0].is_worse


def test_the_committed_baseline_has_all_questions() -> None:
    units, about = load()
    names = {
        f"{question.name}/{query}"
        for question in quality._questions()
        for query in range(len(question.rows))
    }
    assert set(units) == names
    assert len(about["seeds"]) == quality.BASELINE_SEEDS


def test_a_question_is_answered_and_judged_by_the_model() -> None:
    names = [question.name for question in quality._questions()]
    position = names.index(
        next(name for name in names if name.startswith("sweep: diabetes linear"))
    )
    [found] = quality.ask(position, seed=0)
    assert found.hit
    assert found.cost is not None
    assert found.cost > 0
    assert found.rows > 1
    assert found.group == "sweep"
