"""The evaluator: no row is scored twice, and the budget is exact."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescfx.arrays import Array
from bayescfx.data import Categorical, Integer, Real
from bayescfx.deadline import Deadline, limited_to
from bayescfx.errors import EvaluationsError, ModelError
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Account, Evaluator, OnFault, Stop
from bayescfx.models.model import Model, as_model
from bayescfx.space.region import Region
from bayescfx.space.space import Space

SPACE = Space({"a": Integer(0, 100), "x": Real(-1.0, 1.0), "c": Categorical(["p", "q"])})
SCHEMA = SPACE.schema


def below(top: float = 1000) -> Region:
    """Return the region of rows with `a` below a number."""
    return SPACE.between({"a": (0, top - 1)}).around({"a": 0, "x": 0.0, "c": "p"})


class Counting:
    """A model that counts rows, modifies its input, and fails for given values."""

    def __init__(self, fail: set[int] | None = None, nan: set[int] | None = None) -> None:
        self.fail = fail or set()
        self.nan = nan or set()
        self.calls: list[list[int]] = []

    @property
    def rows(self) -> int:
        return sum(len(call) for call in self.calls)

    def __call__(self, frame: pd.DataFrame) -> Array:
        a = frame["a"].tolist()
        self.calls.append(a)
        y = frame["a"].to_numpy() + frame["x"].fillna(0.0).to_numpy()
        frame["a"] = -1
        if self.fail & set(a):
            raise ZeroDivisionError("bad row")
        return np.where(np.isin(a, list(self.nan)), np.nan, y).astype(float)


def codes(*a: float) -> Array:
    return np.array([[value, 0.25, 0.0] for value in a])


def start(
    model: Any, budget: int = 100, on_fault: OnFault = "raise", known: Evaluations | None = None
) -> Account:
    evaluator = Evaluator(as_model(model), SCHEMA, known or Evaluations(), on_fault=on_fault)
    return Account(evaluator, below(), budget)


def outputs_inside(account: Account) -> list[float]:
    found: list[float] = inside(account)[1].tolist()
    return found


def inside(account: Account) -> tuple[Array, Array]:
    known = account.evaluator.known
    places = np.arange(len(known))
    X, y = known.take(places)
    return known.take(places[account.scored(places, X, y) & account.region.contains(X)])


def test_each_row_is_scored_once_and_each_batch_in_one_call() -> None:
    model = Counting()
    account = start(model)
    assert account.evaluate(codes(1, 2, 1, 3, 2)).tolist() == [1.25, 2.25, 1.25, 3.25, 2.25]
    assert account.evaluate(codes(3, 4, 1)).tolist() == [3.25, 4.25, 1.25]
    assert model.calls == [[1, 2, 3], [4]]
    assert account.spent == 4
    assert account.left == 96
    assert account.spent == 4
    assert account.paid == [0, 1, 2, 3]


def test_known_rows_are_collected_once_and_read_only() -> None:
    evaluator = Evaluator(as_model(Counting()), SCHEMA, Evaluations())
    account = Account(evaluator, below(), 10)
    account.evaluate(codes(1, 2, 3))
    places = np.array([0, 2])
    X, y = evaluator.known.take(places)
    assert evaluator.known.take(places)[0] is X
    assert X[:, 0].tolist() == [1, 3]
    assert y.tolist() == [1.25, 3.25]
    with pytest.raises(ValueError, match="read-only"):
        X[0] = 0.0


def test_searches_of_one_call_share_what_was_known_before() -> None:
    model = Counting()
    first = start(model)
    first.evaluate(codes(1, 2, 3))
    store = first.evaluator.evaluations
    past = store.begin()
    one, two = (Evaluator(as_model(model), SCHEMA, store, past) for _ in range(2))
    assert one.known.older_index is two.known.older_index
    assert past.known(SCHEMA, faults=False) is past.known(SCHEMA, faults=False)
    assert len(pickle.dumps(past)) == len(pickle.dumps(store.begin()))  # codes do not travel
    account = Account(one, below(), 10)
    account.evaluate(codes(2, 4))
    assert model.calls == [[1, 2, 3], [4]]
    assert (len(one.known), len(two.known)) == (4, 3)
    assert one.known.holds(codes(1, 4, 5)).tolist() == [True, True, False]
    assert two.known.holds(codes(1, 4, 5)).tolist() == [True, False, False]
    X, y = one.known.take(np.array([3, 0]))
    assert X[:, 0].tolist() == [4, 1]
    assert y.tolist() == [4.25, 1.25]
    assert [begin for begin, _, _ in one.known.parts(1)] == [1, 3]
    assert np.concatenate(account.asked).tolist() == [1, 3]


def test_nothing_is_sent_for_no_rows() -> None:
    model = Counting()
    assert start(model).evaluate(np.empty((0, 3))).shape == (0,)
    assert model.calls == []


def test_changes_of_the_model_to_its_input_are_not_recorded() -> None:
    account = start(Counting())
    account.evaluate(codes(1, 2))
    assert account.evaluator.evaluations.to_frame()["a"].tolist() == [1, 2]


def test_missing_cells_and_negative_zero_are_the_same_row() -> None:
    account = start(Counting())
    account.evaluate(np.array([[1.0, np.nan, 0.0], [2.0, 0.0, 0.0]]))
    account.evaluate(np.array([[1.0, -np.nan, 0.0], [2.0, -0.0, -0.0]]))
    assert account.spent == 2


def test_the_budget_cuts_a_batch_and_keeps_what_was_scored() -> None:
    model = Counting()
    account = start(model, budget=3)
    account.evaluate(codes(1))
    with pytest.raises(Stop) as caught:
        account.evaluate(codes(1, 2, 3, 4, 5))
    assert caught.value.stopped == "budget"
    assert caught.value.y[:3].tolist() == [1.25, 2.25, 3.25]
    assert np.isnan(caught.value.y[3:]).all()
    assert model.calls == [[1], [2, 3]]
    assert account.left == 0
    assert account.evaluate(codes(3, 2)).tolist() == [3.25, 2.25]
    with pytest.raises(Stop):
        account.evaluate(codes(9))
    assert model.rows == 3


def test_a_batch_that_just_fits_does_not_stop() -> None:
    account = start(Counting(), budget=2)
    assert account.evaluate(codes(1, 2)).tolist() == [1.25, 2.25]


def test_after_the_deadline_only_known_rows_are_answered() -> None:
    model = Counting()
    evaluator = Evaluator(as_model(model), SCHEMA, Evaluations())
    account = Account(evaluator, below(), 10)
    account.evaluate(codes(1))
    with limited_to(Deadline.after(0)):
        assert account.evaluate(codes(1)).tolist() == [1.25]
        with pytest.raises(Stop) as caught:
            account.evaluate(codes(1, 2))
    assert caught.value.stopped == "timeout"
    assert caught.value.y[0] == 1.25
    assert model.rows == 1


def test_earlier_evaluations_cost_nothing_and_other_rows_are_ignored() -> None:
    frame = pd.DataFrame(
        {
            "a": [1, 2, 3, 4, 5],
            "x": 0.25,
            "c": ["p", "other", "p", "q", "strange"],
        }
    )
    known = Evaluations(frame, [10.0, 20.0, 30.0, 40.0, 50.0])
    model = Counting()
    account = start(model, known=known)
    assert account.evaluate(codes(1, 3)).tolist() == [10.0, 30.0]
    assert account.spent == 0
    assert outputs_inside(account) == [10.0, 30.0, 40.0]
    assert account.evaluate(codes(2)).tolist() == [2.25]
    assert len(known) == 6


def test_faults_raise_with_everything_scored_so_far_attached() -> None:
    account = start(Counting(nan={3}))
    account.evaluate(codes(1))
    with pytest.raises(ModelError, match=r"`model` returned nan for {'a': 3, 'x': 0.25") as caught:
        account.evaluate(codes(2, 3, 4))
    assert caught.value.evaluations.to_frame()["a"].tolist() == [1, 2, 4]  # type: ignore[attr-defined]  # attached to any error
    assert account.spent == 4
    assert outputs_inside(account) == [1.25, 2.25, 4.25]


def test_exceptions_of_the_model_carry_the_evaluations_too() -> None:
    account = start(Counting(fail={3}))
    account.evaluate(codes(1))
    with pytest.raises(ZeroDivisionError, match="bad row") as caught:
        account.evaluate(codes(3))
    assert vars(caught.value)["evaluations"].outputs.tolist() == [1.25]
    assert caught.value.__notes__ == ["while evaluating row {'a': 3, 'x': 0.25, 'c': 'p'}"]


def test_a_failed_row_is_scored_again() -> None:
    model = Counting(nan={3})
    skipped = start(model, on_fault="skip")
    assert np.isnan(skipped.evaluate(codes(3))).all()
    model.nan = set()
    known = skipped.evaluator.evaluations
    assert np.isnan(known.outputs).all()
    assert start(model, known=known).evaluate(codes(3)).tolist() == [3.25]


def test_skipped_faults_are_nan_and_never_scored_again() -> None:
    model = Counting(nan={2}, fail={5})
    account = start(model, on_fault="skip")
    assert account.evaluate(codes(1, 2, 3))[[0, 2]].tolist() == [1.25, 3.25]
    assert model.calls == [[1, 2, 3]]
    y = account.evaluate(codes(2, 4, 5, 6))
    assert np.isnan(y).tolist() == [True, False, True, False]
    # The batch failed, so each of its rows was sent and counted once more.
    assert model.calls == [[1, 2, 3], [4, 5, 6], [4], [5], [6]]
    assert account.spent == model.rows == 9
    assert np.isnan(account.evaluate(codes(2, 5))).all()
    assert model.rows == 9
    assert outputs_inside(account) == [1.25, 3.25, 4.25, 6.25]
    assert inside(account)[0].shape == (4, 3)
    assert outputs_inside(account) == [1.25, 3.25, 4.25, 6.25]
    assert account.evaluator.faults[0].startswith("`model` returned nan for {'a': 2")
    assert account.evaluator.faults[1:] == ["ZeroDivisionError: bad row"]
    again = start(model, on_fault="skip", known=account.evaluator.evaluations)
    again.evaluate(codes(1, 2, 5, 6))
    assert model.rows == 9


def test_the_search_for_the_failing_row_stays_within_the_budget() -> None:
    model = Counting(fail={5})
    account = start(model, budget=5, on_fault="skip")
    with pytest.raises(Stop) as caught:
        account.evaluate(codes(4, 5, 6))
    assert caught.value.stopped == "budget"
    assert caught.value.y[0] == 4.25
    assert model.rows == account.spent == 5


def test_ctrl_c_in_the_model_passes_through() -> None:
    def interrupted(frame: pd.DataFrame) -> Array:
        raise KeyboardInterrupt

    account = start(interrupted, on_fault="skip")
    with pytest.raises(KeyboardInterrupt):
        account.evaluate(codes(1, 2))
    assert account.evaluator.faults == []


def test_many_questions_share_one_call_and_the_first_is_charged() -> None:
    model = Counting()
    evaluator = Evaluator(as_model(model), SCHEMA, Evaluations())
    one = Account(evaluator, below(3), 3)
    two = Account(evaluator, below(), 3)
    first, second = evaluator.evaluate_many([(one, codes(1, 2)), (two, codes(2, 3, 4))])
    assert model.calls == [[1, 2, 3, 4]]
    assert first.y.tolist() == [1.25, 2.25]
    assert second.y.tolist() == [2.25, 3.25, 4.25]
    assert (one.spent, two.spent) == (2, 2)
    first, second = evaluator.evaluate_many([(one, codes(7, 8)), (two, codes(9))])
    assert (first.stopped, second.stopped) == ("budget", None)
    assert first.y[0] == 7.25
    assert np.isnan(first.y[1])
    assert model.calls[1:] == [[7, 9]]
    assert outputs_inside(one) == [1.25, 2.25]
    assert outputs_inside(two) == [1.25, 2.25, 3.25, 4.25, 7.25, 9.25]
    assert evaluator.known.take(np.array(one.paid))[0][:, 0].tolist() == [1, 2, 7]


def test_a_row_of_another_question_is_not_lost_when_the_batch_is_cut() -> None:
    evaluator = Evaluator(as_model(Counting()), SCHEMA, Evaluations())
    poor = Account(evaluator, below(), 0)
    rich = Account(evaluator, below(), 5)
    first, second = evaluator.evaluate_many([(poor, codes(1)), (rich, codes(1))])
    assert first.stopped is None
    assert first.y.tolist() == second.y.tolist() == [1.25]
    assert (poor.spent, rich.spent) == (0, 1)


def test_a_question_with_budget_is_charged_if_the_first_has_none() -> None:
    model = Counting(fail={2})
    evaluator = Evaluator(as_model(model), SCHEMA, Evaluations(), on_fault="skip")
    poor = Account(evaluator, below(), 2)
    rich = Account(evaluator, below(), 5)
    first, second = evaluator.evaluate_many([(poor, codes(2, 1)), (rich, codes(1))])
    assert model.calls == [[2, 1], [1]]
    assert (poor.spent, rich.spent) == (2, 1)
    assert second.y.tolist() == [1.25]
    assert second.stopped is None
    assert first.stopped == "budget"
    assert first.y[1] == 1.25


def test_the_store_grows_past_its_first_size() -> None:
    account = start(Counting(), budget=1000)
    for k in range(10):
        account.evaluate(np.array([[float(i), k / 20, 0.0] for i in range(100)]))
    assert inside(account)[0].shape == (1000, 3)
    assert inside(account)[1][[0, 101, 999]].tolist() == [0.0, 1.05, 99.45]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.integers(0, 12), max_size=8), max_size=8),
    st.integers(0, 15),
    st.sets(st.integers(0, 12), max_size=3),
    st.sets(st.integers(0, 12), max_size=3),
)
def test_the_count_equals_the_rows_of_the_model(
    batches: list[list[int]], budget: int, nan: set[int], fail: set[int]
) -> None:
    model = Counting(nan=nan, fail=fail)
    account = start(model, budget=budget, on_fault="skip")
    for batch in batches:
        try:
            y = account.evaluate(codes(*batch) if batch else np.empty((0, 3)))
        except Stop as stop:
            assert account.left == 0
            y = stop.y
        for a, output in zip(batch, y, strict=True):
            assert np.isnan(output) or output == a + 0.25
    assert model.rows == account.spent <= budget
    answered = [a for call in model.calls for a in call if not set(call) & fail]
    assert len(answered) == len(set(answered))


def test_models_and_stores_are_matched_by_the_evaluator() -> None:
    known = Evaluations(pd.DataFrame({"a": [1]}), [0.0])
    with pytest.raises(EvaluationsError, match="holds rows with the columns a; got a, x, c"):
        start(Counting(), known=known)
    used = Evaluations()
    Evaluator(Model(Counting(), name="SVR"), SCHEMA, used)
    with pytest.raises(EvaluationsError, match="holds outputs of SVR; got Ridge"):
        Evaluator(Model(Counting(), name="Ridge"), SCHEMA, used)
