"""Reader for the networks of scikit-learn."""

from __future__ import annotations

import numpy as np

from bayescfx.models.readers.forms import Form, LinkName
from bayescfx.models.readers.network_steps import Affine, Step, class_sign, network_form
from bayescfx.models.readers.sources import Task, UnreadableModelError, matrix, refuse_labels

#: The links of the last layer, by the name of its activation.
_LINKS: dict[str, LinkName] = {"identity": "identity", "exp": "exp", "logistic": "expit"}


def read_perceptron(task: Task) -> Form:
    """Return the form of a multi-layer perceptron with one output."""
    refuse_labels(task)
    _check_activations(task)
    model = task.estimator
    steps: list[Step] = []
    for weights, bias in zip(model.coefs_, model.intercepts_, strict=True):
        steps += [_affine(weights, bias), model.activation]
    steps[-1] = class_sign(task)  # the last activation is the link
    return network_form(task.source.inputs(matrix), steps, _LINKS[model.out_activation_])


def _check_activations(task: Task) -> None:
    """Raise unless hidden layers are linear or ReLU and the last one has one output."""
    model = task.estimator
    if model.activation not in ("relu", "identity"):
        raise UnreadableModelError(
            f"{task.class_name} has the activation {model.activation!r}; networks are read with "
            "'relu' or 'identity'"
        )
    if model.out_activation_ not in _LINKS or len(model.intercepts_[-1]) != 1:
        kind = "classes" if hasattr(model, "classes_") else "outputs"
        raise UnreadableModelError(f"{task.class_name} has several {kind}")


def _affine(weights: object, bias: object) -> Affine:
    """Return a layer; scikit-learn stores the weights as ``(k, h)``."""
    return Affine(np.asarray(weights, dtype=np.float64).T, np.asarray(bias, dtype=np.float64))
