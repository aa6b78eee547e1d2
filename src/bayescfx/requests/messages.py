"""Errors in one sentence, in the words of a client: the command line or the page."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass

from bayescfx.errors import BayesCFXError, one_line
from bayescfx.requests.constraints import VERBS
from bayescfx.requests.settings import OPTIONS

#: Advice for the command line by parameter, where the error gives advice for Python.
COMMAND_LINE_ADVICE = {
    "class_target": "Ask for a number, such as '>= 150'.",
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

#: Advice for visitors of the page; only the operator can change the model, the data and files.
PAGE_ADVICE = {
    **dict.fromkeys(COMMAND_LINE_ADVICE, "Tell the operator of this page."),
    "class_target": "Ask for a number, such as '>= 150'.",
    "na": "Correct the cell.",
    "percent": COMMAND_LINE_ADVICE["percent"],
    "rule": COMMAND_LINE_ADVICE["rule"],
    "on_fault": "Exclude that region with a rule.",
}

#: Parameters whose option has another name, or none.
OTHER_OPTIONS = {
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

#: Parameters that the page calls otherwise.
OTHER_PAGE_NAMES = {
    "budget": "the number of model rows",
    "k": "the number of changes",
    "model": "the model",
    "n": "the number of answers",
    "query": "the row",
    "require": "the rules",
    "rng": "the seed",
    "timeout": "the number of seconds",
    "prove": "the number of seconds of a proof",
}


@dataclass(frozen=True)
class Client:
    """The words of a client for the parameters of Python.

    Parameters
    ----------
    advice : dict of parameter to str
        What to do, in place of advice for Python.
    other_names : dict of parameter to str
        Names of parameters that differ from the usual ones.
    has_options : bool
        Whether parameters are options, such as ``--only-up``; else they are named in plain words.
    flags : container of str, optional
        The options of the command; advice that needs another is left out. None: all.
    """

    advice: Mapping[str, str]
    other_names: Mapping[str, str]
    has_options: bool
    flags: Container[str] | None = None

    def describe(self, error: BayesCFXError) -> str:
        """Return the message of an error with this client's advice and names of parameters."""
        text = one_line(str(error))
        if error.parameter is None:
            return text
        if error.advice and error.parameter in self.advice:
            advice = self._advice_for(error, error.parameter)
            text = f"{text.removesuffix(error.advice)}{advice}".rstrip()
        names = _option_names() if self.has_options else _plain_names()
        for name, words in {**names, **self.other_names}.items():
            text = text.replace(f"`{name}`", words)
        return text

    def _advice_for(self, error: BayesCFXError, parameter: str) -> str:
        """Return this client's advice; empty if it needs an option that the command lacks."""
        advice = self.advice[parameter].format(types=",".join(getattr(error, "types", ())))
        flags = self.flags
        if flags is None or all(flag in flags for flag in re.findall("--[a-z-]+", advice)):
            return advice
        return ""


def _option_names() -> dict[str, str]:
    """Return the options by parameter."""
    names = {name: option.flag for name, option in OPTIONS.items()}
    return names | {name: verb.option for name, verb in VERBS.items() if verb.option}


def _plain_names() -> dict[str, str]:
    """Return plain words by parameter."""
    return {name: f"the {name.replace('_', ' ')}" for name in (*OPTIONS, *VERBS)}


COMMAND_LINE = Client(COMMAND_LINE_ADVICE, OTHER_OPTIONS, has_options=True)
PAGE = Client(PAGE_ADVICE, OTHER_PAGE_NAMES, has_options=False)


def describe_error(error: BaseException, client: Client = COMMAND_LINE) -> str:
    """Return an error as one line in the words of a client."""
    text = one_line(str(error))
    if isinstance(error, BayesCFXError):
        text = client.describe(error)
    if text and isinstance(error, BayesCFXError | OSError):
        return _as_sentence(text) + _query_note(error)
    return _foreign_error(error, text)


def describe_query_error(error: BayesCFXError) -> str:
    """Return why a query can't be explained, as one line."""
    error.parameter = error.parameter or "query"
    return describe_error(error)


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
