"""Sources of the data of the experiments, and the errors without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from experiments import adult, data, taxi
from experiments.__main__ import main

from tests.experiments.conftest import FOLDER, needs_data


def test_the_error_for_missing_adult_data_explains_what_to_do(no_folder: None) -> None:
    with pytest.raises(data.DataError) as caught:
        data.load_adult()
    text = str(caught.value)
    assert "archive.ics.uci.edu" in text
    assert "set BAYESCFX_DATA to that folder or pass --data" in text
    assert "no network" in text


def test_the_error_for_missing_taxi_data_explains_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(data.DataError) as caught:
        data.load_taxi(tmp_path)
    text = str(caught.value)
    assert str(tmp_path) in text
    assert "kaggle.com/competitions/nyc-taxi-trip-duration" in text
    assert "set BAYESCFX_DATA" in text


def test_a_taxi_file_without_a_column_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"vendor_id": [1]}).to_csv(tmp_path / "train.csv", index=False)
    with pytest.raises(data.DataError, match="has no column 'pickup_datetime'"):
        data.load_taxi(tmp_path)


def test_the_command_prints_the_message_and_exits_with_1(
    no_folder: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--quick", "--only", "taxi", "--data", str(tmp_path), "--out", str(tmp_path)]
    assert main(arguments) == 1
    assert "taxi: no taxi trips" in capsys.readouterr().err


def test_an_altered_adult_file_is_refused(tmp_path: Path) -> None:
    row = dict.fromkeys(data.ADULT_COLUMNS, "1")
    pd.DataFrame([row]).to_csv(tmp_path / data.ADULT_FILE, index=False)
    with pytest.raises(data.DataError, match="has the checksum"):
        data.load_adult(tmp_path)


def taxi_file(folder: Path, name: str, vendor: int) -> None:
    """Write a taxi file of one trip."""
    folder.mkdir(exist_ok=True)
    row = dict.fromkeys(data.TAXI_COLUMNS, 1) | {"vendor_id": vendor}
    pd.DataFrame([row]).to_csv(folder / name, index=False)


def test_an_explicit_folder_takes_precedence_over_the_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    taxi_file(tmp_path / "a", "nyc_taxi.csv.gz", 1)
    taxi_file(tmp_path / "b", "train.csv", 2)
    monkeypatch.setenv(data.VARIABLE, str(tmp_path / "a"))
    assert data.load_taxi()["vendor_id"].tolist() == [1]
    assert data.load_taxi(tmp_path / "b")["vendor_id"].tolist() == [2]
    monkeypatch.delenv(data.VARIABLE)
    with pytest.raises(data.DataError, match="BAYESCFX_DATA is not set"):
        data.load_taxi()


def test_another_table_from_openml_is_refused(
    no_folder: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = dict.fromkeys(data.ADULT_COLUMNS, "1") | {"class": ">50K"}
    monkeypatch.setattr(data, "_fetch", lambda: pd.DataFrame([row]).drop(columns="income"))
    with pytest.raises(data.DataError, match=f"Adult from OpenML {data.OPENML_ID} has the checks"):
        data.load_adult()


def test_adult_is_fetched_from_openml_with_a_cache(
    no_folder: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the real `_fetch`, with scikit-learn's fetcher replaced
    monkeypatch.delenv(data.VARIABLE, raising=False)
    asked: dict[str, Any] = {}

    def fetcher(**options: Any) -> Any:
        asked.update(options)
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetcher)
    with pytest.raises(data.DataError, match="OSError: no network"):
        data.load_adult()
    assert asked["data_id"] == 1590
    assert asked["cache"] is True


@needs_data
def test_openml_gives_the_same_table_as_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    table = data.load_adult(FOLDER)
    split = len(table) - data.OPENML_TEST_ROWS
    # The format of OpenML: test rows first, NaN for missing values, texts as categories.
    theirs = pd.concat([table[split:], table[:split]], ignore_index=True)
    theirs = theirs.rename(columns={"income": "class"}).replace("?", np.nan)
    for name in theirs.columns:
        if theirs[name].dtype != "int64":
            theirs[name] = theirs[name].astype("category")
    monkeypatch.delenv(data.VARIABLE, raising=False)
    monkeypatch.setattr(data, "_fetch", lambda: theirs)
    pd.testing.assert_frame_equal(data.load_adult(), table, check_dtype=False)


@needs_data
def test_adult_is_preprocessed_as_in_the_appendix() -> None:
    rows, label = adult.preprocess(data.load_adult(FOLDER), -1)
    assert len(rows) == 46_033
    assert set(rows["native-country"]) == {
        "North America",
        "Asia",
        "South America",
        "Europe",
        "Other",
    }
    assert not (rows == "?").any(axis=None)
    assert {"Unemployed", "Government", "Self-employed"} <= set(rows["workclass"])
    assert rows["capital-change"].min() == -4356
    assert 0.24 < label.mean() < 0.26


def test_distance_and_direction_are_those_on_a_sphere() -> None:
    assert taxi.haversine(0.0, 0.0, 0.0, 90.0) == pytest.approx(np.pi / 2 * taxi.EARTH)
    assert taxi.bearing(0.0, 0.0, 0.0, 1.0) == pytest.approx(90.0)
    assert taxi.bearing(0.0, 0.0, 1.0, 0.0) == pytest.approx(0.0)
