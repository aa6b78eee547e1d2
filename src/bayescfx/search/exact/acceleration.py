"""Which code splits boxes: that of NumPy, or that of numba where it is installed and worth it.

Both give the same results, so that it does not matter when the second one takes over. Loading it
takes about a second, and the first time on a machine, when it is compiled, about 15. Therefore it
is loaded in a thread of its own, by a process that has proofs to make for longer than that.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from threading import Lock, Thread
from types import ModuleType
from typing import TYPE_CHECKING

from bayescfx.search.exact import steps

if TYPE_CHECKING:
    from bayescfx.search.exact.problem import BoxProblem

#: Work in this process, in summands, after which the compiled code is loaded; about a second.
_WORK_BEFORE_LOADING = 1.5e7


@dataclass(eq=False)
class Loader:
    """The compiled code of this process.

    Parameters
    ----------
    compiled : module or None
        The compiled code, once it is loaded.
    failure : str
        Why it could not be loaded.
    """

    compiled: ModuleType | None = None
    failure: str = ""
    _work: float = 0.0
    _thread: Thread | None = None
    _lock: Lock = field(default_factory=Lock)

    def note_work(self, work: float) -> None:
        """Note work that was done, and start to load the compiled code if it was enough."""
        self._work += work
        if self._work < _WORK_BEFORE_LOADING or self._thread is not None:
            return
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self.load, name="bayescfx-numba", daemon=True)
                self._thread.start()

    def load(self) -> None:
        """Load the compiled code now, if numba is installed."""
        if find_spec("numba") is None:
            return
        try:
            compiled = import_module("bayescfx.search.exact.compiled")
            compiled.warm_up()
        except Exception as error:  # any fault of another library; NumPy does the same work
            self.failure = f"{type(error).__name__}: {error}"
        else:
            self.compiled = compiled

    def find_steps(self, problem: BoxProblem) -> ModuleType:
        """Return the module that splits the boxes of a problem.

        The compiled code knows one sum of trees, and costs that are sums over features.
        """
        if self.failure:
            reason, self.failure = self.failure, ""
            warnings.warn(f"numba can't be used, so proofs take longer ({reason})", stacklevel=2)
        if self.compiled is None or len(problem.base) > 1 or problem.costs.norm not in (0, 1):
            return steps
        return self.compiled


#: The compiled code is the same for all calls of a process.
LOADER = Loader()
