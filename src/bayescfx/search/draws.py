"""Allowed rows that nobody has evaluated yet, at random."""

from __future__ import annotations

from collections.abc import Iterator

from bayescfx.arrays import Array, row_keys
from bayescfx.search.question import Question
from bayescfx.space.sampling import sample


def fresh_rows(question: Question) -> Iterator[Array]:
    """Yield codes ``(d,)`` of allowed rows that are not known, each once, in random order.

    Ends when the region has no more of them: for certain on a finite region that can be listed,
    after eight vain pools of draws on any other. Raises `OutOfTime` between two pools.
    """
    region, known = question.region, question.account.evaluator.known
    seen: set[bytes] = set()

    def new(rows: Array) -> Iterator[Array]:
        for row, key in zip(rows, row_keys(rows), strict=True):
            if key not in seen and key not in known.index:
                seen.add(key)
                yield row

    vain = 0
    while vain < 8:
        question.deadline.check()
        before = len(seen)
        yield from new(sample(region, 256, question.rng))
        if len(seen) > before:
            vain = 0
            continue
        everything = region.enumerate(100_000)
        if everything is not None:
            yield from new(everything[question.rng.permutation(len(everything))])
            return
        vain += 1
