"""Steps of feed-forward networks, and the form that they make."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from bayescfx.arrays import Array
from bayescfx.models.readers.forms import Form, Inputs, LinearModel, LinkName, ReluNetwork
from bayescfx.models.readers.sources import UnreadableModelError


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


#: A step of a network: an affine map, or ``max(0, z)``.
Step: TypeAlias = Affine | Literal["relu"]


def elementwise(factor: Array, shift: Array) -> Affine:
    """Return the step ``factor * a + shift`` with arrays of shape (h,)."""
    return Affine(np.diag(factor), shift)


def network_form(inputs: Inputs, steps: Iterable[Step], link: LinkName = "identity") -> Form:
    """Return the form of a network: linear if no activation is left after merging affine steps.

    Parameters
    ----------
    inputs : Inputs
        The numbers that the first step gets.
    steps : iterable of Affine or ``"relu"``
        The steps, first to last.
    link : str
        How the last sum becomes the output.
    """
    m = len(inputs)
    layers = [Affine(np.eye(m), np.zeros(m))]
    is_open = False  # whether the last layer still waits for affine steps after its activation
    for step in steps:
        if step == "relu":
            is_open = True
        elif is_open:
            width = len(layers[-1].bias)
            layers.append(step.after(Affine(np.eye(width), np.zeros(width))))
            is_open = False
        else:
            layers[-1] = step.after(layers[-1])
    last = layers[-1]
    if is_open:
        raise UnreadableModelError("the network ends with an activation that is no link")
    if len(last.bias) != 1:
        raise UnreadableModelError(f"the network has {len(last.bias)} outputs")
    if len(layers) == 1:
        return LinearModel(inputs, last.weights[0], float(last.bias[0]), link)
    weights = tuple(layer.weights for layer in layers)
    return ReluNetwork(inputs, weights, tuple(layer.bias for layer in layers), link)


def rescaled_network(form: ReluNetwork, factor: float, shift: float) -> ReluNetwork:
    """Return a network whose sums are multiplied by a factor, with a number added."""
    weights = (*form.weights[:-1], form.weights[-1] * factor)
    biases = (*form.biases[:-1], form.biases[-1] * factor + shift)
    return replace(form, weights=weights, biases=biases)
