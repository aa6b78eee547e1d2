"""What can go wrong, by meaning.

Every error is a :class:`BayesCFXError` and also the built-in a careful user would catch. Messages
follow one pattern: *thing must be X; got Y. Do Z.*
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from importlib import import_module
from types import ModuleType


class BayesCFXError(Exception):
    """Base of every error raised by this library.

    Attributes
    ----------
    parameter : str or None
        The argument that is wrong, or would help: a program can name it in its own words.
    advice : str
        The end of the message that says what to do in Python; may be empty.
    """

    def __init__(
        self, message: str = "", *, parameter: str | None = None, advice: str = ""
    ) -> None:
        super().__init__(f"{message} {advice}" if advice else message)
        self.parameter = parameter
        self.advice = advice


class SettingsError(BayesCFXError, ValueError):
    """An argument, or a setting of a search or a surrogate, is not usable."""


class SpaceError(BayesCFXError, ValueError):
    """A feature, a rule or the data of a space is not usable."""


class QueryError(BayesCFXError, ValueError):
    """The query does not fit the space."""


class TargetError(BayesCFXError, ValueError):
    """The target asks for nothing, or for something undefined."""


class ModelError(BayesCFXError, ValueError):
    """The model returned something that is not one finite number per row."""


class EvaluationsError(BayesCFXError, ValueError):
    """Evaluations do not fit the model, the columns or the file format."""


class ArchiveError(BayesCFXError, ValueError):
    """A text is not an answer that this version can read."""


class CellError(BayesCFXError, TypeError):
    """A cell has no exact form in JSON."""


class InfeasibleError(BayesCFXError, ValueError):
    """No point satisfies every rule for this query."""


class OutOfTime(BayesCFXError, TimeoutError):
    """The deadline has passed; searches catch it and return their best so far."""


class WorkerError(BayesCFXError, RuntimeError):
    """Workers were lost, again and again, with the same queries."""


class MissingExtraError(BayesCFXError, ImportError):
    """An optional dependency is not installed."""


class BayesCFXWarning(UserWarning):
    """Base of every warning raised by this library."""


class SpaceWarning(BayesCFXWarning):
    """The space was changed to fit a query, or a feature can't move."""


class SurrogateWarning(BayesCFXWarning):
    """The surrogate had to fall back to something weaker."""


def suggest(name: object, known: Iterable[object]) -> str:
    """Return `` Did you mean 'x'?`` if `name` looks like a slip in writing a known name.

    That is another case or other separators; one letter wrong, missing, too many or swapped with
    its neighbour; or two of these where both names are long. No number is a slip for another.

    >>> suggest("BMI", ["age", "bmi"])
    " Did you mean 'bmi'?"
    """
    given, found = str(name), dict[str, int]()
    for other in map(str, known):
        shorter, longer = sorted((len(given), len(other)))
        most = 2 if shorter >= 6 else 1 if longer >= 3 else 0
        bare, digits = ([re.sub(p, "", t) for t in (given, other)] for p in (r"[\W_]", r"\D"))
        if digits[0] != digits[1] and all(digits):
            continue
        slips = 0 if "" != bare[0].casefold() == bare[1].casefold() else 3
        if slips and longer - shorter <= most:
            slips = _slips(given.casefold(), other.casefold())
        if slips <= most:
            found.setdefault(other, slips)
    return f" Did you mean {min(found, key=found.__getitem__)!r}?" if found else ""


def _slips(a: str, b: str) -> int:
    """Return how many letters are wrong, missing, too many or swapped with their neighbour."""
    before, last = list[int](), list(range(len(b) + 1))
    for i, x in enumerate(a):
        row = [i + 1]
        for j, y in enumerate(b):
            row.append(min(last[j + 1] + 1, row[j] + 1, last[j] + (x != y)))
            if i and j and (x, y) == (b[j - 1], a[i - 1]):
                row[-1] = min(row[-1], before[j - 1] + 1)
        before, last = last, row
    return last[-1]


def attach(error: Exception, **context: object) -> Exception:
    """Return the error with attributes for whoever catches it, such as ``.evaluations``."""
    for name, value in context.items():
        setattr(error, name, value)
    return error


def one_line(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


_HEARS: ContextVar[Callable[[str], object] | None] = ContextVar("hears", default=None)


@contextlib.contextmanager
def hearing(hear: Callable[[str], object]) -> Iterator[None]:
    """Let somebody hear the warnings of this library, of this thread only, instead of Python."""
    token = _HEARS.set(hear)
    try:
        yield
    finally:
        _HEARS.reset(token)


def warn(message: str, category: type[Warning]) -> None:
    """Warn about the line of the user's that led here: the last outside this package."""
    hear = _HEARS.get()
    if hear is not None:
        hear(message)
        return
    level, frame, home = 2, sys._getframe(1), os.path.dirname(__file__)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(home):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def optional(name: str, needed: str, extra: str = "") -> ModuleType:
    """Return a module that may not be installed; `needed` begins the error that says how to."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        what = f"'bayescfx[{extra}]'" if extra else package
        raise MissingExtraError(
            f"{needed} {package}, which is not installed. Install it with: pip install {what}."
        ) from error
