"""From scored codes to answers in the user's own terms."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress, islice
from typing import Any

import numpy as np

from bayescfx.arrays import Array, same_codes
from bayescfx.data.schema import by_feature
from bayescfx.data.tables import Row, rows_of
from bayescfx.deadline import Deadline, limited_to
from bayescfx.errors import OutOfTime
from bayescfx.evaluations.evaluator import Stopped
from bayescfx.explainer.block import Block
from bayescfx.explainer.call_settings import PROOF_WORK, PROOFS_PER_QUERY
from bayescfx.explainer.feature_menu import SIZE, find_menu
from bayescfx.explainer.valid_ranges import Ranges, valid_ranges
from bayescfx.potentials import ClassTarget
from bayescfx.result.answer_text import SAME_COST
from bayescfx.result.assessment import derived_part
from bayescfx.result.binding_constraint import BindingConstraint
from bayescfx.result.counterfactual import OPTIMAL_BEFORE_ROUNDING, Counterfactual
from bayescfx.result.explanation import Explanation, Status
from bayescfx.result.menu import Menu
from bayescfx.result.wording import PREDICTION
from bayescfx.search.chosen_rows import ChosenRows, choose_rows
from bayescfx.search.exact.branching import Work
from bayescfx.search.exact.cells import NoProof
from bayescfx.search.exact.prover import Proof
from bayescfx.search.exact.relaxing import Relaxations, compute_relaxations, is_readable
from bayescfx.search.question import Question
from bayescfx.search.reason import MOST_NAMED, Reason, checked_reasons
from bayescfx.search.turns import CUT_SHORT, Interrupt, one_thread
from bayescfx.search.verdict import UNLIKELY, Conclusion, Verdict, judge
from bayescfx.space.space import Space

#: Scored rows before a verdict is worth its time: a dozen, or a few and two per free feature.
#: Set by judgement; benchmark `verdict`, 2026-11-18.
_ROWS_FOR_VERDICT = 12
_ROWS_FOR_VERDICT_WITH_FEW_FEATURES = 3
_ROWS_PER_FEATURE = 2

#: Why there is no proof of an answer that another method, or a small budget, has led to.
_NOT_TRIED = "only `auto` with a budget for a sweep, and `exact`, prove models that can be read"
#: Per cent of the bound above which a gap says nothing about an answer.
_LARGEST_GAP = 100.0
#: The status of a target that is reached, by whether the answer is an allowed row.
_REACHED: dict[bool, Status] = {True: "reached", False: "best_guess"}


@dataclass(frozen=True, slots=True, eq=False)
class AnswerRow:
    """One row of an answer.

    Parameters
    ----------
    row : Series or ndarray
        The row in the user's columns.
    cells : dict
        Its cells by feature.
    plausibility : float or None
        The share of the data that is less plausible.
    """

    row: Row
    cells: dict[Hashable, Any]
    plausibility: float | None


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Whether a target is reached, and if it is missed what keeps it away."""

    status: Status
    probability: float | None = None  # that an allowed row reaches the target
    reasons: tuple[Reason, ...] = ()  # the binding constraints
    needs_two: bool = False  # whether no single constraint keeps it away
    jump: tuple[float, float] | None = None  # the nearest outputs on either side


def report(
    block: Block, questions: Sequence[Question], unfinished: Stopped, interrupt: Interrupt
) -> dict[int, Explanation]:
    """Return the answers to questions of one evaluator, by position; not to those with an error.

    `unfinished` says why searches have stopped that have no reason of their own. After Ctrl-C,
    answers have no verdict, which may take as long as the search.
    """
    asked = [question for question in questions if question.error is None]
    if not asked:
        return {}
    chosen = [_choose(question) for question in asked]
    lines = _lines(block.space, asked, [rows.X for rows in chosen])
    answers: dict[int, Explanation] = {}
    for question, rows in zip(asked, chosen, strict=True):
        question.stopped = "already met" if question.already_met else question.stopped or unfinished
        own_lines = list(islice(lines, 1 + len(rows.X)))
        make = partial(_answer, block, question, rows, own_lines)
        if unfinished == "fault" or not interrupt.is_requested:
            try:
                answers[question.position] = make()
                continue
            except KeyboardInterrupt:
                interrupt.is_requested = True
        if _lacks_conclusion(question):
            question.stopped = unfinished
        answers[question.position] = make(is_cut_short=True)
    return answers


def _lacks_conclusion(question: Question) -> bool:
    """Return whether it is unknown if the target of a question can be reached."""
    is_answered = question.already_met or question.reached
    is_out_of_reach = question.proof.conclusion == "out of reach"
    return not (is_answered or is_out_of_reach or question.stopped == "exhausted")


def _choose(question: Question) -> ChosenRows:
    """Return the rows of the counterfactuals."""
    if question.already_met or not len(question.y):  # the query itself if no row is allowed
        query = question.region.query[None]
        return ChosenRows(query, np.array([question.output]), query)
    return question.chosen or choose_rows(question)


def _proofs(question: Question, rows: ChosenRows) -> list[str | None]:
    """Return what is proven about each row that is the best of its features, before rounding."""
    proven = {answer.row.tobytes(): answer.cost for answer in question.proven_rows}
    costs = question.region.cost(rows.X).tolist()
    found: list[str | None] = []
    for row, cost in zip(rows.found, costs, strict=True):
        bound = proven.get(row.tobytes())
        found.append(None if bound is None else _optimality(cost, bound))
    return found


def _optimality(cost: float, bound: float) -> str:
    """Return what is proven about a row if no row costs less than the bound, before rounding."""
    return "optimal" if cost <= bound * (1.0 + SAME_COST) else OPTIMAL_BEFORE_ROUNDING


def _ranges(question: Question, X: Array, y: Array) -> list[Ranges | None]:
    """Return the valid ranges of codes ``(k, d)``; None for each if the model was not read."""
    is_unread = question.proof.conclusion is None and question.stopped != "exhausted"
    if question.prover is None or is_unread:
        return [None] * len(X)
    return valid_ranges(question, question.prover, X, y)


def _lines(space: Space, questions: Sequence[Question], chosen: list[Array]) -> Iterator[AnswerRow]:
    """Yield the rows of all answers: for each question the query, then the `chosen` codes."""
    codes: list[Array] = []
    queries: list[int] = []
    for question, X in zip(questions, chosen, strict=True):
        codes += [question.region.query[None], X]
        queries += [question.query_number] * (1 + len(X))
    X = np.concatenate(codes)
    rows = rows_of(questions[0].evaluator.rows(X, np.array(queries)))
    shares: list[float | None] = [None] * len(X)
    if space.sample.plausibility is not None:
        shares = space.sample.plausibility.share(X).tolist()
    cells = by_feature(questions[0].region.schema, rows)
    for row, by_name, share in zip(rows, cells, shares, strict=True):
        yield AnswerRow(row, by_name, share)


def counterfactuals(
    question: Question, rows: ChosenRows, lines: Sequence[AnswerRow]
) -> tuple[Counterfactual, ...]:
    """Return the rows of a question as counterfactuals of the first line."""
    region = question.region
    X = rows.X
    y = rows.y
    query = lines[0].cells
    is_valid = region.contains(X) if question.already_met else question.accepted(y)
    potentials = question.score(y)
    costs = region.cost(X)
    distances = region.distance(X)
    differs = region.changes(X) if not region.derived else ~same_codes(X, region.query)
    ranges = _ranges(question, X, y)
    proofs = _proofs(question, rows)
    found: list[Counterfactual] = []
    for i, line in enumerate(lines[1:]):
        changes: dict[Hashable, tuple[Any, Any]] = {}
        for name in compress(region.names, differs[i]):
            changes[name] = query[name], line.cells[name]
        found.append(
            Counterfactual(
                line.row,
                float(y[i]),
                float(potentials[i]),
                changes,
                float(costs[i]),
                bool(is_valid[i]),
                line.plausibility,
                float(distances[i]),
                ranges[i],
                proofs[i],
                question.evaluator.model.output or PREDICTION.name,
                derived_part(region, changes) if region.derived else {},
            )
        )
    return tuple(found)


def _answer(
    block: Block,
    question: Question,
    rows: ChosenRows,
    lines: Sequence[AnswerRow],
    *,
    is_cut_short: bool = False,
) -> Explanation:
    """Return the answer to a question whose search has stopped, given its counterfactuals.

    If it `is_cut_short`, it has no verdict, no binding constraints and no menu.
    """
    assert question.stopped is not None  # set by `report`
    found = counterfactuals(question, rows, lines)
    is_miss = not (question.already_met or question.reached)
    proof = _proof(question, rows, is_miss)
    if not is_miss:
        found = (replace(found[0], proof=proof[0]), *found[1:])
    outcome = _Outcome(_REACHED[found[0].valid])
    if is_miss:
        outcome = _explain_miss(block, question, is_cut_short)
    return Explanation(
        query=lines[0].row,
        output=question.output,
        target=question.target,
        wanted=question.wanted,
        accepted=question.acceptance,
        status=outcome.status,
        counterfactuals=found,
        stopped=question.stopped,
        reachable=_reachable(question),
        trace=_trace(question),
        evaluations=question.evaluator.evaluations,
        n_evaluations=question.spent,
        space=block.space,
        layout=question.region.schema.layout,
        tolerance=question.tolerance,
        probability_reachable=outcome.probability,
        binding=_binding_constraints(question, outcome.reasons, lines[0].cells),
        no_single_constraint=outcome.needs_two,
        method=", ".join(question.ran) or block.settings.method_name,
        seed=block.settings.seed,
        jump=outcome.jump,
        n_wanted=question.n,
        proof=proof[0],
        bound=proof[1],
        proof_reason=proof[2],
        menu=_menu(block, question) if block.settings.menu and not is_cut_short else None,
        labels=_labels(question, rows.X),
        about=question.evaluator.model.about,
    )


def _labels(question: Question, X: Array) -> tuple[Any, ...]:
    """Return the labels predicted for the query and codes ``(k, d)``, for a target of labels."""
    if not isinstance(question.target, ClassTarget):
        return ()
    rows = question.region.rows(np.vstack([question.region.query, X]))
    return question.evaluator.model.predicted_labels(rows)


def _proof(
    question: Question, rows: ChosenRows, is_miss: bool
) -> tuple[str | None, float | None, str]:
    """Return what is proven, the lower bound on the cost, and why there is no complete proof."""
    proof = question.proof
    if question.already_met:
        return None, None, ""
    cost = float(question.region.cost(rows.X[:1])[0])
    if question.stopped == "exhausted":  # every allowed row was scored
        nearest = question.X[[question.best]]  # before rounding
        least = float(question.region.cost(nearest)[0])
        proof = Proof("out of reach") if is_miss else Proof("optimal", least)
    if proof.conclusion == "out of reach":
        return proof.conclusion, proof.bound, ""
    if proof.conclusion is None or is_miss or not proof.bound:
        return None, proof.bound, proof.reason or _NOT_TRIED
    if proof.conclusion == "optimal":
        return _optimality(cost, proof.bound), proof.bound, ""
    return _gap(cost, proof.bound), proof.bound, proof.reason


def _menu(block: Block, question: Question) -> Menu | None:
    """Return the menu of a question; None if nothing can be proven about it."""
    prover = question.prover
    region = question.region
    if prover is None:
        return None
    work = Work(PROOF_WORK, block.deadline)
    try:
        prover.form(region, region.query[None], np.array([question.output]))
        return find_menu(block.model, prover, region, question.acceptance, SIZE, work)
    except NoProof:  # it can't be read, or is a network
        return None


def _gap(cost: float, bound: float) -> str | None:
    """Return by how much a cost may exceed the lowest one, in words; None if by much."""
    gap = math.ceil(1000.0 * (cost / bound - 1.0)) / 10.0
    return f"within {gap:g} %" if gap <= _LARGEST_GAP else None


def _explain_miss(block: Block, question: Question, is_cut_short: bool) -> _Outcome:
    """Return what a proof or else the surrogate's verdict says about a target not reached."""
    if is_cut_short:
        return _outcome(question, None, (), needs_two=False)
    computed = _compute(block, question)
    reasons = _computed_reasons(computed) or tuple(checked_reasons(question))
    if reasons and question.proof.conclusion == "out of reach":
        return _outcome(question, None, reasons, needs_two=computed.needs_two)
    verdict = _verdict(question, block.deadline)
    if verdict is not None:
        reasons = reasons or tuple(Reason(words, "guess") for words in verdict.binding)
    return _outcome(question, verdict, reasons, needs_two=computed.needs_two)


def _outcome(
    question: Question, verdict: Verdict | None, reasons: tuple[Reason, ...], *, needs_two: bool
) -> _Outcome:
    """Return what is known about a target not reached."""
    probability = None if verdict is None else verdict.probability
    if question.proof.conclusion == "out of reach":
        probability = 0.0
    status = _status(question, verdict)
    return _Outcome(status, probability, reasons, needs_two, _jump(question))


def _compute(block: Block, question: Question) -> Relaxations:
    """Return what the removal of constraints does, if the model can be read and the miss is known.

    It is known after a proof, and if every row was scored.
    """
    is_known = question.stopped == "exhausted" or question.proof.conclusion == "out of reach"
    if question.prover is None or not (is_known and is_readable(question)):
        return Relaxations((), is_complete=False)
    with limited_to(block.deadline):
        return compute_relaxations(question, question.prover, PROOF_WORK / PROOFS_PER_QUERY)


def _computed_reasons(computed: Relaxations) -> tuple[Reason, ...]:
    """Return the constraints without which the target can be reached, the cheapest first."""
    found = []
    for answer in computed.answers[:MOST_NAMED]:
        words = " and ".join(each.words for each in answer.removed)
        words = f"both {words}" if len(answer.removed) > 1 else words
        features = tuple(name for each in answer.removed for name in each.features)
        row = answer.row, answer.output, answer.cost, answer.is_nearest
        found.append(Reason(words, "computed", features, *row))
    return tuple(found)


def _binding_constraints(
    question: Question, reasons: Sequence[Reason], query: Mapping[Hashable, Any]
) -> tuple[BindingConstraint, ...]:
    """Return constraints with the changes that show their effect; `query` are its cells by name."""
    region = question.region
    rows = [region.query if each.row is None else each.row for each in reasons]
    if not rows:
        return ()
    X = np.array(rows)
    numbers = np.full(len(X), question.query_number)
    cells = by_feature(region.schema, rows_of(question.evaluator.rows(X, numbers)))
    found = []
    for reason, changed, by_name in zip(reasons, region.changes(X), cells, strict=True):
        changes = {name: (query[name], by_name[name]) for name in compress(region.names, changed)}
        found.append(
            BindingConstraint(
                reason.words,
                reason.evidence,
                reason.features,
                changes,
                reason.output,
                reason.cost,
                reason.is_lowest,
            )
        )
    return tuple(found)


def _status(question: Question, verdict: Verdict | None) -> Status:
    """Return whether a target that was not reached is out of reach."""
    if question.stopped == "exhausted" or question.proof.conclusion == "out of reach":
        return "unreachable"
    # The search gave up on what its surrogate knew then. All scored rows may say more, or that
    # nothing can be said.
    is_given_up = question.stopped == "unreachable"
    if verdict is not None:
        is_given_up &= verdict.probability is not None and verdict.probability < UNLIKELY
    return "unreachable" if is_given_up else "best_guess"


def _reachable(question: Question) -> tuple[float, float]:
    """Return the lowest and the highest output of the allowed rows that were scored."""
    y = np.array([question.output]) if question.already_met else question.y
    return (float(y.min()), float(y.max())) if len(y) else (np.nan, np.nan)


def _trace(question: Question) -> Array:
    """Return the best potential after each row that was scored for the question."""
    if question.already_met:
        return np.ones(question.spent)
    paid = np.array(question.paid, dtype=np.intp)
    return np.maximum.accumulate(question.score(question.known.take(paid)[1]))


def _jump(question: Question) -> tuple[float, float] | None:
    """Return the nearest outputs on either side of the target, if both sides were seen."""
    y = question.y
    pairs: list[tuple[float, float]] = []
    for low, high in question.acceptance:
        below = y[y < low]
        above = y[y > high]
        if len(below) and len(above):
            pairs.append((float(below.max()), float(above.min())))
    return min(pairs, key=lambda pair: pair[1] - pair[0], default=None)


def _verdict(question: Question, deadline: Deadline) -> Verdict | None:
    """Return the surrogate's verdict on a miss, if enough rows were scored and there is time."""
    is_cut_short = question.stopped in CUT_SHORT or deadline.passed
    if is_cut_short or not _has_rows_for_verdict(question):
        return None
    try:
        with limited_to(deadline), one_thread(), np.errstate(over="ignore"):
            verdict = judge(question)
    except OutOfTime:
        return None
    if question.stopped == "exhausted":
        return replace(verdict, conclusion=Conclusion.IMPOSSIBLE, probability=0.0)
    return verdict


def _has_rows_for_verdict(question: Question) -> bool:
    """Return whether enough rows were scored: all that are allowed, or some per feature."""
    n_scored = len(question.y)
    if question.stopped == "exhausted":  # every allowed row was scored
        return n_scored > 0
    n_free = len(question.region.free)
    for_few_features = _ROWS_FOR_VERDICT_WITH_FEW_FEATURES + _ROWS_PER_FEATURE * n_free
    return n_scored >= min(_ROWS_FOR_VERDICT, for_few_features)
