"""Changes include every cell that differs, and say which of them follow from others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import bayescfx as cfx
from bayescfx.cli.answers import answer_json, what_if_json
from bayescfx.errors import SpaceError, SpaceWarning
from bayescfx.result.explanation import Explanation
from bayescfx.space.space import Space

RNG = np.random.default_rng(0)
N = 60
BLOOD = pd.DataFrame(
    {
        "s1": RNG.integers(100, 300, N).astype(float),
        "s3": RNG.integers(22, 99, N).astype(float),
        "age": RNG.integers(20, 80, N),
    }
)
BLOOD["s4"] = (BLOOD["s1"] / BLOOD["s3"]).round(2)
QUERY = pd.Series({"s1": 199.0, "s3": 43.0, "age": 50, "s4": 4.65})  # the function gives 4.63


def ratio(rows: pd.DataFrame) -> Any:
    return (rows["s1"] / rows["s3"]).round(2)


def risk(rows: pd.DataFrame) -> Any:
    return 10.0 * rows["s4"].to_numpy(float) + 0.1 * rows["s1"].to_numpy(float)


def blood_space(*, residual: bool = False) -> Space:
    return Space.from_data(BLOOD).derive("s4", ratio, residual=residual)


def blood_answer(*, residual: bool = False, **given: Any) -> Explanation:
    query = given.pop("query", QUERY.copy() if residual else QUERY.replace(4.65, 4.63))
    space = given.pop("space", blood_space(residual=residual))
    return cfx.explain(risk, query, space, cfx.decrease(percent=10), rng=0, budget=80, **given)


def applied(answer: Explanation, which: int = 0) -> pd.DataFrame:
    """Return the query with the changes of a counterfactual applied, column by column."""
    rows = pd.DataFrame(answer.query_rows).copy()
    for name, (before, after) in answer.counterfactuals[which].changes.items():
        if name in rows:
            assert rows[name].iloc[0] == before
            rows[name] = pd.Series([after], index=rows.index).astype(rows[name].dtype)
        else:  # a one-hot group: its cell is the name of the column with the 1
            rows[before] = rows[before].dtype.type(0)
            rows[after] = rows[after].dtype.type(1)
    return rows


def test_applying_the_changes_gives_the_row_and_its_prediction() -> None:
    answer = blood_answer(n=3)
    for k, found in enumerate(answer.counterfactuals):
        assert risk(applied(answer, k))[0] == found.output
        assert "s4" in found.changes
        assert list(found.follows) == ["s4"]
        assert found.follows["s4"] == found.changes["s4"] == (4.63, found.row["s4"])
        assert list(found.chosen) == [name for name in found.changes if name != "s4"]
        assert found.n_changes == len(found.chosen)
        assert found.cost == pytest.approx(found.distance + 0.2 * len(found.chosen))
    assert answer.verify(risk)


def every_kind(seed: int = 0) -> tuple[pd.DataFrame, Space]:
    """Return a table with every kind of column, and a space with derived ones among them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "real": rng.normal(0, 3, N),
            "single": rng.normal(0, 3, N).astype(np.float32),
            "whole": rng.integers(0, 40, N).astype(np.int16),
            "grade": pd.Categorical(rng.choice(["lo", "mid", "hi"], N), ["lo", "mid", "hi"], True),
            "job": rng.choice(["clerk", "cook", "nurse"], N),
            "ok": rng.random(N) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 400, N), "D"),
            "hour": rng.integers(0, 24, N),
        }
    )
    colour = rng.integers(0, 3, N)
    for k, name in enumerate(["red", "green", "blue"]):
        frame[name] = (colour == k).astype(int)
    frame["total"] = frame["real"] + frame["whole"]
    frame["tens"] = (frame["whole"] // 10).astype(int)
    frame["band"] = np.where(frame["whole"] > 20, "old", "young")
    space = (
        Space.from_data(frame, kinds={"hour": cfx.Integer(0, 23, cyclic=True)})
        .group("colour", ["red", "green", "blue"])
        .derive("total", lambda d: d["real"] + d["whole"])
        .derive("tens", lambda d: d["whole"] // 10)
        .derive("band", lambda d: np.where(d["whole"] > 20, "old", "young"))
    )
    return frame, space


def every_column(rows: pd.DataFrame) -> Any:
    """Return outputs to which each column contributes."""
    days = (rows["since"] - pd.Timestamp("2020-01-01")).dt.days.to_numpy()
    return (
        rows["real"].to_numpy(float)
        + rows["single"].to_numpy(float)
        + 0.1 * rows["whole"].to_numpy(float)
        + rows["grade"].cat.codes.to_numpy()
        + 2.0 * (rows["job"] == "cook").to_numpy()
        + 1.5 * rows["ok"].to_numpy()
        + 0.01 * days
        + np.cos(rows["hour"].to_numpy(float) / 4.0)
        + 2.5 * rows["blue"].to_numpy()
        + 0.5 * rows["total"].to_numpy(float)
        + 0.3 * rows["tens"].to_numpy(float)
        + 1.0 * (rows["band"] == "old").to_numpy()
    )


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 47, 50])
def test_changes_of_every_kind_can_be_applied(seed: int) -> None:
    frame, space = every_kind(seed)
    answer = cfx.explain(
        every_column, frame.iloc[seed], space, cfx.increase(by=12), rng=seed, method="sweep", n=2
    )
    for k, found in enumerate(answer.counterfactuals):
        rows = applied(answer, k)
        assert every_column(rows)[0] == found.output
        for name in rows:
            assert rows[name].iloc[0] == dict(zip(rows, found.row, strict=True))[name], name
        assert set(found.follows) <= {"total", "tens", "band"}
        assert not set(found.chosen) & {"total", "tens", "band"}
        by_hand = {name: pair[1] for name, pair in found.changes.items()}
        tried = cfx.what_if(every_column, frame.iloc[seed], by_hand, space)
        assert tried.output == found.output
        assert dict(tried.changes) == dict(found.changes)
        assert (tried.n_changes, tried.broken) == (found.n_changes, ())
        assert tried.cost == pytest.approx(found.cost)
    again = Explanation.from_json(answer.to_json())
    assert [dict(f.follows) for f in again.counterfactuals] == [
        dict(f.follows) for f in answer.counterfactuals
    ]
    assert again.verify(every_column, space)


def test_every_face_shows_what_follows(tmp_path: Path) -> None:
    answer = blood_answer()
    before, after = answer.best.follows["s4"]
    words = f"s4 follows: {before:g} → {after:g}"
    row = f"s4 follows {before:g} → {after:g}"
    assert row in " ".join(str(answer).split())
    assert f"| s4 follows | {before:g} | {after:g} |" in answer.to_markdown()
    assert "s4 follows" in answer._repr_html_()
    assert "s4 follows" in answer.best._repr_html_()
    assert words in repr(answer.best)
    assert f"({words})" in answer.to_frame()["changes"][0]
    assert "s4 follows" in str(blood_answer(n=2))
    assert answer.to_frame(changes_only=True)["follows"].tolist() == ["s4"]
    plain = answer_json(answer)["counterfactuals"][0]
    assert plain["changes"]["s4"] == {"from": before, "to": after, "follows": True}
    assert [n for n, change in plain["changes"].items() if "follows" in change] == ["s4"]
    many = cfx.explain_many(risk, BLOOD.head(3), blood_space(), "-10%", rng=0, budget=40)
    assert "(s4 follows: " in str(many)
    cfx.plots.report(many, tmp_path / "many.html")
    assert ">s4 follows</th>" in (tmp_path / "many.html").read_text(encoding="utf-8")
    assert set(many.to_frame(changes_only=True)["follows"]) <= {"s4", "-"}
    assert "(s4 follows: " in many.summary()["changes"].iloc[0]
    importance = many.importance().set_index("feature")["times"]
    assert importance["s4"] == 0
    assert cfx.Explanations.from_json(many.to_json())[0].best.follows.keys() == {"s4"}


def test_a_false_claim_about_what_follows_is_found() -> None:
    answer = blood_answer()
    false = replace(answer.best, follows={})
    wrong = replace(answer, counterfactuals=(false,))
    assert wrong.violations(risk) == ("answer 0 has other changes",)
    hidden = replace(answer.best, changes=answer.best.chosen, follows={})
    assert replace(answer, counterfactuals=(hidden,)).violations(risk)


def test_rows_by_hand_and_from_elsewhere_show_what_follows() -> None:
    query = QUERY.replace(4.65, 4.63)
    tried = cfx.what_if(risk, query, {"s1": 150.0}, blood_space())
    assert tried.changes == {"s1": (199.0, 150.0), "s4": (4.63, 3.49)}
    assert (tried.follows, tried.n_changes) == ({"s4": (4.63, 3.49)}, 1)
    assert str(tried).startswith("s1 199 → 150 (s4 follows: 4.63 → 3.49): prediction ")
    assert what_if_json(tried, BLOOD.columns)["changes"]["s4"]["follows"] is True
    # A value that does not follow is not what the model scores.
    tried = cfx.what_if(risk, query, {"s1": 150.0, "s4": 2.0}, blood_space())
    assert tried.broken == ("'s4' follows from other features: it is 3.49, not 2",)
    rows = pd.DataFrame([query, query]).assign(s1=150.0, s4=[3.49, 4.63])
    found = cfx.assess(risk, query, rows, blood_space(), "-5%")
    assert found["changes"].tolist() == ["s1 199 → 150 (s4 follows: 4.63 → 3.49)", "s1 199 → 150"]
    assert found["n_changes"].tolist() == [1, 1]
    assert found["broken"].tolist() == ["", "derive('s4')"]


# ── a derivation that does not give the query's own value ──

MISMATCH = (
    r"^derive\('s4'\) gives 4.63, but the query has 4.65. The cell stays until what it depends on "
    r"changes, and then takes the value of the function. To keep the difference of \+0.02, derive "
    r"it with residual=True.$"
)


def test_a_derivation_that_differs_from_the_query_is_a_warning() -> None:
    with pytest.warns(SpaceWarning, match=MISMATCH):
        answer = blood_answer(query=QUERY)
    row: Any = answer.best.row
    assert row["s4"] == round(row["s1"] / row["s3"], 2)
    assert answer.best.follows["s4"] == (4.65, row["s4"])
    with pytest.warns(SpaceWarning, match=MISMATCH):
        blood_space().around(QUERY)
    queries = pd.DataFrame([QUERY, QUERY.replace(4.65, 4.63), QUERY], index=["x", "y", "z"])
    with pytest.warns(SpaceWarning, match=r"for the query 'x' \(and 1 more\): derive\('s4'\) give"):
        cfx.explain_many(risk, queries, blood_space(), "-10%", rng=0, budget=20)


def test_rounding_errors_are_no_difference() -> None:
    space = Space.from_data(BLOOD).derive("s4", lambda r: ratio(r) * (1 + 1e-13))
    region = space.around(QUERY.replace(4.65, 4.63))  # a warning is an error here
    assert region.query[3] == 4.63


def test_the_residual_of_the_query_can_be_kept() -> None:
    answer = blood_answer(residual=True)
    row: Any = answer.best.row
    kept = round(row["s1"] / row["s3"], 2) + (4.65 - 4.63)
    assert row["s4"] == pytest.approx(kept, abs=1e-12)
    assert answer.best.follows["s4"][0] == 4.65
    assert answer.verify(risk)
    # Where the function gives the same value as for the query, the query's own cell stays.
    tried = cfx.what_if(risk, QUERY, {"age": 60}, blood_space(residual=True))
    assert (tried.row["s4"], tried.follows) == (4.65, {})
    line = next(line for line in str(blood_space(residual=True)).splitlines() if "  s4 " in line)
    assert line.endswith("derived, keeps the residual")


def test_residuals_of_whole_numbers_stay_whole() -> None:
    frame = pd.DataFrame({"a": [10, 20, 30, 40], "half": [5, 10, 15, 20]})
    space = Space.from_data(frame).derive("half", lambda d: d["a"] / 2, residual=True)
    tried = cfx.what_if(lambda r: r["half"], {"a": 20, "half": 12}, {"a": 31}, space)
    assert tried.row["half"] == 18  # 15.5 + 2, rounded


def test_residuals_need_numbers() -> None:
    frame, _ = every_kind()
    space = Space.from_data(frame, kinds={"hour": cfx.Integer(0, 23, cyclic=True)})
    for name, kind in {"job": "Categorical", "grade": "Ordinal", "hour": "cyclic"}.items():
        message = f"`residual` needs numbers on a line, but '{name}' is {kind}"
        with pytest.raises(SpaceError, match=message):
            space.derive(name, lambda d: d["whole"], residual=True)
    with pytest.raises(SpaceError, match="`residual` must be True or False; got 'yes'"):
        space.derive("real", lambda d: d["whole"], residual="yes")  # type: ignore[arg-type]


def test_a_level_that_is_not_derived_is_said_without_a_residual() -> None:
    frame, space = every_kind()
    query = frame[frame["band"] == "young"].iloc[0].replace("young", "old")
    with pytest.warns(
        SpaceWarning, match=r"derive\('band'\) gives 'young', but .* 'old'"
    ) as caught:
        space.around(query)
    assert "residual" not in str(caught[0].message)


def test_derived_columns_make_no_proof() -> None:
    model = LinearRegression().fit(BLOOD, BLOOD["s4"] * 3 + BLOOD["age"])
    answer = cfx.explain(
        model, QUERY.replace(4.65, 4.63), blood_space(), cfx.decrease(percent=10), rng=0
    )
    assert answer.proof is None
    assert "derived column" in answer.proof_reason
