"""Questions about a plane over the unit cube, or about any other model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.data import Real
from bayescfx.deadline import NEVER
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Evaluator
from bayescfx.models.model import Link, Model
from bayescfx.potentials.targets import as_target
from bayescfx.search.question import Question, RoundSearch, Search, Stopped
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space
from bayescfx.surrogate.fit import Surrogate, SurrogateSettings, fit_surrogate

UNIT = {name: Real(0, 1) for name in "abcd"}
MIDDLE = dict.fromkeys("abcd", 0.5)


def plane(frame: pd.DataFrame) -> Any:
    """Return a + 2 b + 3 c, between 0 and 6."""
    return frame["a"] + 2 * frame["b"] + 3 * frame["c"]


def asked(
    space: Space,
    target: object,
    *,
    f: Callable[[Any], Any] = plane,
    query: Any = MIDDLE,
    rows: int = 30,
    budget: int = 80,
    link: Link | None = None,
) -> Question:
    """Return a question whose region is known at the query and at some random rows."""
    region = space.around(query)
    rng = np.random.default_rng(1)
    evaluator = Evaluator(Model(f, link=link), region.schema, Evaluations())
    question = Question(evaluator, region, budget, rng)
    output = float(question.evaluate(region.query[None])[0])
    if rows:
        question.evaluate(sample(region, rows, rng))
    question.begin(as_target(target), output)
    return question


def drive(search: Search, question: Question) -> Stopped:
    """Run a search alone."""
    if not isinstance(search, RoundSearch):
        return search.run(question)
    rounds = search.rounds(question)
    try:
        X = next(rounds)
        while True:
            X = rounds.send(question.evaluate(X))
    except StopIteration as end:
        stopped: Stopped = end.value
        return stopped


def believed(question: Question) -> Surrogate:
    y = question.to_surrogate(question.y)
    return fit_surrogate(SurrogateSettings(), question.region, question.X, y, None, NEVER)
