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

    The whole was tuned on `benchmarks/propose.py` (value found against the known maximum, and time
    per proposal); no single number has its own measurement. All are set by judgement and watched by
    that benchmark and `make quality` (2026-11-18).
    """

    # Regions that are listed completely.
    listed_points: int = 8192
    listed_at_a_glance: int = 1024
    per_avoided_row: int = 4  # a region may be larger by so many points for each row to avoid
    last_samples: int = 4096  # random rows where nothing new was found
    chunk: int = 4096  # rows per call of the function

    # Values of one feature.
    listed_values: int = 32  # longer ordered grids are searched by doubling steps
    jumps: int = 5  # places tried along a continuous coordinate or a long grid

    # First candidates.
    candidates: int = 512
    candidates_at_a_glance: int = 384
    candidates_without_slope: int = 1280  # where no gradient helps afterwards
    supports: int = 300  # at most so many sets of features are all tried
    start_share: int = 3  # one candidate in so many is a change of a start
    starts: int = 8  # of which the best are changed
    long_changes: float = 0.6  # share of changes that are not shortened
    shortest: float = 0.02  # the shortest share of the others
    least_allowed: float = 0.5  # below this share of allowed candidates, rows are sampled
    beam: int = 12  # sets of features that are kept of each size

    # The tournament.
    at_once: int = 3072  # moves per call
    wide: int = 40  # with more continuous features, fewer rows climb
    seeds: int = 256  # rows that enter
    apart: float = 0.2  # rows of a round differ by this share of the ranges
    finalists: int = 4  # one row in so many of the last round climbs to the top
    last_calls: int = 12
    last_rounds: int = 8
    risen: float = 1e-5  # a rise, as a share of the spread of the first values
    tolerance: float = 3e-6  # of an ascent, the same
    derivative_step: float = 1e-6  # of derived columns, as a share of the range
    hair: float = 1e-8  # relative distance below which a coordinate is at the query's

    # The points that are returned.
    gaps: tuple[float, ...] = (0.2, 0.05, 0.01, 0.0)  # how far apart: first far, then closer
    gap_at_a_glance: float = 0.1
    pool: int = 512  # rows among which several points are chosen, and so many for each:
    pool_per_point: int = 16
    glances: int = 4  # maxima that a glance refines; and rows per point that it chooses from


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
