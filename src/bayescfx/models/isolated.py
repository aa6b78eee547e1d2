"""A model in a process of its own, where it may hang or crash without harm.

The process is a plain child that runs :func:`work` and talks over its standard streams, pickle by
pickle: it does not import the user's script again, as those of `multiprocessing` do.
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
from bayescfx.deadline import in_time, waiting
from bayescfx.errors import ModelError, OutOfTime, one_line
from bayescfx.models.model import Model, answered, as_model


class _Late(ModelError, OutOfTime):
    """There was no answer before the time of the search was over."""


class Isolated(Model):
    """A model in a process of its own; made by :func:`isolated`."""

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
    """Return a model that runs in a process of its own.

    A call that takes too long, or a process that dies (killed, out of memory, a crash in compiled
    code), is a `ModelError`, so that ``on_fault="skip"`` passes over such rows. The next call
    starts a new process. What the model raises or warns of arrives as if it ran here; what it
    prints goes to the standard error stream.

    The model travels by pickle: by cloudpickle if that or joblib is installed, which takes along
    functions of notebooks and scripts. The process ends with this one, with ``close()``, at the end
    of a ``with`` block, and when nobody holds the model any more.

    Parameters
    ----------
    model : object
        Whatever `explain` takes.
    timeout : float, optional
        Seconds that a call may take. Starting the process has a minute at least. ``None`` means no
        limit. The `timeout` of `explain` ends all waiting, too.
    memory : int or str, optional
        The most memory the process may reserve, in bytes or as ``"2GB"``; libraries reserve more
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
        sent = _pickler()(inner.predict)
    except Exception as error:  # each class has its own
        raise ModelError(
            f"`model` must be picklable to run in a process of its own; got {type(error).__name__}:"
            f" {error}. Install cloudpickle for functions, or pass a function that loads what can't"
            " be sent."
        ) from error
    worker = Worker(sent, timeout, _bytes(memory))
    return Isolated(worker, inner.link, inner.name, inner.local, inner.names, inner.origin)


def _pickler() -> Callable[[object], bytes]:
    """Return the pickler that is there: cloudpickle takes along what is defined in ``__main__``."""
    for name in ("cloudpickle", "joblib.externals.cloudpickle"):
        with contextlib.suppress(ImportError):
            found: Callable[[object], bytes] = importlib.import_module(name).dumps
            return found
    return pickle.dumps


def _bytes(memory: Any) -> int | None:
    """Return an amount of memory in bytes.

    >>> _bytes("2GB"), _bytes("1.5 MB"), _bytes(10**9)
    (2000000000, 1500000, 1000000000)
    """
    if memory is None:
        return None
    told = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT])B\s*", str(memory), re.IGNORECASE)
    size = float(told[1]) * 1e3 ** (1 + "KMGT".index(told[2].upper())) if told else memory
    good = is_number(size, 1, 2**62) and hasattr(os, "fork")
    check(good, "memory", "None, bytes or e.g. '2GB', on Unix", memory)
    return int(size)


class Worker:
    """The process, started when it is first asked, and anew after each that ended."""

    def __init__(self, model: bytes, timeout: float | None, memory: int | None) -> None:
        self.model, self.timeout, self.memory = model, timeout, memory
        self._lock, self._owner = threading.Lock(), 0
        self._process: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] = lambda: None
        self._told: dict[Any, Any] = {}  # warnings, of which each is shown once by default

    def __reduce__(self) -> tuple[Any, ...]:  # elsewhere it has another process
        return Worker, (self.model, self.timeout, self.memory)

    def __call__(self, rows: Rows) -> object:
        """Return what the model says to rows."""
        with self._lock:  # threads take turns
            if self._process is None or self._owner != os.getpid():
                self._start()
            answer = self._ask(pickle.dumps(rows), self.timeout)
        for text, kind, file, line in answer["warnings"]:
            warnings.warn_explicit(text, kind, file, line, registry=self._told)
        if "error" in answer:
            raise _told(answer)
        return answer["outputs"]

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._stop()

    def _start(self) -> None:
        # It finds modules where this process does.
        code = f"import sys; sys.path[:] = sys.argv[1:]; from {__name__} import work; work()"
        self._process = process = subprocess.Popen(
            [sys.executable, "-c", code, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for this process
        )
        self._owner = os.getpid()
        self._end = weakref.finalize(self, _kill, process, self._owner)
        most = None if self.timeout is None else max(60.0, self.timeout)
        answer = self._ask((self.timeout, self.memory, self.model), most)
        if "error" in answer:
            self._stop()
            raise ModelError(
                "`model` must be loadable in a process of its own; got "
                f"{one_line(answer['told'])}. Define it in a module, or install cloudpickle."
            ) from _told(answer)

    def _ask(self, message: object, most: float | None) -> dict[str, Any]:
        """Send a message and return the answer, in time: `most` seconds, and while a search has."""
        process, until = self._process, waiting.get()
        seconds = min(math.inf if most is None else most, until.left)
        assert process is not None
        try:
            answer: dict[str, Any] = in_time(partial(_exchange, process, message), seconds)
            return answer
        except BaseException as error:
            self._stop()
            if not isinstance(error, OSError | EOFError | pickle.UnpicklingError):
                raise  # Ctrl-C, say: its answer would come too late
            how, kind = _cause(process), ModelError
            if isinstance(error, TimeoutError):
                how = f"gave no answer within {round(seconds, 2):g} s"
                kind = _Late if until.passed else ModelError
            raise kind(f"`model` {how}, in a process of its own.") from None

    def _stop(self) -> None:
        self._end()
        self._process = None


def _exchange(process: Any, message: object) -> Any:
    pickle.dump(message, process.stdin)
    process.stdin.flush()
    return pickle.load(process.stdout)


def _kill(process: subprocess.Popen[bytes], owner: int) -> None:
    """End a process and what it has started; not from a copy of the process that made it."""
    if owner != os.getpid():
        return
    with contextlib.suppress(OSError), process:  # which closes its streams, and waits
        if process.returncode is None and hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()  # unless it has ended: its number may be another's by now


def _cause(process: subprocess.Popen[bytes]) -> str:
    """Return how a process has ended."""
    code = process.returncode
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was ended by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")


def _told(answer: dict[str, Any]) -> Exception:
    """Return what a model has raised, with where."""
    told = ModelError(f"`model` raised {one_line(answer['told'])}.")
    error: Exception = told if answer["error"] is None else pickle.loads(answer["error"])
    error.add_note(f"in a process of its own:\n{answer['where']}")
    return error


# ── in the process ──


def work() -> None:
    """Load a model, then answer until nobody asks any more."""
    # What the model prints must not get between the answers.
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    if hasattr(os, "register_at_fork"):  # who outlives this process must not keep its pipe open
        os.register_at_fork(after_in_child=sink.close)
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(source, inbox), daemon=True).start()
    timeout, memory, model = inbox.get()
    if memory is not None:
        resource = importlib.import_module("resource")  # of Unix
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    predict, answer = _answer(pickle.loads, model)
    while True:
        pickle.dump(answer, sink)
        sink.flush()
        message = inbox.get()
        if timeout is not None:  # whoever asked is gone, if this is not ended by then
            faulthandler.dump_traceback_later(timeout + 5, exit=True)
        outputs, answer = _answer(lambda sent: _ask(predict, pickle.loads(sent)), message)
        answer["outputs"] = outputs
        faulthandler.cancel_dump_traceback_later()


def _listen(source: BinaryIO, inbox: queue.SimpleQueue[Any]) -> None:
    """Take messages, also while the model works; end with who sends them."""
    with contextlib.suppress(Exception):
        while True:
            inbox.put(pickle.load(source))
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)  # and what the model has started
    os._exit(0)


def _ask(predict: Callable[[Rows], object], rows: Rows) -> object:
    found = answered(predict(rows), rows)
    pickle.dumps(found)  # or that is the error
    return found


def _answer(function: Callable[[Any], Any], message: Any) -> tuple[Any, dict[str, Any]]:
    """Return what a function makes of a message, and what there is to tell of it."""
    found, told = None, dict[str, Any]()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # who asked decides which are shown
        try:
            found = function(message)
        except BaseException as error:
            told = {"told": f"{type(error).__name__}: {error}", "error": None}
            where = error.__traceback__
            while where is not None and where.tb_frame.f_code.co_filename == __file__:
                where = where.tb_next  # the model's own lines
            told["where"] = "".join(traceback.format_exception(type(error), error, where))
            with contextlib.suppress(Exception):  # one that can't be made again from its text
                if isinstance(error, Exception):
                    sent = pickle.dumps(error)
                    pickle.loads(sent)
                    told["error"] = sent
    told["warnings"] = [_plain(warned) for warned in caught]
    return found, told


def _plain(warned: warnings.WarningMessage) -> tuple[str, type[Warning], str, int]:
    category = warned.category
    try:
        pickle.dumps(category)
    except Exception:  # a class that nobody else can find
        category = UserWarning
    return str(warned.message), category, warned.filename, warned.lineno
