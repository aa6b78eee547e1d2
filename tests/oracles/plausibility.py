"""Plausibility of rows, computed again by counting in plain loops."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from math import isnan, log
from typing import Any


def _bin(data: list[list[float]], j: int, levels: bool, x: float) -> Any:
    if isnan(x):
        return "missing"
    if levels:
        count = Counter(row[j] for row in data)
        order = sorted(count, key=lambda level: (-count[level], level))
        return min(order.index(x), 63) if x in count else "missing"
    seen = sorted(row[j] for row in data if not isnan(row[j]))
    return bisect_right([seen[int(k / 64 * len(seen))] for k in range(1, 64)], x)


def _unseen(values: list[float], levels: bool, x: float) -> bool:
    values = [v for v in values if not isnan(v)]
    if isnan(x):
        return False
    reach = 0.0 if levels else (max(values) - min(values)) / 16.0
    return all(abs(v - x) > reach for v in values)


class Counted:
    """What goes together in rows ``data``; ``levels`` says which columns are categorical."""

    def __init__(self, data: Any, levels: Any) -> None:
        self.data = [[float(v) for v in row] for row in data]
        self.levels = list(levels)
        n = len(self.data)
        d = len(self.levels)
        self.bins = [
            [_bin(self.data, j, self.levels[j], row[j]) for j in range(d)] for row in self.data
        ]
        edges = []
        first = 6 - (3 if n >= 800 else 2 if n >= 200 else 1)
        for i in range(d):
            for j in range(i + 1, d):
                gain = sum(self.left_out(i, j, first)) / n
                if gain > 0.0:
                    edges.append((-gain, i, j))
        group = list(range(d))
        self.tree = []
        for _, i, j in sorted(edges):
            if group[i] != group[j]:
                group = [group[i] if g == group[j] else g for g in group]
                shift = max(range(6), key=lambda s: (round(sum(self.left_out(i, j, s)) / n, 9), -s))
                self.tree.append((i, j, shift))
        self.own = [0.0] * n
        for i, j, shift in self.tree:
            self.own = [a + b for a, b in zip(self.own, self.left_out(i, j, shift), strict=True)]
        for k, row in enumerate(self.data):
            others = self.data[:k] + self.data[k + 1 :]
            for j in range(d):
                rest = [v for v in (o[j] for o in others) if not isnan(v)]
                span = [v for v in (o[j] for o in self.data) if not isnan(v)]
                reach = 0.0 if self.levels[j] else (max(span) - min(span)) / 16.0
                if not isnan(row[j]) and all(abs(v - row[j]) > reach for v in rest):
                    self.own[k] -= log(n + 1)

    def pair(self, bins: list[Any], i: int, j: int, shift: int) -> tuple[Any, Any]:
        def coarse(k: int) -> Any:
            if bins[k] == "missing":
                return "missing"
            return min(bins[k], 64 // 2**shift - 1) if self.levels[k] else bins[k] // 2**shift

        return coarse(i), coarse(j)

    def counts(self, i: int, j: int, shift: int) -> tuple[Counter[Any], Counter[Any], Counter[Any]]:
        both = Counter(self.pair(bins, i, j, shift) for bins in self.bins)
        first = Counter[Any]()
        second = Counter[Any]()
        for (a, b), k in both.items():
            first[a] += k
            second[b] += k
        return both, first, second

    def left_out(self, i: int, j: int, shift: int) -> list[float]:
        (both, first, second) = self.counts(i, j, shift)
        n = len(self.data)
        found = []
        for bins in self.bins:
            a, b = self.pair(bins, i, j, shift)
            apart = first[a] * second[b] / n
            found.append(log((both[a, b] - 1 + apart / n) / apart))
        return found

    def score(self, row: Any) -> float:
        row = [float(v) for v in row]
        n = len(self.data)
        bins = [_bin(self.data, j, self.levels[j], row[j]) for j in range(len(row))]
        total = 0.0
        for j, x in enumerate(row):
            if _unseen([r[j] for r in self.data], self.levels[j], x):
                total -= log(n + 1)
        for i, j, shift in self.tree:
            both, first, second = self.counts(i, j, shift)
            a, b = self.pair(bins, i, j, shift)
            apart = first[a] * second[b] / n or 1.0
            total += log((both[a, b] + apart / n) / apart)
        return total
