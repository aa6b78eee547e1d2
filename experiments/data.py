"""The two datasets: where they are read from, and errors if they are missing."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pandas as pd

VARIABLE = "BAYESCFX_DATA"
ADULT_FILE = "adult.csv.gz"
TAXI_FILES = ("nyc_taxi.csv.gz", "train.csv", "train.csv.gz")

ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    *("native-country", "income"),
)
TAXI_COLUMNS = (
    *("vendor_id", "pickup_datetime", "passenger_count", "pickup_longitude", "pickup_latitude"),
    *("dropoff_longitude", "dropoff_latitude", "store_and_fwd_flag", "trip_duration"),
)

ADULT_SHA256 = (
    "259d92d96070ea0e490f3bcb94af74f79df6632f2bbb69dcc6d3b095e831e77a"  # of `fingerprint`
)
OPENML_ID = 1590
OPENML_TEST_ROWS = 16_281  # OpenML has UCI's test rows first, the file has them last


class DataError(FileNotFoundError):
    """A data file is missing or has unexpected content; the message says what to do."""


def folder(given: Path | None = None) -> Path | None:
    """Return the data folder: the argument, else ``$BAYESCFX_DATA``, else None."""
    if given is not None:
        return given
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def load_adult(given: Path | None = None) -> pd.DataFrame:
    """Return UCI Adult: 48,842 rows, 15 columns, missing values as ``"?"``.

    From ``adult.csv.gz`` in the data folder if there is one; else from OpenML through
    scikit-learn, which keeps a copy in its cache. Both are checked against the same checksum.

    Raises
    ------
    DataError
        If there is neither, or the table has another checksum.
    """
    place = folder(given)
    path = None if place is None else place / ADULT_FILE
    if path is not None and path.exists():
        frame = pd.read_csv(path, keep_default_na=False)[list(ADULT_COLUMNS)]
        origin = str(path)
    else:
        frame = _adult_from_openml(path)
        origin = f"OpenML {OPENML_ID}"
    found = fingerprint(frame)
    if found != ADULT_SHA256:
        raise DataError(
            f"Adult from {origin} has the checksum {found}; expected {ADULT_SHA256}. "
            f"Put the original {ADULT_FILE} into the folder that {VARIABLE} names."
        )
    return frame


def load_taxi(given: Path | None = None) -> pd.DataFrame:
    """Return the New York taxi trips: the shared sample, or Kaggle's whole ``train.csv``.

    Raises
    ------
    DataError
        If there is no such file.
    """
    place = folder(given)
    for name in TAXI_FILES:
        if place is not None and (place / name).exists():
            frame = pd.read_csv(place / name)
            missing = [column for column in TAXI_COLUMNS if column not in frame]
            if missing:
                raise DataError(
                    f"{place / name} has no column {missing[0]!r}; expected those of Kaggle's "
                    "nyc-taxi-trip-duration. Get the original train.csv."
                )
            return frame[list(TAXI_COLUMNS)]
    raise DataError(
        f"no taxi trips: none of {', '.join(TAXI_FILES)} is in {_describe(place)}. Get train.csv "
        "from https://www.kaggle.com/competitions/nyc-taxi-trip-duration/data (or the 5 % sample "
        "train-sample0.05.csv.gz of the GitHub repository scicloj/ml-study as nyc_taxi.csv.gz), "
        f"put it into a folder, and set {VARIABLE} to that folder or pass --data."
    )


def fingerprint(frame: pd.DataFrame) -> str:
    """Return the SHA-256 of a table's cells, row by row, independent of the file format."""
    text = frame.to_csv(index=False, header=False, lineterminator="\n")
    return hashlib.sha256(text.encode()).hexdigest()


def _adult_from_openml(path: Path | None) -> pd.DataFrame:
    try:
        return from_openml(_fetch())
    except Exception as error:  # the network, the server and the parser raise many kinds
        raise DataError(
            f"no Adult data: {_describe(path)} is not there, and OpenML could not be asked "
            f"({type(error).__name__}: {error}). Get adult.data and adult.test from "
            "https://archive.ics.uci.edu/dataset/2/adult, join them with a header as "
            f"{ADULT_FILE}, put it into a folder, and set {VARIABLE} to that folder or pass --data."
        ) from error


def _fetch() -> Any:
    from sklearn.datasets import fetch_openml

    return fetch_openml(data_id=OPENML_ID, as_frame=True, cache=True, parser="auto").frame


def from_openml(table: pd.DataFrame) -> pd.DataFrame:
    """Return OpenML's Adult in the format of UCI: order, names, missing values, integers."""
    frame = table.rename(columns={"class": "income"})[list(ADULT_COLUMNS)].astype(object)
    frame = frame.where(frame.notna(), "?")
    for name in frame.columns:
        numbers = pd.to_numeric(frame[name], errors="coerce")
        if numbers.notna().all():
            frame[name] = numbers.astype("int64")
    order = [*range(OPENML_TEST_ROWS, len(frame)), *range(min(OPENML_TEST_ROWS, len(frame)))]
    return frame.iloc[order].reset_index(drop=True)


def _describe(place: Path | None) -> str:
    return f"{place}" if place is not None else f"(no folder: {VARIABLE} is not set)"
