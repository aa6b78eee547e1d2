"""Rows of codes as keys of a cache."""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Memory, firsts, sorted_rows


def test_each_row_is_computed_once_and_the_cache_is_limited() -> None:
    memory, asked = Memory(most=5), []

    def recall(*values: float) -> list[float]:
        X = np.array(values)[:, None]

        def ask(new: list[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
            asked.append(X[new, 0].tolist())
            return 2 * X[new, 0]

        found: list[float] = memory.recall(X, ask).tolist()
        return found

    assert recall(1, 2, 1) == [2, 4, 2]
    assert recall(3, 2, 3, 1, 4, 5, 6) == [6, 4, 6, 2, 8, 10, 12]
    assert asked == [[1, 2], [3, 4, 5, 6]]
    assert recall(6, 7, 6) == [12, 14, 12]  # more than five are known: what is not at hand goes
    assert recall(6, 7) == [12, 14]
    assert asked[2:] == [[7]]
    assert recall(1) == [2]
    assert asked[3:] == [[1]]


def test_the_first_of_equal_rows_is_kept() -> None:
    X = np.array([[1.0, np.nan], [0.0, 2.0], [1.0, np.nan], [-0.0, 2.0], [3.0, 2.0]])
    assert firsts(X).tolist() == [0, 1, 4]
    assert firsts(X > 0.5).tolist() == [0, 1, 4]
    assert firsts(X[:0]).tolist() == []


def test_sorted_rows_are_those_of_numpy() -> None:
    X = 0.5 * np.random.default_rng(0).integers(-1, 2, size=(60, 3)).astype(np.float64)
    X[::7] *= -0.0
    found = sorted_rows(X)
    assert found.tolist() == np.unique(X, axis=0).tolist()
    assert not np.signbit(found[found == 0.0]).any()
    assert sorted_rows(X[:0]).shape == (0, 3)
