"""Reader for PyTorch's sequential networks. PyTorch itself is not imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.models.readers.forms import Form, LinkName
from bayescfx.models.readers.network_steps import Affine, Step, elementwise, network_form
from bayescfx.models.readers.sources import Task, UnreadableModelError, matrix, single_matrix

#: Modules that change no numbers in evaluation mode.
_PASSED_OVER = ("Identity", "Dropout", "AlphaDropout", "Flatten")


def read_torch(task: Task) -> Form:
    """Return the form of a ``Sequential`` of linear layers and ReLU, maybe with a sigmoid last."""
    module = task.estimator
    if _kind(module) not in ("Sequential", "Linear"):
        raise UnreadableModelError(
            f"{_kind(module)} is a PyTorch module of its own; networks are read if they are an "
            "nn.Sequential"
        )
    parts = list(_flat_parts(module))
    link: LinkName = "identity"
    if [_kind(part) for part in parts[-1:]] == ["Sigmoid"]:
        link = "expit"
        parts.pop()
    dtypes = {str(each.dtype) for each in module.parameters()}
    numbers = single_matrix if dtypes == {"torch.float32"} else matrix
    return network_form(task.source.inputs(numbers), map(_step, parts), link)


def _kind(module: Any) -> str:
    """Return the name of a module's class if it is PyTorch's own."""
    kind = type(module)
    is_own = kind.__module__.startswith("torch.nn.")
    return kind.__name__ if is_own else f"{kind.__module__}.{kind.__name__}"


def _flat_parts(module: Any) -> Iterator[Any]:
    """Yield the modules of a sequence that change numbers, nested sequences included."""
    if _has_hooks(module):
        raise UnreadableModelError("the PyTorch module has hooks")
    if _kind(module) == "Sequential":
        for part in module:
            yield from _flat_parts(part)
    elif _kind(module) not in _PASSED_OVER:
        yield module


def _has_hooks(module: Any) -> bool:
    """Return whether functions of the user change what goes in or comes out."""
    return bool(module._forward_hooks or module._forward_pre_hooks)


def _step(module: Any) -> Step:
    """Return a module as a step; raise if it is none that can be read."""
    kind = _kind(module)
    if kind not in _STEPS:
        advice = "" if kind != "Sigmoid" else " before the end"
        raise UnreadableModelError(f"the network has the module {kind}{advice}")
    return _STEPS[kind](module)


def _linear(module: Any) -> Step:
    weights = _numbers(module.weight)
    bias = np.zeros(len(weights)) if module.bias is None else _numbers(module.bias)
    return Affine(weights, bias)


def _batch_norm(module: Any) -> Step:
    """Return a normalisation with the mean and variance of training, which is affine."""
    if module.running_mean is None:
        raise UnreadableModelError("BatchNorm1d has no running mean, so that rows affect others")
    factor = 1.0 / np.sqrt(_numbers(module.running_var) + module.eps)
    shift = -_numbers(module.running_mean) * factor
    if module.affine:
        factor = factor * _numbers(module.weight)
        shift = shift * _numbers(module.weight) + _numbers(module.bias)
    return elementwise(factor, shift)


def _relu(module: Any) -> Step:
    return "relu"


def _numbers(tensor: Any) -> Array:
    """Return a tensor as an array of float64."""
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)


#: By the name of PyTorch's class.
_STEPS: dict[str, Callable[[Any], Step]] = {
    "Linear": _linear,
    "BatchNorm1d": _batch_norm,
    "ReLU": _relu,
}
