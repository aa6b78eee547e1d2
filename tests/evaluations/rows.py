"""Rows of every dtype, for tests of stores."""

from __future__ import annotations

import numpy as np
import pandas as pd

MIXED = pd.DataFrame(
    {
        "n": np.array([1, 2], dtype=np.int8),
        "x": np.array([0.1, np.nan], dtype=np.float32),
        "s": ["a'\"\\b", "ü\n漢"],
        "o": np.array([(1, 2), None], dtype=object),
        "c": pd.Categorical(["lo", "hi"], categories=["lo", "hi", "top"], ordered=True),
        "k": pd.Categorical([3, 5], categories=[3, 4, 5]),
        "i": pd.array([7, None], dtype="Int64"),
        "b": [True, False],
        "t": pd.Series([pd.Timestamp("2020-01-01 12:00:00.123456"), pd.NaT]),
        "z": pd.to_datetime(["2020-07-01", "2021-01-01"]).tz_localize("Europe/Berlin"),
        "d": pd.to_timedelta(["1 days", "2 min"]),
    }
)


def same_tables(a: pd.DataFrame, b: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(a, b, check_exact=True, check_freq=False)
