"""Which number of a classifier a target is about: the model that is explained, and its outputs.

The output is the probability of a label where two labels, or a probability, are asked about. Of
more than two labels, one is predicted if its probability is above that of the next label, so that
the output is their comparison.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescfx.arrays import Array
from bayescfx.errors import ModelError, TargetError
from bayescfx.models.categories import categories_of
from bayescfx.models.classifiers import probability_model
from bayescfx.models.input_columns import Category, as_fitted
from bayescfx.models.labels import Labels, predicted_positions, read_labels
from bayescfx.models.model import Model, answered
from bayescfx.potentials.class_targets import EDGE_MARGIN, Becomes, ClassTarget, Flips
from bayescfx.potentials.targets import Range, Target, as_target

#: What readers must know of scores that follow `predict`; {} is the edge between labels.
FOLLOWS_PREDICT = (
    "This classifier does not predict from its scores alone: where its prediction disagrees, the "
    "score is moved to {} or just below."
)

#: Returns the label that a classifier predicts for the query.
PredictedLabel = Callable[[], object]


def class_target(target: object) -> ClassTarget | None:
    """Return the target of a classifier that a target or its text is; None for any other."""
    if isinstance(target, str):
        with contextlib.suppress(TargetError):  # raised where the query is known
            target = as_target(target)
    return target if isinstance(target, ClassTarget) else None


def needs_predicted_label(model: Model, target: object) -> bool:
    """Return whether the model's output depends on the label that it predicts for the query."""
    labels = class_labels(model) if isinstance(class_target(target), Flips) else None
    return labels is not None and not labels.is_pair


def class_labels(model: Model) -> Labels | None:
    """Return the labels of a model that is, or was made from, a classifier; None for others."""
    return model.labels if model.labels is not None else read_labels(model.origin)


def answering(
    model: Model, target: object, predicted: PredictedLabel | None = None
) -> tuple[Model, Any]:
    """Return the model whose output a target is about, and the target of that output.

    Parameters
    ----------
    model : Model
        Any model.
    target : object
        Any target; one of a classifier is turned into accepted outputs.
    predicted : callable, optional
        Returns the label predicted for the query; called where `needs_predicted_label`.

    Raises
    ------
    TargetError
        If model and target do not fit together: a number from labels, or a label from numbers.
    """
    found = class_target(target)
    if found is None:
        if model.is_bare:
            raise _needs_label(model, target)
        return model, target
    labels = class_labels(model)
    if labels is None and hasattr(model.origin, "predict_proba"):
        raise ModelError(
            f"`model` must be fitted for '{found}': it is a classifier without `classes_`. Call "
            "`fit` first."
        )
    if labels is None:
        raise TargetError(
            f"'{found}' is a target of classifiers; the model returns numbers.",
            parameter="class_target",
            advice="Pass the classifier itself, or ask for a number, such as cfx.at_least(150).",
        )
    if isinstance(found, Flips):
        return _answer_flips(model, labels, predicted)
    assert isinstance(found, Becomes)
    return _answer_becomes(model, labels, found)


def output_name(model: Model, target: object) -> str | None:
    """Return the name of the output that a target is about; it may differ between queries."""
    if needs_predicted_label(model, target):
        return "score"
    return answering(model, target)[0].output


def predicted_label(model: Model, rows: Any) -> object:
    """Return the label that a classifier predicts for the first of some rows."""
    labels = class_labels(model)
    assert labels is not None  # callers ask `needs_predicted_label`
    return labels.predict(rows)[0]


def scoring(model: Model, target: object, query: Any) -> tuple[Model, Any]:
    """Return the model for rows scored by hand, and the target of its output.

    Without a target, the output of a bare classifier is the probability of the second of two
    labels, or else of the one that is predicted for the query, a table of one row.
    """
    predicted = partial(predicted_label, model, query)
    if target is not None:
        return answering(model, target, predicted)
    if not model.is_bare or model.labels is None:
        return model, None
    labels = model.labels
    column = 1 if labels.is_pair else labels.index(predicted())
    return _score(model, labels, column), None


def claimed(model: Model, target: object) -> Model:
    """Return the model whose outputs an answer with this target claims."""
    labels = class_labels(model) if isinstance(target, ClassTarget) else None
    if labels is None or not isinstance(target, Becomes | Flips):
        return model
    column = labels.index(target.label)
    decides = True
    if isinstance(target, Becomes):
        decides = target.probability is None
        if target.low == -math.inf:  # it is stated as an output of the other label
            column = 1 - column
    return _score(model, labels, column, decides=decides)


def has_label(target: object, predicted: object, output: float) -> bool:
    """Return whether a predicted label is one that a target of labels asks for.

    `output` is the output of the query.
    """
    if isinstance(target, Becomes) and target.probability is None:
        return bool(predicted == target.label)
    if isinstance(target, Flips):
        return bool(predicted != target.predicted(output))
    return True


def _answer_becomes(model: Model, labels: Labels, target: Becomes) -> tuple[Model, Becomes]:
    """Return the model and the accepted outputs for a wanted label."""
    wanted = labels.index(target.label)
    named = replace(target, label=labels.values[wanted])
    if target.probability is not None:
        return _answer_probability(model, labels, named, wanted)
    column = _column(model, labels, wanted)
    scores = _score(model, labels, column, decides=True)
    lost, won, wins_ties = _edge(labels, column)
    if column == wanted:
        tie = won - EDGE_MARGIN if wins_ties else math.inf
        return scores, replace(named, low=won, high=math.inf, tie=tie)
    tie = math.inf if wins_ties else lost + EDGE_MARGIN
    return scores, replace(named, low=-math.inf, high=lost, tie=tie)


def _answer_probability(
    model: Model, labels: Labels, target: Becomes, wanted: int
) -> tuple[Model, Becomes]:
    """Return the model and the accepted outputs for a least probability of a label."""
    least = target.probability
    assert least is not None
    if not labels.has_probabilities:
        raise TargetError(
            f"a probability must not be asked for: {labels.name} gives none. Ask for the label "
            f"alone, 'becomes {target.label}', or calibrate the classifier."
        )
    column = _column(model, labels, wanted)
    if column == wanted:
        return _score(model, labels, column), replace(target, low=least, high=math.inf)
    return _score(model, labels, column), replace(target, low=-math.inf, high=1.0 - least)


def _answer_flips(
    model: Model, labels: Labels, predicted: PredictedLabel | None
) -> tuple[Model, Flips]:
    """Return the model and the target for any label but the predicted one."""
    other = None
    if labels.is_pair:
        column = _column(model, labels, 1)
        other = labels.values[1 - column]
    else:
        assert predicted is not None  # callers ask `needs_predicted_label`
        column = labels.index(predicted())
    lost, won, wins_ties = _edge(labels, column)
    target = Flips(labels.values[column], other, won, lost, wins_ties)
    return _score(model, labels, column, decides=True), target


def _column(model: Model, labels: Labels, wanted: int) -> int:
    """Return the label whose score is the output: of two labels, the one of the model as given.

    Decision values of two labels are those of the second.
    """
    if not labels.is_pair:
        return wanted
    if model.label is not None:
        return model.label
    return wanted if labels.has_probabilities or labels.cut() is None else 1


def _edge(labels: Labels, column: int) -> tuple[float, float, bool]:
    """Return the highest score that loses, the least that wins, and whether a label wins ties.

    Scores that decide exactly have no ties.
    """
    cut = labels.cut()
    if cut is None or not labels.is_pair:
        return math.nextafter(labels.middle, -math.inf), labels.middle, False
    value = cut.value
    if column == 0:
        value = 2.0 * labels.middle - cut.value
    return value - EDGE_MARGIN, value + EDGE_MARGIN, cut.second_wins == (column == 1)


# ── the models ──


def _score(model: Model, labels: Labels, column: int, *, decides: bool = False) -> Model:
    """Return the score of a label as a model: its probability, where there are probabilities.

    With `decides`, a higher score than the edge means that the label is predicted.
    """
    made = _make_score(labels, column, decides=decides)
    if made.label is not None and made.label == model.label:
        return model
    if labels.is_fixed:
        raise TargetError(
            f"the output is {model.output}, so that the target must be about it; got another label."
            f" Ask for a probability, such as 'becomes {labels.values[model.label or 0]} 0.5'."
        )
    content = None
    if model.content is not None:
        content = hashlib.sha256(f"{model.content} {made.name}".encode()).hexdigest()[:12]
    return replace(made, names=model.names, origin=model.origin, content=content)


def _make_score(labels: Labels, column: int, *, decides: bool) -> Model:
    """Return the score of a label as a model that knows nothing of the one it is made for."""
    has_cut = labels.is_pair and labels.cut() is not None
    if decides and not has_cut:
        return _deciding_model(labels, column)
    if labels.has_probabilities:
        return probability_model(labels, column)
    return _decision_model(labels) if has_cut else _deciding_model(labels, column)


def _decision_model(labels: Labels) -> Model:
    """Return the decision value of the second of two labels as a model."""
    clf = labels.estimator
    output = f"decision value of {labels.values[1]}"
    return Model(
        labels.wrap(partial(decide, clf, categories_of(clf))),
        name=f"{output} by {labels.name}",
        local=labels.local,
        output=output,
        labels=labels,
    )


def decide(clf: Any, categories: tuple[Category, ...], rows: Any) -> object:
    """Return the decision values of a classifier of two labels, shape ``(n,)``."""
    values: object = clf.decision_function(as_fitted(clf, rows, categories))
    return values


def _deciding_model(labels: Labels, column: int) -> Model:
    """Return a score that is above the edge exactly where a label is predicted, as a model."""
    label = labels.values[column]
    follows = not labels.follows_scores
    clf = labels.estimator
    predict = partial(compare_label, clf, categories_of(clf), labels.values, column, follows)
    output = f"probability of {label} against the next label"
    moves = follows and labels.has_scores
    if not labels.has_scores:
        output = f"prediction of {label} (1 or 0)"
    elif follows:
        output = f"score of {label}"
    elif not labels.has_probabilities:
        output = f"decision value of {label}"
    return Model(
        labels.wrap(predict),
        link="logit" if labels.has_probabilities else None,
        name=f"{output} by {labels.name}",
        local=labels.local,
        output=output,
        note=FOLLOWS_PREDICT.format(f"{labels.middle:g}") if moves else None,
        labels=labels,
    )


def compare_label(
    clf: Any,
    categories: tuple[Category, ...],
    values: tuple[Any, ...],
    column: int,
    follows: bool,
    rows: Any,
) -> Array:
    """Return how one label compares to the strongest of the others, shape ``(n,)``.

    For probabilities it is ``p / (p + q)`` with the highest one of the others, q; for decision
    values the difference. It is at least 0.5, or 0, exactly where the label is predicted: by the
    highest score, the first of equal ones, or, if `follows`, by ``clf.predict``.
    """
    is_predicted = predicted_positions(clf, values, rows) == column if follows else None
    table = _label_scores(clf, as_fitted(clf, rows, categories), rows)
    if table is None:
        return np.asarray(is_predicted, dtype=np.float64)
    if is_predicted is None:
        is_predicted = np.argmax(table, axis=1) == column
    own = table[:, column]
    rest = np.delete(table, column, axis=1).max(axis=1)
    score = own - rest
    middle = 0.0
    if hasattr(clf, "predict_proba"):
        middle = 0.5
        total = own + rest
        score = np.divide(own, total, out=np.full(len(own), middle), where=total > 0.0)
    below = math.nextafter(middle, -math.inf)
    found: Array = np.where(is_predicted, np.maximum(score, middle), np.minimum(score, below))
    return found


def _label_scores(clf: Any, fitted: Any, rows: Any) -> NDArray[np.float64] | None:
    """Return the scores of all labels, shape ``(n, k)``; None of a classifier without scores."""
    for name in ("predict_proba", "decision_function"):
        if hasattr(clf, name):
            return _as_table(getattr(clf, name)(fitted), rows)
    return None


def _as_table(raw: object, rows: Any) -> NDArray[np.float64]:
    """Return the scores of all labels, shape ``(n, k)``, one column per label."""
    table = np.asarray(answered(raw, rows), dtype=np.float64)
    return table if table.ndim == 2 else np.stack([-table, table], axis=1)


def _needs_label(model: Model, target: object) -> TargetError:
    """Return the error for a number that is wanted from a classifier, with how to write it."""
    labels = model.labels
    assert labels is not None
    label = labels.values[1 if labels.is_pair else 0]
    own = f"'{target}'" if isinstance(target, Target) else repr(target)
    advice = f"Write cfx.becomes({label!r})."
    if labels.has_probabilities:
        advice = (
            f"Write cfx.becomes({label!r}), or cfx.becomes({label!r}, "
            f"probability={_wanted_share(target):g}), or pass cfx.probability(model, {label!r}) as "
            "the model."
        )
    return TargetError(
        f"`target` must be a label: the model is a classifier of {labels.listed}; got {own}. "
        f"{advice}"
    )


def _wanted_share(target: object) -> float:
    """Return the least probability that a number seems to ask for, for an example."""
    if not isinstance(target, Range):
        return 0.7
    return target.low if 0.0 < target.low <= 1.0 else 0.7
