"""The compiled step of the branch and bound gives the results of the one in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor

import bayescfx as cfx
from bayescfx.arrays import Array
from bayescfx.models.readers import TreeEnsemble
from bayescfx.search.exact import acceleration, branching, steps
from bayescfx.search.exact.acceleration import Loader
from bayescfx.search.exact.branching import Branching, Work
from bayescfx.search.exact.pool import Boxes, Pool
from bayescfx.search.exact.problem import BoxProblem
from bayescfx.search.exact.prover import Prover, prove, raw_intervals
from tests.search.exact.random_questions import RandomQuestion, make_question

compiled = pytest.importorskip("bayescfx.search.exact.compiled", exc_type=ImportError)
SEEDS = range(12)


class Recorder:
    """Steps of one module, whose results are kept."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.results: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            result = getattr(self.module, name)(*arguments, **options)
            self.results.append((name, _copies(result)))
            return result

        return call


def _copies(result: Any) -> list[Array]:
    """Return copies of the arrays of a result; keys and candidates are set later."""
    if isinstance(result, tuple):
        return [array for part in result for array in _copies(part)]
    if isinstance(result, Boxes):
        parts = (result.low, result.high, result.mask, result.spread, result.is_new)
        return [np.array(part) for part in parts]
    if isinstance(result, steps.BoxScores):
        return [result.corner.copy(), result.low.copy(), result.high.copy()]
    return [np.array(result)]


def run(
    monkeypatch: pytest.MonkeyPatch, module: Any, question: RandomQuestion, most: float = np.inf
) -> tuple[Any, list[Array], list[Any]]:
    """Return the proof, the rows that were asked for, and the results of each step."""
    recorder = Recorder(module)
    monkeypatch.setattr(acceleration.LOADER, "find_steps", lambda problem: recorder)
    X = question.region.query[None]
    scored = X, question.outputs(X)
    search = prove(question, Prover(question.model), scored, np.inf, Work(most))
    asked = []
    try:
        rows = next(search)
        while True:
            asked.append(rows)
            rows = search.send(question.outputs(rows))
    except StopIteration as end:
        return end.value, asked, recorder.results


@pytest.mark.parametrize("seed", SEEDS)
def test_results_are_the_same_to_the_last_bit(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    question = make_question(seed)
    if not isinstance(question.reading.form, TreeEnsemble) or len(question.reading.form.base) > 1:
        pytest.skip("the compiled step is for one sum of trees")
    expected = run(monkeypatch, steps, question)
    found = run(monkeypatch, compiled, question)
    assert found[0] == expected[0]
    assert len(found[1]) == len(expected[1])
    for rows, other in zip(found[1], expected[1], strict=True):
        np.testing.assert_array_equal(rows, other)
    for (name, arrays), (other_name, others) in zip(expected[2], found[2], strict=True):
        assert name == other_name
        for array, other in zip(arrays, others, strict=True):
            np.testing.assert_array_equal(array, other)
            assert array.dtype == other.dtype


def test_each_function_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled.warm_up()
    for seed in (0, 1, 2, 5):
        question = make_question(seed)
        if isinstance(question.reading.form, TreeEnsemble):
            run(monkeypatch, compiled, question)
    for name in ("_choose_cuts", "_halve", "_bound"):
        assert len(getattr(compiled, name).signatures) == 1


def problem_of(seed: int) -> BoxProblem:
    question = make_question(seed)
    form = question.reading.form
    assert isinstance(form, TreeEnsemble)
    table = Prover(question.model).table(question.region, form)
    return BoxProblem(table, question.region, raw_intervals(form, question.acceptance, 0.0))


@pytest.fixture
def loader(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loader]:
    loader = Loader()
    monkeypatch.setattr(acceleration, "_WORK_BEFORE_LOADING", 100.0)
    yield loader
    if loader._thread is not None:
        loader._thread.join()


def test_the_compiled_step_is_loaded_after_some_work(loader: Loader) -> None:
    problem = problem_of(0)
    loader.note_work(60.0)
    assert loader._thread is None
    assert loader.find_steps(problem) is steps
    loader.note_work(60.0)
    assert loader._thread is not None
    loader._thread.join()
    assert loader.find_steps(problem) is compiled


def test_other_norms_stay_with_numpy(loader: Loader) -> None:
    loader.load()
    problem = problem_of(0)
    assert loader.find_steps(problem) is compiled
    object.__setattr__(problem.costs, "norm", 2.0)
    assert loader.find_steps(problem) is steps


def test_without_numba_the_step_is_numpys(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceleration, "find_spec", lambda name: None)
    loader.load()
    assert loader.find_steps(problem_of(0)) is steps


def test_a_broken_numba_is_a_warning(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> ModuleType:
        raise ImportError("numba needs another NumPy")

    monkeypatch.setattr(acceleration, "import_module", fail)
    loader.load()
    problem = problem_of(0)
    with pytest.warns(UserWarning, match="numba can't be used.*numba needs another NumPy"):
        assert loader.find_steps(problem) is steps
    assert loader.find_steps(problem) is steps  # warned once


def test_the_pool_gives_boxes_by_their_keys() -> None:
    rng = np.random.default_rng(0)
    whole = Branching(problem_of(0)).whole()
    pool = Pool(whole.take(np.empty(0, dtype=np.intp)))
    waiting: list[float] = []
    for _ in range(300):
        boxes = whole.take(np.zeros(rng.integers(1, 60), dtype=np.intp))
        boxes.key = rng.integers(0, 500, len(boxes)) / 7.0
        boxes.cost = boxes.key + 1.0
        pool.push(boxes)
        waiting = sorted(waiting + boxes.key.tolist())
        assert len(pool) == len(waiting)
        assert pool.least_key == waiting[0]
        n = int(rng.integers(1, 40))
        popped = pool.pop(n)
        assert popped.key.tolist() == waiting[: len(popped)]
        assert (popped.cost == popped.key + 1.0).all()
        assert len(popped) == min(n, len(waiting))
        waiting = waiting[len(popped) :]
    assert sorted(pool.costs - 1.0) == pytest.approx(waiting)


def test_a_proof_that_needs_too_much_memory_ends_with_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(branching, "TUNING", replace(branching.TUNING, most_bytes=10.0))
    proofs = [run(monkeypatch, steps, make_question(seed))[0] for seed in SEEDS]
    cut_short = [proof for proof in proofs if proof.conclusion == "bounded"]
    assert cut_short
    assert {proof.reason for proof in cut_short} == {"the proof needs more than 1 GB of memory"}


def test_a_model_that_can_not_change_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceleration.LOADER, "find_steps", lambda problem: compiled)
    data = pd.DataFrame({"a": np.arange(40), "b": np.arange(40) % 7})
    model = DecisionTreeRegressor(max_depth=2, random_state=0).fit(data, data.a * 1.0)
    space = cfx.Space.from_data(data).allow("b")
    answer = cfx.explain(model, data.iloc[5], space, "+50%", method="exact", rng=0)
    assert answer.status == "unreachable"
