"""Steps of feed-forward networks, and the form that they make."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from bayescfx.arrays import Array
from bayescfx.models.readers.forms import Form, Inputs, LinearModel, LinkName, ReluNetwork
from bayescfx.models.readers.sources import Task, UnreadableModelError


@dataclass(frozen=True, eq=False)
class Affine:
    """A step ``weights @ a + bias``.

    Parameters
    ----------
    weights : array of shape (h, k)
        The weights.
    bias : array of shape (h,)
        What is added.
    """

    weights: Array
    bias: Array

    def after(self, earlier: Affine) -> Affine:
        """Return this step and an earlier one as a single step."""
        if self.weights.shape[1] != len(earlier.bias):
            raise UnreadableModelError(
                f"a layer of the network takes {self.weights.shape[1]} numbers, but the layer "
                f"before returns {len(earlier.bias)}"
            )
        return Affine(self.weights @ earlier.weights, self.weights @ earlier.bias + self.bias)


#: A step of a network: an affine map, ``max(0, z)``, or nothing.
Step: TypeAlias = Affine | Literal["relu", "identity"]


def elementwise(factor: Array, shift: Array) -> Affine:
    """Return the step ``factor * a + shift`` with arrays of shape (h,)."""
    return Affine(np.diag(factor), shift)


def class_sign(task: Task) -> Affine:
    """Return the last step of a network: it turns the log-odds of the first of two classes."""
    sign = task.sign if task.method == "predict_proba" else 1.0
    return Affine(np.array([[sign]]), np.zeros(1))


def network_form(inputs: Inputs, steps: Iterable[Step], link: LinkName = "identity") -> Form:
    """Return the form of a network: linear if no activation is left after merging affine steps.

    Parameters
    ----------
    inputs : Inputs
        The numbers that the first step gets.
    steps : iterable of Affine, ``"relu"`` or ``"identity"``
        The steps, first to last.
    link : str
        How the last sum becomes the output.
    """
    layers = _merged(len(inputs), steps)
    last = layers[-1]
    if len(last.bias) != 1:
        raise UnreadableModelError(f"the network has {len(last.bias)} outputs")
    if len(layers) == 1:
        return LinearModel(inputs, last.weights[0], float(last.bias[0]), link)
    weights = tuple(layer.weights for layer in layers)
    return ReluNetwork(inputs, weights, tuple(layer.bias for layer in layers), link)


def _merged(n_inputs: int, steps: Iterable[Step]) -> list[Affine]:
    """Return the layers between activations, each with all of its affine steps."""
    layers = [_identity(n_inputs)]
    is_active = False  # whether an activation follows the last layer
    for step in steps:
        if isinstance(step, Affine) and is_active:
            layers.append(step.after(_identity(len(layers[-1].bias))))
            is_active = False
        elif isinstance(step, Affine):
            layers[-1] = step.after(layers[-1])
        else:
            is_active |= step == "relu"
    if is_active:
        raise UnreadableModelError("the network ends with an activation that is no link")
    return layers


def _identity(width: int) -> Affine:
    """Return the step that changes nothing."""
    return Affine(np.eye(width), np.zeros(width))


def rescaled_network(form: ReluNetwork, factor: float, shift: float) -> ReluNetwork:
    """Return a network whose sums are multiplied by a factor, with a number added."""
    weights = (*form.weights[:-1], form.weights[-1] * factor)
    biases = (*form.biases[:-1], form.biases[-1] * factor + shift)
    return replace(form, weights=weights, biases=biases)
