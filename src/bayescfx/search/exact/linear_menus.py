"""Menus of linear models: which small sets of features can reach a target, and at which cost.

A set whose features would have to move farther than its best part costs is not searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bayescfx.models.readers import LinearModel
from bayescfx.potentials import Intervals
from bayescfx.search.exact.branching import Work
from bayescfx.search.exact.contributions import Contributions, Gain, ListedGain, take_apart
from bayescfx.search.exact.linear_form import TUNING, find_nearest_linear
from bayescfx.search.exact.menus import HitTest, MenuEntry, fill_menu, part_entry, run_set
from bayescfx.space.region import Region


@dataclass(frozen=True, eq=False)
class _LinearSets:
    """The sets of features of one question to a linear model."""

    form: LinearModel
    region: Region
    accepted: Intervals
    parts: Contributions
    work: Work
    test: HitTest
    unproven: list[set[int]] = field(default_factory=list)

    def search(self, features: tuple[int, ...], best: MenuEntry | None) -> MenuEntry:
        """Return the entry of one set, given the best entry of its parts."""
        entry = self._search(features, best)
        if not entry.is_proven:
            self.unproven.append(set(features))
        return entry

    def _search(self, features: tuple[int, ...], best: MenuEntry | None) -> MenuEntry:
        """Return the entry of one set, by bounds or a search."""
        gains = tuple(each for each in self.parts.gains if each.feature in features)
        limit = np.inf if best is None else best.lowest_cost
        if not gains or self._least_cost(gains, features) >= limit * (1.0 - TUNING.same_cost):
            return part_entry(features, best, is_complete=True)
        if self.work.is_over:
            return part_entry(features, best, is_complete=False)
        own = replace(self.parts, gains=gains)
        search = find_nearest_linear(
            self.form, self.region, self.accepted, limit=limit, work=self.work, parts=own
        )
        return run_set(search, self.region, features, best, self.test)

    def _least_cost(self, gains: Sequence[Gain], features: tuple[int, ...]) -> float:
        """Return a lower bound on the cost of rows that belong to no part of a set.

        The gains that are missing are bought at the lowest prices, without regard to rules. Rows
        that change some of the features only count if a part is not proven. Infinite if all gains
        together do not reach the target. 0 for norms other than 1.
        """
        missing, sign = self._missing_gain()
        if missing <= 0.0:
            return 0.0
        distance = 0.0
        left = missing
        for price, most in sorted(self._price(each, sign) for each in gains):
            bought = min(left, most)
            distance += price * bought
            left -= bought
        if left > 0.0:
            return np.inf
        if self.region.price.norm != 1:
            return 0.0
        is_proven = not any(part <= set(features) for part in self.unproven)
        n_changes = len(features) if is_proven else 1
        return distance + self.region.price.per_change * n_changes

    def _missing_gain(self) -> tuple[float, int]:
        """Return the gain without which no target is reached, and its sign; 0 if two-sided."""
        margin = self.parts.rounding
        start = self.parts.start
        rises = [low - margin - start for low, high in self.accepted if high >= start]
        falls = [start - high - margin for low, high in self.accepted if low <= start]
        if rises and falls:
            return 0.0, 1
        return (min(rises), 1) if rises else (min(falls), -1)

    def _price(self, gain: Gain, sign: int) -> tuple[float, float]:
        """Return the lowest distance per gain in one direction, and the largest gain."""
        region = self.region
        j = gain.feature
        if isinstance(gain, ListedGain):
            gains = sign * gain.gain
            X = np.repeat(region.query[None], len(gain.codes), axis=0)
            X[:, j] = gain.codes
            units = region.units(X)[:, j]
        else:
            moves = np.array([side.sign * side.last for side in gain.sides])
            gains = sign * gain.slope * moves
            units = np.abs(moves) * float(region.weight[j] / region.scale[j])
        is_useful = gains > 0.0
        if not is_useful.any():
            return 0.0, 0.0
        return float((units[is_useful] / gains[is_useful]).min()), float(gains.max())


def make_linear_menu(
    form: LinearModel,
    region: Region,
    accepted: Intervals,
    work: Work,
    sizes: Sequence[int],
    reaches: HitTest,
) -> list[MenuEntry]:
    """Return which sets of features reach a target, small sets first.

    Parameters
    ----------
    form : LinearModel
        The model.
    region : Region
        The rows that are allowed.
    accepted : Intervals
        Sums that reach the target.
    work : Work
        What limits the work of all sets together.
    sizes : sequence of int
        The numbers of features in a set.
    reaches : callable
        Returns which rows of codes reach the target, by the model itself.

    Returns
    -------
    list of MenuEntry
        All single features that may move; sets of several only from features that matter to the
        model or to a rule.

    Raises
    ------
    NoProof
        If the model or the region can't be written as a mixed-integer linear program.
    """
    parts = take_apart(form, region)
    sets = _LinearSets(form, region, accepted, parts, work, reaches)
    features = [each.feature for each in parts.gains]
    return fill_menu(region, features, sizes, reaches, sets.search)
