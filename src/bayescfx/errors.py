"""Errors and warnings of the library.

Every error is a :class:`BayesCFXError` and also the matching built-in error. Messages follow one
pattern: *thing must be X; got Y. Do Z.*
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from difflib import SequenceMatcher
from importlib import import_module
from types import ModuleType

#: How the text of a target looks, for help and messages.
TARGET_SYNTAX = (
    "'+20%' or '-15' (at least so much more or less), '±10%', '=+20%' (exactly), '>= 150', "
    "'<= 0.3', '140..160' or '= 150'; for classifiers 'becomes good', 'becomes good 0.7' or 'flips'"
)


class BayesCFXError(Exception):
    """Base of every error raised by this library.

    Attributes
    ----------
    parameter : str or None
        The argument that is wrong, or that would help.
    advice : str
        The end of the message: what to do in Python. May be empty.
    """

    def __init__(
        self, message: str = "", *, parameter: str | None = None, advice: str = ""
    ) -> None:
        super().__init__(f"{message} {advice}" if advice else message)
        self.parameter = parameter
        self.advice = advice


class SettingsError(BayesCFXError, ValueError):
    """An argument or a setting is not valid."""


class SpaceError(BayesCFXError, ValueError):
    """A feature, a rule or the data of a space is not valid."""


class QueryError(BayesCFXError, ValueError):
    """The query does not fit the space."""


class TargetError(BayesCFXError, ValueError):
    """The target asks for nothing, or for something undefined."""


class ModelError(BayesCFXError, ValueError):
    """The model returned something that is not one finite number per row."""


class EvaluationsError(BayesCFXError, ValueError):
    """Evaluations do not fit the model, the columns or the file format."""


class ArchiveError(BayesCFXError, ValueError):
    """A text is not an archived answer of this format."""


class CellError(BayesCFXError, TypeError):
    """A cell has no exact form in JSON."""


class InfeasibleError(BayesCFXError, ValueError):
    """No row satisfies all constraints for this query.

    Attributes
    ----------
    constraints : tuple of str
        A smallest set of constraints that conflict, in words: without any one of them there are
        allowed rows, as far as is known. Empty if none was found.
    """

    constraints: tuple[str, ...] = ()


class OutOfTime(BayesCFXError, TimeoutError):
    """The deadline has passed; searches catch it and return their best so far."""


class WorkerError(BayesCFXError, RuntimeError):
    """Workers died repeatedly with the same queries."""


class MissingExtraError(BayesCFXError, ImportError):
    """An optional dependency is not installed."""


class BayesCFXWarning(UserWarning):
    """Base of every warning raised by this library."""


class SpaceWarning(BayesCFXWarning):
    """The space was widened to fit a query, or a feature can't change."""


class SurrogateWarning(BayesCFXWarning):
    """The surrogate fell back to a weaker method."""


def suggest(name: object, known: Iterable[object]) -> str:
    """Return `` Did you mean 'x'?`` if `name` looks like a misspelling of a known name.

    Names that differ only in case or separators are always suggested. Names that differ in their
    digits never are: ``x21`` is no misspelling of ``x20``.

    >>> suggest("BMI", ["age", "bmi"])
    " Did you mean 'bmi'?"
    """
    similarities = {str(other): _similarity(str(name), str(other)) for other in known}
    closest = max(similarities, key=similarities.__getitem__, default="")
    return f" Did you mean {closest!r}?" if similarities.get(closest) else ""


def _similarity(given: str, known: str) -> float:
    """Return how similar two names are, from 0 (not a misspelling) to 1."""
    digits = re.sub(r"\D", "", given)
    known_digits = re.sub(r"\D", "", known)
    if digits and known_digits and digits != known_digits:
        return 0.0
    bare = re.sub(r"[\W_]", "", given.casefold())
    if bare and bare == re.sub(r"[\W_]", "", known.casefold()):
        return 1.0
    shorter, longer = sorted((len(given), len(known)))
    n_extra = 2 if shorter >= 6 else 1  # letters that may be missing
    if longer - shorter > n_extra:
        return 0.0
    ratio = SequenceMatcher(None, given.casefold(), known.casefold()).ratio()
    least = 0.66 if longer <= 4 else 0.8  # one letter of three, or of five, may be wrong
    return ratio if ratio >= least else 0.0


def attach(error: Exception, **context: object) -> Exception:
    """Return the error with further attributes, such as ``.evaluations``."""
    for name, value in context.items():
        setattr(error, name, value)
    return error


def one_line(text: str) -> str:
    """Return a text with its whitespace reduced to single spaces."""
    return " ".join(text.split())


_RECEIVER: ContextVar[Callable[[str], object] | None] = ContextVar("receiver", default=None)


@contextlib.contextmanager
def redirect_warnings(receive: Callable[[str], object]) -> Iterator[None]:
    """Pass the warnings of this library, in this thread, to a function instead of Python."""
    token = _RECEIVER.set(receive)
    try:
        yield
    finally:
        _RECEIVER.reset(token)


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that points to the user's line: the innermost outside this package."""
    receive = _RECEIVER.get()
    if receive is not None:
        receive(message)
        return
    package = os.path.dirname(__file__)
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        level += 1
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=level)


def optional(name: str, needed: str, extra: str = "") -> ModuleType:
    """Return an optional module, or raise an error that says how to install it.

    Parameters
    ----------
    name : str
        The module.
    needed : str
        The beginning of the message: what needs the module.
    extra : str, optional
        The extra of this package that installs it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        requirement = f"'bayescfx[{extra}]'" if extra else package
        raise MissingExtraError(
            f"{needed} {package}, which is not installed. "
            f"Install it with: pip install {requirement}."
        ) from error
