"""Numbers of the proposal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

Effort: TypeAlias = Literal["thorough", "brief", "swift", "glance"]


class Round(NamedTuple):
    """One round of the tournament."""

    rows: int  # that are still in it
    calls: int  # of the function, for the ascent of each


@dataclass(frozen=True)
class ProposeTuning:
    """Numbers of the proposal.

    Beside each is what half and double of it change, in per cent of the evaluations
    (`python -m benchmarks.tuning --only propose`: 9 acquisitions with four efforts, 2026-11-18);
    0 / 0 is no other proposal. The values that are reached change by less than the noise, 0.03
    nats, unless stated. *Limit*: bounds work or memory in regions that the benchmark has not.
    """

    # Regions that are listed completely.
    listed_points: int = 8192  # limit; 0 / 0
    listed_at_a_glance: int = 1024  # limit; 0 / 0
    per_avoided_row: int = 4  # limit: a region may be larger by so many points per row to avoid
    last_samples: int = 4096  # limit: random rows where nothing new was found
    chunk: int = 4096  # limit: rows per call of the function

    # Values of one feature.
    listed_values: int = 32  # longer ordered grids are searched by doubling steps; 0 / 0
    jumps: int = 5  # places tried along a continuous coordinate or a long grid; -11 / +16

    # First candidates.
    candidates: int = 512  # -20 / +32
    candidates_at_a_glance: int = 384  # -8 / +10
    candidates_without_slope: int = 1280  # where no gradient helps afterwards; not measured
    supports: int = 300  # at most so many sets of features are all tried; +2.6 / 0
    # One candidate in so many is a change of a start; 0 / 0. Without them 0.26 nats are lost.
    start_share: int = 3
    starts: int = 8  # of which the best are changed; 0 / 0
    # Share of changes that are not shortened; 0 / 0. With 1, 0.03 nats are lost.
    long_changes: float = 0.6
    shortest: float = 0.02  # the shortest share of the others; 0 / 0
    # Below this share of allowed candidates, rows are sampled; -4 / +3. For narrow rules.
    least_allowed: float = 0.5
    beam: int = 12  # sets of features that are kept of each size; -3 / +3

    # The tournament.
    at_once: int = 3072  # moves per call; -5 / +4
    wide: int = 40  # limit: with more continuous features, fewer rows climb
    seeds: int = 256  # rows that enter; 0 / 0
    # Rows of a round differ by this share of the ranges, so that several points are several maxima;
    # for one point 0 / 0.
    apart: float = 0.2
    finalists: int = 4  # one row in so many of the last round climbs to the top; 0 / 0
    last_calls: int = 12  # 0 / 0
    last_rounds: int = 8  # limit; 0 / 0
    risen: float = 1e-5  # numerical: a rise, as a share of the spread of the first values
    tolerance: float = 3e-6  # numerical: of an ascent, the same
    derivative_step: float = 1e-6  # numerical: of derived columns, as a share of the range
    hair: float = 1e-8  # numerical: distance below which a coordinate is at the query's

    # The points that are returned. For several points only, so not measured.
    gaps: tuple[float, ...] = (0.2, 0.05, 0.01, 0.0)  # how far apart: first far, then closer
    gap_at_a_glance: float = 0.1
    pool: int = 512  # rows among which several points are chosen, and so many for each:
    pool_per_point: int = 16
    glances: int = 4  # maxima that a glance refines; rows per point to choose from; -5 / +8


TUNING = ProposeTuning()

#: Rounds by effort. "sparse" is a thorough search under an l0 bound, which ends at more places;
#: "flat" one without slopes, which only makes moves.
PLANS: dict[str, tuple[Round, ...]] = {
    "thorough": (Round(24, 5), Round(8, 8)),
    "sparse": (Round(24, 5), Round(16, 8)),
    "brief": (Round(12, 4), Round(4, 8)),
    "swift": (Round(8, 5),),
    "glance": (Round(6, 3),),
    "flat": (Round(48, 0), Round(24, 0), Round(16, 0)),
}
