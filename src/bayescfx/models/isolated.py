"""A model in its own process, where it may hang or crash without harm.

The process is a plain child that runs :func:`serve` and exchanges pickles over its standard
streams. Unlike a process of `multiprocessing`, it does not import the user's script again.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import math
import os
import pickle
import queue
import re
import signal
import subprocess
import sys
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

from bayescfx.checks import check, is_number
from bayescfx.data.tables import Rows
from bayescfx.deadline import Deadline, in_time, time_limit
from bayescfx.errors import ModelError, OutOfTime, one_line
from bayescfx.models.model import Model, answered, as_model

_LONGEST_START = 60.0  # seconds to start the process, at least
_GRACE = 5.0  # seconds after the time-out before the process ends itself


class _LateError(ModelError, OutOfTime):
    """The model did not answer before the deadline of the search."""


class Isolated(Model):
    """A model in its own process; made by :func:`isolated`."""

    __slots__ = ()

    def close(self) -> None:
        """End the process; the next call starts another."""
        assert isinstance(self.predict, Worker)
        self.predict.close()

    def __enter__(self) -> Isolated:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def isolated(
    model: object, timeout: float | None = 60.0, memory: int | str | None = None
) -> Isolated:
    """Return a model that runs in its own process.

    A call that takes too long, or a process that dies (killed, out of memory, a crash in compiled
    code), raises a `ModelError`, so that ``on_fault="skip"`` skips such rows. The next call starts
    a new process. Errors and warnings of the model arrive as if it ran here; its prints go to the
    standard error stream.

    The model is pickled, with cloudpickle if that or joblib is installed, which includes functions
    of notebooks and scripts. The process ends with this one, with ``close()``, at the end of a
    ``with`` block, and when the model is garbage-collected.

    Parameters
    ----------
    model : object
        Any model that `explain` takes.
    timeout : float, optional
        Seconds that a call may take; the start of the process may take a minute. ``None`` means
        no limit. The `timeout` of `explain` ends all waiting, too.
    memory : int or str, optional
        The memory that the process may reserve, in bytes or as ``"2GB"``; libraries reserve more
        than they use. On Unix only.

    Raises
    ------
    ModelError
        If the model can't be pickled.

    Examples
    --------
    >>> import numpy as np
    >>> with isolated(np.sqrt, timeout=10) as model:
    ...     model(np.array([[4.0], [9.0]]))
    array([2., 3.])
    """
    good = timeout is None or (is_number(timeout, 0, threading.TIMEOUT_MAX) and timeout > 0)
    check(good, "timeout", "None or seconds > 0", timeout)
    inner = as_model(model)
    try:
        pickled = _pickler()(inner.predict)
    except Exception as error:  # classes raise many types here
        raise ModelError(
            f"`model` must be picklable to run in its own process; got {type(error).__name__}: "
            f"{error}. Install cloudpickle for functions, or pass a function that loads what can't "
            "be sent."
        ) from error
    worker = Worker(pickled, timeout, _bytes(memory))
    return Isolated(worker, inner.link, inner.name, inner.local, inner.names, inner.origin)


def _pickler() -> Callable[[object], bytes]:
    """Return cloudpickle's `dumps` if installed: it includes what is defined in ``__main__``."""
    for name in ("cloudpickle", "joblib.externals.cloudpickle"):
        with contextlib.suppress(ImportError):
            dumps: Callable[[object], bytes] = importlib.import_module(name).dumps
            return dumps
    return pickle.dumps


def _bytes(memory: Any) -> int | None:
    """Return an amount of memory in bytes.

    >>> _bytes("2GB"), _bytes("1.5 MB"), _bytes(10**9)
    (2000000000, 1500000, 1000000000)
    """
    if memory is None:
        return None
    size = memory
    text = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT])B\s*", str(memory), re.IGNORECASE)
    if text is not None:
        size = float(text[1]) * 1e3 ** (1 + "KMGT".index(text[2].upper()))
    good = is_number(size, 1, 2**62) and hasattr(os, "fork")
    check(good, "memory", "None, bytes or e.g. '2GB', on Unix", memory)
    return int(size)


class Worker:
    """The process of a model: started by the first call, and again after it has ended."""

    def __init__(self, model: bytes, timeout: float | None, memory: int | None) -> None:
        self.model = model
        self.timeout = timeout
        self.memory = memory
        self._lock = threading.Lock()
        self._owner = 0  # the process that started it
        self._process: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] = lambda: None
        self._warned: dict[Any, Any] = {}  # registry of warnings that were shown

    def __reduce__(self) -> tuple[Any, ...]:  # a copy starts its own process
        return Worker, (self.model, self.timeout, self.memory)

    def __call__(self, rows: Rows) -> object:
        """Return the model's output for rows; its errors and warnings are raised here."""
        with self._lock:  # threads take turns
            if self._process is None or self._owner != os.getpid():
                self._start()
            answer = self._request(pickle.dumps(rows), self.timeout)
        for text, category, file, line in answer["warnings"]:
            warnings.warn_explicit(text, category, file, line, registry=self._warned)
        if "error" in answer:
            raise _error_of(answer)
        return answer["outputs"]

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._stop()

    def _start(self) -> None:
        """Start the process and load the model in it."""
        # The process finds modules where this one does.
        code = f"import sys; sys.path[:] = sys.argv[1:]; from {__name__} import serve; serve()"
        process = subprocess.Popen(
            [sys.executable, "-c", code, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for this process
        )
        self._process = process
        self._owner = os.getpid()
        self._end = weakref.finalize(self, _kill, process, self._owner)
        seconds = None if self.timeout is None else max(_LONGEST_START, self.timeout)
        answer = self._request((self.timeout, self.memory, self.model), seconds)
        if "error" in answer:
            self._stop()
            raise ModelError(
                "`model` must be loadable in its own process; got "
                f"{one_line(answer['text'])}. Define it in a module, or install cloudpickle."
            ) from _error_of(answer)

    def _request(self, message: object, timeout: float | None) -> dict[str, Any]:
        """Send a message and return the answer, within `timeout` and the deadline of a search."""
        process = self._process
        assert process is not None
        deadline = time_limit.get()
        seconds = min(math.inf if timeout is None else timeout, deadline.left)
        try:
            answer: dict[str, Any] = in_time(partial(_exchange, process, message), seconds)
            return answer
        except TimeoutError:
            self._stop()
            raise _no_answer(seconds, deadline) from None
        except (OSError, EOFError, pickle.UnpicklingError):
            self._stop()
            raise ModelError(f"`model` {_exit_cause(process)}, in its own process.") from None
        except BaseException:  # such as Ctrl-C: the answer would arrive at the next call
            self._stop()
            raise

    def _stop(self) -> None:
        """End the process, if there is one."""
        self._end()
        self._process = None


def _exchange(process: Any, message: object) -> Any:
    """Send a message to the process and wait for its answer."""
    pickle.dump(message, process.stdin)
    process.stdin.flush()
    return pickle.load(process.stdout)


def _kill(process: subprocess.Popen[bytes], owner: int) -> None:
    """End a process and its children, unless this is a fork of the process that started it."""
    if owner != os.getpid():
        return
    with contextlib.suppress(OSError), process:  # closes the streams, and waits
        if process.returncode is None and hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:  # it has ended; another process may have its number by now
            process.kill()


def _no_answer(seconds: float, deadline: Deadline) -> ModelError:
    """Return the error for a model that gave no answer in time."""
    kind = _LateError if deadline.passed else ModelError
    return kind(f"`model` gave no answer within {round(seconds, 2):g} s, in its own process.")


def _exit_cause(process: subprocess.Popen[bytes]) -> str:
    """Return how a process has ended."""
    code = process.returncode
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return f"was ended by {name}{hint}"


def _error_of(answer: dict[str, Any]) -> Exception:
    """Return the error that the model raised, with its traceback as a note."""
    if answer["error"] is None:
        error: Exception = ModelError(f"`model` raised {one_line(answer['text'])}.")
    else:
        error = pickle.loads(answer["error"])
    error.add_note(f"in its own process:\n{answer['traceback']}")
    return error


# ── in the process ──


def serve() -> None:
    """Load a model, then answer requests until the parent process closes the stream."""
    # Prints of the model must not get between the answers, so the streams are replaced.
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    if hasattr(os, "register_at_fork"):  # a child that outlives this process must not hold the pipe
        os.register_at_fork(after_in_child=sink.close)
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(source, inbox), daemon=True).start()
    timeout, memory, model = inbox.get()
    if memory is not None:
        resource = importlib.import_module("resource")  # Unix only
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    predict, answer = _run(pickle.loads, model)
    while True:
        pickle.dump(answer, sink)
        sink.flush()
        message = inbox.get()
        if timeout is not None:  # the parent ends this process earlier, if it still exists
            faulthandler.dump_traceback_later(timeout + _GRACE, exit=True)
        outputs, answer = _run(lambda pickled: _predict(predict, pickle.loads(pickled)), message)
        answer["outputs"] = outputs
        faulthandler.cancel_dump_traceback_later()


def _listen(source: BinaryIO, inbox: queue.SimpleQueue[Any]) -> None:
    """Receive messages, also while the model runs; end this process with its parent."""
    with contextlib.suppress(Exception):
        while True:
            inbox.put(pickle.load(source))
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)  # and the children of the model
    os._exit(0)


def _predict(predict: Callable[[Rows], object], rows: Rows) -> object:
    """Return the outputs of the model as an array that can be sent."""
    outputs = answered(predict(rows), rows)
    pickle.dumps(outputs)  # raises here if they can't be sent
    return outputs


def _run(function: Callable[[Any], Any], message: Any) -> tuple[Any, dict[str, Any]]:
    """Return a function's result, and its error and warnings in a form that can be sent."""
    result = None
    answer: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # the parent process decides which are shown
        try:
            result = function(message)
        except BaseException as error:
            answer = _describe_error(error)
    answer["warnings"] = [_describe_warning(warning) for warning in caught]
    return result, answer


def _describe_error(error: BaseException) -> dict[str, Any]:
    """Return text, pickle and traceback of an error; no pickle if it can't be unpickled."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename == __file__:
        frame = frame.tb_next  # to the model's own lines
    pickled = None
    with contextlib.suppress(Exception):
        if isinstance(error, Exception):
            content = pickle.dumps(error)
            pickle.loads(content)
            pickled = content
    return {
        "text": f"{type(error).__name__}: {error}",
        "error": pickled,
        "traceback": "".join(traceback.format_exception(type(error), error, frame)),
    }


def _describe_warning(warning: warnings.WarningMessage) -> tuple[str, type[Warning], str, int]:
    """Return text, category, file and line of a warning."""
    category = warning.category
    try:
        pickle.dumps(category)
    except Exception:  # a class that other processes can't import
        category = UserWarning
    return str(warning.message), category, warning.filename, warning.lineno
