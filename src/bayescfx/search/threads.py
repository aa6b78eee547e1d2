"""One thread for small linear algebra.

The surrogate's matrices are small: many threads wait for each other longer than the work takes.
Where `threadpoolctl` is installed (scikit-learn brings it), there is one thread while the search
thinks, and only then: the user's model keeps its own.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any


@cache
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which linear algebra runs on one thread, where that can be set."""
    controller = _controller()
    return nullcontext() if controller is None else controller.limit(limits=1)
