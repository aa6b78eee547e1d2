"""Random models, each with its own space: interior peaks, levels, steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.tree import DecisionTreeRegressor

import bayescfx as cfx
from benchmarks.problems import Array


class Peaks:
    """Two interior peaks, with or without a slope."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.d = int(rng.integers(2, 7))
        self.centres = rng.uniform(0.1, 0.9, (2, self.d))
        self.widths = rng.uniform(0.2, 0.5, 2) * np.sqrt(self.d / 2)
        self.heights = rng.uniform(0.5, 3.0, 2)
        self.slope = rng.normal(size=self.d) * rng.choice([0.0, 0.3, 1.0])
        self.query = rng.uniform(size=self.d)
        self.space = cfx.Space({f"x{j}": cfx.Real(0, 1) for j in range(self.d)})

    def predict(self, X: Array) -> Array:
        """Return one number per row."""
        X = np.asarray(X, dtype=float)
        far = ((X[:, None] - self.centres) ** 2).sum(axis=2)
        return np.asarray(X @ self.slope + np.exp(-far / (2 * self.widths**2)) @ self.heights)


class Levels:
    """Integers, categories and reals; some have one outlying level, and two interact."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.kinds = rng.choice(["integer", "level", "real"], size=int(rng.integers(2, 6)))
        sizes = rng.integers(3, 12, len(self.kinds))
        self.effects = [rng.normal(size=k) * rng.uniform(0.2, 2.0) for k in sizes]
        for effect in self.effects:
            if rng.random() < 0.4:
                effect[rng.integers(len(effect))] += rng.choice([-3.0, 3.0])
        self.together = rng.normal(size=(12, 12)) * rng.choice([0.0, 0.5, 1.0])
        cells = []
        features = {}
        for j, (kind, n_levels) in enumerate(zip(self.kinds, sizes, strict=True)):
            cells.append(rng.random() if kind == "real" else float(rng.integers(n_levels)))
            features[f"x{j}"] = _feature(kind, int(n_levels))
        self.query = np.array(cells)
        self.space = cfx.Space(features)

    def predict(self, X: Array) -> Array:
        """Return one number per row."""
        X = np.asarray(X, dtype=float)
        total = np.zeros(len(X))
        for x, kind, effect in zip(X.T, self.kinds, self.effects, strict=True):
            if kind == "real":
                total += np.interp(x, np.linspace(0, 1, len(effect)), np.cumsum(effect) / 2)
            else:
                total += effect[x.astype(int)]
        first, second = (
            np.floor(X[:, j] * (11 if self.kinds[j] == "real" else 1)).astype(int) for j in (0, 1)
        )
        return np.asarray(total + self.together[first, second])


def _feature(kind: str, n_levels: int) -> cfx.Real | cfx.Integer | cfx.Categorical:
    """Return a feature of a kind; integers and categories have so many levels."""
    if kind == "real":
        return cfx.Real(0, 1)
    if kind == "integer":
        return cfx.Integer(0, n_levels - 1)
    return cfx.Categorical([float(level) for level in range(n_levels)])


class Steps:
    """One regression tree."""

    def __init__(self, rng: np.random.Generator) -> None:
        d = int(rng.integers(2, 8))
        X = rng.uniform(size=(int(rng.integers(60, 400)), d))
        y = X @ rng.normal(size=d) + np.sin(6 * X[:, 0]) * rng.random() + 2 * X[:, 0] * X[:, -1]
        leaf = int(rng.integers(2, 20))
        tree = DecisionTreeRegressor(min_samples_leaf=leaf, random_state=0)
        self.tree = tree.fit(X, y + 0.3 * rng.normal(size=len(X)))
        self.query = rng.uniform(size=d)
        self.space = cfx.Space({f"x{j}": cfx.Real(0, 1) for j in range(d)})

    def predict(self, X: Array) -> Array:
        """Return one number per row."""
        return np.asarray(self.tree.predict(np.asarray(X, dtype=float)))


def made(seed: int) -> Iterator[tuple[str, Peaks | Levels | Steps, cfx.Space]]:
    """Yield a model of each kind with its space; some spaces allow two changes only."""
    for kind in (Peaks, Levels, Steps):
        rng = np.random.default_rng([seed, 3])
        model = kind(rng)
        is_sparse = rng.random() < 0.3 and len(model.query) > 2
        space = model.space.max_changes(2) if is_sparse else model.space
        yield kind.__name__.lower(), model, space
