"""Allowed rows that nobody has evaluated yet, at random."""

from __future__ import annotations

from collections.abc import Iterator

from bayescfx.arrays import Array, row_keys
from bayescfx.search.question import Question
from bayescfx.space.sampling import sample

_POOL = 256  # rows drawn at once
_LISTED = 100_000  # finite regions of at most this size are listed when draws bring nothing new
_PATIENCE = 8  # pools without a new row after which any other region counts as exhausted


def fresh_rows(question: Question) -> Iterator[Array]:
    """Yield codes ``(d,)`` of allowed rows that are not known, each once, in random order.

    Ends when the region has no more of them: for certain on a finite region that can be listed,
    after some thousand vain draws on any other.

    Parameters
    ----------
    question : Question
        Region, what is known, and the random generator.

    Raises
    ------
    OutOfTime
        If the deadline passes between two pools of draws.
    """
    region, known = question.region, question.account.evaluator.known
    seen: set[bytes] = set()

    def new(rows: Array) -> Iterator[Array]:
        for row, key in zip(rows, row_keys(rows), strict=True):
            if key not in seen and key not in known.index:
                seen.add(key)
                yield row

    vain = 0
    while vain < _PATIENCE:
        question.deadline.check()
        before = len(seen)
        yield from new(sample(region, _POOL, question.rng))
        if len(seen) > before:
            vain = 0
            continue
        everything = region.enumerate(_LISTED)
        if everything is not None:
            yield from new(everything[question.rng.permutation(len(everything))])
            return
        vain += 1
