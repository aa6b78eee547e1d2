"""The claims of Section 4 on taxi trips, judged from the numbers of Table 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from experiments import taxi
from experiments.claims import Claim, bootstrap, exactly, fact

BUDGET = 200
TOLERANCE = 0.05  # the library's default; the paper's own results miss by up to 4.5 %
MAIN = "main"  # the first variant
MAIN_ROUNDS = 300  # nearest to the paper, see `rounds`
DEFAULT_ROUNDS = 100  # LightGBM's default
# target in per cent, l0 bound, the paper's changes and result
PAPER: tuple[tuple[int, int | None, tuple[float, ...], float], ...] = (
    (20, 1, (0, 0, 0, 2.16), 19.6),
    (20, 2, (0, 2, 0, 1.12), 19.5),
    (20, 3, (0, 1, -1, 1.18), 19.9),
    (20, 4, (2, -2, 1, 0.92), 20.9),
    (10, 3, (0, 0, 0, -0.31), 10.1),
    (50, 3, (0, 1, -1, 2.45), 50.0),
    (100, 3, (2, 2, 0, 3.67), 56.7),
    (100, None, (2, 2, 1, 3.89), 57.9),
)


def claims(result: dict[str, Any]) -> list[Claim]:
    """Return the claims of Section 4 and Table 2 on taxi trips."""
    return [
        _reached(result),
        _highest(result),
        _impossible(result),
        _best_guess(result),
        _sparsity(result),
        _leading(result),
        _in_all(result),
        _passengers(result),
        _shorter(result),
        _nine(result),
        _eleven(result),
        _brunch(result),
    ]


def _answers(result: dict[str, Any], least: int, most: int) -> list[list[dict[str, Any]]]:
    """Return the answers of the main table, question by question, to targets in this range."""
    rows = result["variants"][MAIN]["rows"]
    return [row["answers"] for row in rows if least <= row["percent"] <= most]


def _trips(result: dict[str, Any], key: str) -> Array:
    """Return one figure per trip of the same kind, where it is defined."""
    return np.array([t[key] for t in result["same_kind"] if t[key] is not None], dtype=float)


def _reached(result: dict[str, Any]) -> Claim:
    rows = [row for row in result["variants"][MAIN]["rows"] if row["percent"] <= 50]
    shares = [np.mean([a["status"] == "reached" for a in row["answers"]]) for row in rows]
    can = sum(row["brute"]["satisfiable"] for row in rows)
    share = bootstrap(shares)
    return Claim(
        "taxi.reached",
        "Section 4, Table 2",
        "+10 %, +20 % and +50 % are reached at every ℓ0 bound asked for",
        f"{share.text('.2f')} of the searches end within {TOLERANCE:.0%} of the wanted change "
        f"({len(rows)} questions, {result['seeds']} seeds); reached is 0.8",
        share.less(0.8),
        f"the least by question: {min(shares):.2f}; {can} of these can be reached by brute force",
    )


def _highest(result: dict[str, Any]) -> Claim:
    rows = result["variants"][MAIN]["rows"][-2:]
    theirs = [row[3] for row in PAPER[-2:]]
    ours = [row["brute"]["percent"] for row in rows]
    margin = exactly(2.0 - _miss(theirs, ours)).spanning(
        *(exactly(2.0 - _miss(theirs, row["highest"][2:])) for row in result["rounds"])
    )
    by_rounds = "; ".join(
        f"{row['rounds']} rounds {row['highest'][2]:+.1f} %, {row['highest'][3]:+.1f} %"
        for row in result["rounds"]
    )
    return Claim(
        "taxi.highest",
        "Section 4, Table 2",
        f"+100 % ends at {theirs[0]:+.1f} % (ℓ0 ≤ 3) and {theirs[1]:+.1f} % (no bound)",
        f"brute force: {ours[0]:+.1f} % and {ours[1]:+.1f} %; the same is within 2 points",
        margin,
        f"decided by the number of boosting rounds, which the paper does not give: {by_rounds}",
    )


def _miss(theirs: Sequence[float], ours: Sequence[float]) -> float:
    """Return the larger error of two figures, in percentage points."""
    return max(abs(a - b) for a, b in zip(theirs, ours, strict=True))


def _impossible(result: dict[str, Any]) -> Claim:
    high = result["variants"][MAIN]["reachable_percent"][1]
    count = int((_trips(result, "highest") < 95.0).sum())
    return Claim(
        "taxi.impossible",
        "Section 4",
        "even without a bound +100 % can't be reached; brute force confirms it",
        f"the highest that brute force reaches is {high:+.1f} %; reached would be +95 %",
        exactly(95.0 - high),
        f"so for {count} of {len(result['same_kind'])} trips of the same kind; per cent of the "
        "logarithm, as the paper's own figures show",
    )


def _best_guess(result: dict[str, Any]) -> Claim:
    shares = [r["share"] for r in result["variants"][MAIN]["rows"] if r["percent"] == 100]
    share = bootstrap(np.mean(shares, axis=0))
    return Claim(
        "taxi.best-guess",
        "Section 4",
        'for a target out of reach Bayes-CFX yields a global "best guess"',
        f"its potential is {share.text('.3f')} of brute force's best (interval over seeds); a best "
        "guess is 0.9",
        share.less(0.9),
        f"both +100 % questions, {result['seeds']} seeds, at most {BUDGET} calls",
    )


def _sparsity(result: dict[str, Any]) -> Claim:
    kept = [
        sum(move != 0.0 for move in answer["moves"]) <= (row["bound"] or len(taxi.FREE))
        for part in result["variants"].values()
        for row in part["rows"]
        for answer in row["answers"]
    ]
    return Claim(
        "taxi.sparsity",
        "Section 4, Table 2",
        "an ℓ0 bound on the changes is kept",
        f"by {sum(kept)} of {len(kept)} answers of all variants",
        fact(all(kept)),
        "counted from the answers",
    )


def _leading(result: dict[str, Any]) -> Claim:
    alone, without = (_trips(result, key) for key in ("distance_alone", "without_distance"))
    lead = bootstrap(alone - without, np.median)
    return Claim(
        "taxi.distance-leading",
        "Section 4",
        '"distance is the leading factor of trip durations"',
        f"alone it raises the output by {lead.text('+.1f')} points more than the other three "
        f"together (median of {len(alone)} trips)",
        lead,
        f"medians: distance {np.median(alone):+.1f} %, the others {np.median(without):+.1f} %",
    )


def _in_all(result: dict[str, Any]) -> Claim:
    answers = [a for mine in _answers(result, 0, 100) for a in mine]
    moved = sum(a["moves"][3] != 0.0 for a in answers)
    room = bootstrap(19.0 - _trips(result, "without_distance"), np.median)
    return Claim(
        "taxi.distance-in-all",
        "Section 4",
        'distance "appears in all counterfactuals regardless of the sparsity constraint"',
        f"without it the highest is {room.text('+.1f')} points below what +20 % needs (median of "
        f"the trips); it moves in {moved} of {len(answers)} of our answers",
        room,
        f"without it the median trip gets {np.median(_trips(result, 'without_distance')):+.1f} %",
    )


def _passengers(result: dict[str, Any]) -> Claim:
    share = bootstrap(_trips(result, "best_moves_passengers"))
    answers = [a for mine in _answers(result, 100, 100) for a in mine]
    moved = sum(a["moves"][0] != 0.0 for a in answers)
    gain = np.median(_trips(result, "with_passengers"))
    return Claim(
        "taxi.passengers",
        "Section 4",
        '"the number of passengers played a consistent role when the target deviation was very '
        'large"',
        f"it moves in the best row of {share.text('.2f')} of the trips, and in {moved} of "
        f"{len(answers)} of our answers to +100 % (all seeds); consistent is more than half",
        share.less(0.5),
        f"though it adds no more than {gain:.1f} points to the highest reachable (median)",
    )


def _shorter(result: dict[str, Any]) -> Claim:
    top = result["variants"][MAIN]["shorter_trip_percent"]
    count = int((_trips(result, "shorter_alone") >= 10.0).sum())
    return Claim(
        "taxi.shorter",
        "Section 4, Table 2",
        "+10 % by a shorter distance alone",
        f"a shorter distance alone raises the output by up to {top:+.1f} %",
        exactly(top - 10.0),
        f"by 10 % or more for {count} of {len(result['same_kind'])} trips of the same kind",
    )


def _nine(result: dict[str, Any]) -> Claim:
    nine = bootstrap(_trips(result, "hour_earlier"))
    return Claim(
        "taxi.nine",
        "Section 4",
        "counterfactuals at 9 am tend to be more expensive",
        f"{nine.text('+.2f')} points against 10 am, all else equal (mean over all combinations and "
        f"{len(result['same_kind'])} trips)",
        nine,
        "the model's hour, with the minute of the day following it",
    )


def _eleven(result: dict[str, Any]) -> Claim:
    more = bootstrap(_trips(result, "passengers_later"))
    return Claim(
        "taxi.eleven",
        "Section 4",
        "counterfactuals at 11 am correlate with more passengers",
        f"grid rows that hit a target have {more.text('+.3f')} more passengers at 11 am than at "
        "other hours",
        more,
        "the paper sees it in two rows of its table",
    )


def _brunch(result: dict[str, Any]) -> Claim:
    found = result["passengers"]
    more = bootstrap(found["saturday_11"], resamples=1_000).less(found["weekdays_10"])
    return Claim(
        "taxi.brunch",
        "Section 4",
        "social trips, on Saturday at 11 am, have more passengers than business trips",
        f"{more.text('+.2f')} passengers more than on weekdays at 10 am, in the data",
        more,
        f"{len(found['saturday_11'])} trips on Saturdays at 11 am",
    )
