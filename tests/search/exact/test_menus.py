from __future__ import annotations

import numpy as np
import pytest

from bayescfx.search.exact.branching import Work
from bayescfx.search.exact.menus import make_menu
from tests.search.exact.certificate_problems import SLACK, make_problem


@pytest.mark.parametrize("uses_model", [False, True])
@pytest.mark.parametrize("seed", range(7))
def test_costs_equal_brute_force(seed: int, uses_model: bool) -> None:
    small = make_problem(seed)
    region = small.region
    menu = make_menu(
        small.table,
        region,
        small.accepted,
        SLACK,
        sizes=(1, 2, 3),
        reaches=small.reaches if uses_model else None,
    )
    most = region.max_changes or 3
    singles = [entry.features for entry in menu if len(entry.features) == 1]
    assert singles == [(j,) for j in region.free.tolist()]
    assert max((len(entry.features) for entry in menu), default=0) <= most
    changes = region.changes(small.rows)
    for entry in menu:
        others = np.setdiff1d(np.arange(len(region.query)), entry.features)
        is_inside = ~changes[:, others].any(axis=1)
        best = small.costs[is_inside].min(initial=np.inf)
        assert entry.is_proven
        if np.isinf(best):
            assert entry.status == "cannot"
            assert entry.cost is None
            assert entry.row is None
            continue
        assert entry.status == "reaches"
        assert entry.cost == pytest.approx(best, rel=1e-8)
        assert entry.row is not None
        assert small.reaches(entry.row[None]).all()
        assert not region.changes(entry.row[None])[0, others].any()


def test_without_work_nothing_is_claimed() -> None:
    small = make_problem(0)
    menu = make_menu(small.table, small.region, small.accepted, SLACK, Work(most=0.0))
    assert menu
    assert {entry.status for entry in menu} == {"unknown"}
    assert not any(entry.is_proven for entry in menu)
