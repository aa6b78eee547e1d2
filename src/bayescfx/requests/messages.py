"""Errors in one sentence, in terms of the options that a user typed."""

from __future__ import annotations

import re
from collections.abc import Container

from bayescfx.errors import BayesCFXError, one_line
from bayescfx.requests.constraints import VERBS
from bayescfx.requests.settings import OPTIONS

#: What to do about a parameter on the command line, where the error gives advice for Python.
ADVICE = {
    "columns": "Leave out those it was not trained on, with --drop.",
    "evaluations": "Use another file for each model; if it has changed, add --forget.",
    "model": "For a classifier pass --label LABEL.",
    "na": "Correct the cell, or name the texts that mean missing with --na.",
    "identifiers": "Use it to identify rows with --id, or leave it out with --drop.",
    "order": 'Give an order, from the lowest, with --kind "NAME=low < middle < high".',
    "percent": "Ask for an amount instead, such as '+5'.",
    "rule": "Write levels in quotes; join rules with `and`, `or` and `->`.",
    "output": "Choose one with --output: 0 is the first.",
    "on_fault": "Exclude that region with --require, or pass --on-fault skip.",
    "pickle": "If you trust its author, pass --trust-pickle; better save it as .skops or .onnx.",
    "types": "If you trust its author, add --trust {types} to the command.",
}

#: Parameters whose option has another name, or none.
OTHER_NAMES = {
    "k": "--max-changes",
    "timeout": "--http-timeout",  # the timeout of a question is checked before
    "kinds": "--kind",
    "n_jobs": "--jobs",
    "changes": "--set",
    "set": "--set",
    "function": "--derive",
    "model": "the model",
    "query": "the query",
}


def describe_error(error: BaseException, flags: Container[str] | None = None) -> str:
    """Return an error as one line that names options instead of parameters.

    Advice that needs an option outside `flags`, those of the command, is left out.
    """
    text = one_line(str(error))
    if isinstance(error, BayesCFXError) and error.parameter is not None:
        text = _with_options(_with_advice(text, error, flags))
    if isinstance(error, BayesCFXError | OSError) and text:
        return _as_sentence(text) + _query_note(error)
    return _foreign_error(error, text)


def describe_query_error(error: BayesCFXError) -> str:
    """Return why a query can't be explained, as one line."""
    error.parameter = error.parameter or "query"
    return describe_error(error)


def _with_advice(text: str, error: BayesCFXError, flags: Container[str] | None) -> str:
    """Return a message with advice for the command line instead of that for Python."""
    if not error.advice or error.parameter not in ADVICE:
        return text
    types = ",".join(getattr(error, "types", ()))
    advice = ADVICE[error.parameter].format(types=types)
    needed = re.findall("--[a-z-]+", advice)
    if flags is not None and any(flag not in flags for flag in needed):
        advice = ""
    return f"{text.removesuffix(error.advice)}{advice}".rstrip()


def _with_options(text: str) -> str:
    """Return a message in which parameters are named as options."""
    names = {name: option.flag for name, option in OPTIONS.items()}
    names |= {name: verb.option for name, verb in VERBS.items() if verb.option}
    for name, words in {**names, **OTHER_NAMES}.items():
        text = text.replace(f"`{name}`", words)
    return text


def _as_sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _query_note(error: BaseException) -> str:
    """Return which query an error is about, if it was given a label."""
    for note in getattr(error, "__notes__", []):
        if note.startswith("for the que") and " at position " not in note:
            return f" That is {note}."
    return ""


def _foreign_error(error: BaseException, text: str) -> str:
    """Return an error of another library, with its class and its notes."""
    kind = type(error).__name__
    message = f"{kind}: {text.rstrip('.')}" if text else kind
    notes = [one_line(note) for note in getattr(error, "__notes__", [])]
    return f"{message} ({'; '.join(notes)})." if notes else f"{message}."
