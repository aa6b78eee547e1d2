"""Exports: a question and its answer as files, and as the program or command that repeats it."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

import bayescfx as cfx
from bayescfx.errors import SettingsError
from bayescfx.requests.answer_files import Answers, write_answers
from bayescfx.requests.constraints import VERBS, intersect_verbs
from bayescfx.requests.report_facts import ID
from bayescfx.requests.settings import Settings
from bayescfx.requests.texts import parse_call
from bayescfx.requests.toml_text import toml_value
from bayescfx.web.request_forms import QuestionForm
from bayescfx.web.site import Site

#: Endings of files with the answer itself.
ANSWER_FILES = ("json", "csv", "html", "md")

#: The settings of a search.
SEARCH_SETTINGS = ("method", "budget", "n", "diverse", "tolerance", "timeout", "seed")

#: The operator's settings that a settings file repeats.
DATA_SETTINGS = ("id", "na", "drop", "label", "output")


def export_answer(ending: str, site: Site, form: QuestionForm, answer: cfx.Explanation) -> bytes:
    """Return a question and its answer as the content of a file.

    Parameters
    ----------
    ending : str
        ``json``, ``csv``, ``html`` or ``md``, which the command line writes as well, or one of
        `PROGRAMS`.
    site : Site
        The model and the data that the question is about.
    form : QuestionForm
        The request.
    answer : Explanation
        Its answer.
    """
    endings = (*ANSWER_FILES, *PROGRAMS)
    if ending not in endings:
        raise SettingsError(f"an export must be one of {', '.join(endings)}; got {ending!r}.")
    if ending in PROGRAMS:
        return PROGRAMS[ending](site, form).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"answer.{ending}")
        about = answer.about
        names = pd.Index([about["row"]], name=about[ID]) if ID in about else None
        write_answers(Answers(explanations={0: answer}, names=names, is_single=True), path)
        return Path(path).read_bytes()


def constraints_of(site: Site, form: QuestionForm) -> dict[str, Any]:
    """Return the constraints of the operator and the visitor as those of one.

    Programs and settings files have no operator: what both allow is what they allow.
    """
    return intersect_verbs(site.space, site.settings.space, form.space.given())


# ── Python ──


def python_program(site: Site, form: QuestionForm) -> str:
    """Return a program that asks the same question.

    It reads the same files with the same settings. With the same seed it prints the same answer,
    unless questions share evaluations.
    """
    settings = site.settings
    label = "" if settings.label is None else repr(settings.label)
    calls = [
        f"    .{call}"
        for verb, value in constraints_of(site, form).items()
        for call in _verb_calls(verb, value)
    ]
    make, numbers, named = parse_call(form.target)
    search = _search_settings(form)
    search["rng"] = search.pop("seed")
    lines = [
        "import pandas as pd",
        "",
        "import bayescfx as cfx",
        "",
        *_sharing_note(site),
        f"loaded = cfx.load_model({settings.model!r}{_loading_arguments(settings)})",
        f"data = {_reading_call(settings)}{_dropping_call(settings)}",
        "data = data[loaded.select(list(data.columns))]",
        "space = (",
        f"    cfx.Space.from_data(data{_kinds_argument(site)})",
        *calls,
        ")",
        f"query = {form.cells!r}",
        "answer = cfx.explain(",
        f"    loaded.scoring({label}),",
        "    query,",
        "    space,",
        f"    cfx.{make.__name__}({_arguments(*numbers, **named)}),",
        *(f"    {name}={value!r}," for name, value in search.items()),
        ")",
        "print(answer)\n",
    ]
    return "\n".join(lines)


def _sharing_note(site: Site) -> list[str]:
    """Return a comment if the answer on the page may differ from that of the program."""
    if not site.shares_evaluations:
        return []
    return ["# The page reuses rows that earlier questions have scored; this program does not."]


def _arguments(*given: Any, **named: Any) -> str:
    """Return the arguments of a call."""
    parts = [repr(value) for value in given]
    parts += [f"{name}={value!r}" for name, value in named.items()]
    return ", ".join(parts)


def _loading_arguments(settings: Settings) -> str:
    """Return the arguments of `load_model` after the name of the model."""
    trust = []
    if settings.trust_pickle:
        trust.append("pickle=True")
    if settings.trust:
        trust.append(f"types={tuple(settings.trust)!r}")
    arguments = f", trust=cfx.Trust({', '.join(trust)})" if trust else ""
    if settings.output is not None:
        arguments += f", output={settings.output!r}"
    return arguments


def _reading_call(settings: Settings) -> str:
    """Return the call that reads the data."""
    if settings.data.endswith(".parquet"):
        return f"pd.read_parquet({settings.data!r})"
    separator = ", sep='\\t'" if ".tsv" in settings.data else ""
    missing = ["", *(str(text) for text in settings.na)]
    return (
        f"pd.read_csv({settings.data!r}{separator}, keep_default_na=False, na_values={missing!r})"
    )


def _dropping_call(settings: Settings) -> str:
    """Return the call that drops the identifier and the ignored columns."""
    dropped = [name for name in (settings.id, *settings.drop) if name is not None]
    return f".drop(columns={dropped!r}, errors='ignore')" if dropped else ""


def _kinds_argument(site: Site) -> str:
    """Return the kinds of features that the operator has set."""
    chosen = [name for name in site.space.features if name in site.settings.features]
    kinds = ", ".join(f"{name!r}: cfx.{site.space.features[name]!r}" for name in chosen)
    return f", {{{kinds}}}" if kinds else ""


def _verb_calls(verb: str, value: Any) -> list[str]:
    """Return the calls of a verb of `Space`, by the kind of its parameter."""
    kind = VERBS[verb].parameter.kind
    method, _, end = VERBS[verb].python.partition("(…")
    calls = CALLS[kind](method, value) if kind in CALLS else [f"{method}({value!r})"]
    return [_with_end(call, end) for call in calls]


def _with_end(call: str, end: str) -> str:
    """Return a call, perhaps followed by a comment, with another end, such as ``, a=1)``."""
    code, mark, comment = call.partition(")  # ")
    return f"{code}{end}  # {comment}" if mark else f"{call[:-1]}{end}"


def _names_call(verb: str, names: list[str]) -> list[str]:
    """Return one call with all names as its arguments."""
    return [f"{verb}({_arguments(*names)})"]


def _item_calls(verb: str, items: list[Any]) -> list[str]:
    """Return one call for each item: a text, or a list of names."""
    lists = [item if isinstance(item, list) else [item] for item in items]
    return [f"{verb}({_arguments(*names)})" for names in lists]


def _group_calls(verb: str, groups: Mapping[str, list[str]]) -> list[str]:
    """Return one call for each group of columns."""
    return [f"{verb}({name!r}, {columns!r})" for name, columns in groups.items()]


def _function_calls(verb: str, functions: Mapping[str, str]) -> list[str]:
    """Return one call for each function, whose source is only named."""
    return [f"{verb}({name!r}, ...)  # {source}" for name, source in functions.items()]


def _option_calls(verb: str, value: Any) -> list[str]:
    """Return the call of a verb with named parameters, or none for a switch that is off."""
    if value is False:
        return []
    named = _arguments(**value) if isinstance(value, dict) else ""
    parts = [part for part in ("data" if verb == "near_data" else "", named) if part]
    return [f"{verb}({', '.join(parts)})"]


#: How to write the calls of a verb, by the kind of its parameter; by default one with the value.
CALLS: dict[str, Callable[[str, Any], list[str]]] = {
    "names": _names_call,
    "allowed names": _names_call,
    "texts": _item_calls,
    "name lists": _item_calls,
    "column lists": _group_calls,
    "functions": _function_calls,
    "options": _option_calls,
}


# ── settings files and commands ──


def settings_text(site: Site, form: QuestionForm) -> str:
    """Return a settings file that asks the same question."""
    settings = site.settings
    constraints = constraints_of(site, form)
    # A settings file does not name code.
    allowed = {name: v for name, v in constraints.items() if not VERBS[name].runs_code}
    kinds = {toml_value(name): kind for name, kind in settings.features.items()}
    parts = ["# bayescfx explain --settings question.toml\n", *_toml_note(site)]
    parts.append(_assignments(_file_settings(settings, form)))
    if kinds:
        parts.append(f"\n[features]\n{_assignments(kinds)}")
    parts.append(f"\n[space]\n{_assignments(allowed)}")
    return "".join(parts).rstrip("\n")


def _toml_note(site: Site) -> list[str]:
    """Return a comment if the answer on the page may differ from that of the command."""
    if not site.shares_evaluations:
        return []
    return ["# The page reuses rows that earlier questions have scored; this command does not.\n"]


def _file_settings(settings: Settings, form: QuestionForm) -> dict[str, Any]:
    """Return the settings of a question by name, without empty ones."""
    model = os.path.abspath(settings.model) if os.path.exists(settings.model) else settings.model
    values: dict[str, Any] = {} if settings.names_code else {"model": model}
    values["data"] = os.path.abspath(settings.data)
    values |= {name: getattr(settings, name) for name in DATA_SETTINGS}
    values |= {"query": json.dumps(form.cells, ensure_ascii=False), "target": form.target}
    values |= _search_settings(form)
    return {name: value for name, value in values.items() if value not in (None, (), [])}


def _search_settings(form: QuestionForm) -> dict[str, Any]:
    """Return the settings of the search; `diverse` only if it is on."""
    values = {name: getattr(form, name) for name in SEARCH_SETTINGS}
    if not values["diverse"]:
        del values["diverse"]
    return values


def _assignments(table: Mapping[str, Any]) -> str:
    """Return a table as lines of TOML."""
    return "".join(f"{name} = {toml_value(value)}\n" for name, value in table.items())


def shell_commands(site: Site, form: QuestionForm) -> str:
    """Return commands that write a settings file and ask the question.

    Code and trust are arguments of the command: a settings file must not decide which code runs.
    """
    settings = site.settings
    words = ["bayescfx", "explain", "--settings", "question.toml"]
    if settings.names_code:
        words += ["--model", settings.model]
    for verb in (verb for verb in VERBS.values() if verb.runs_code):
        for name, source in settings.space.get(verb.name, {}).items():
            words += [verb.option, f"{name}={source}"]
    if settings.trust_pickle:
        words += ["--trust-pickle"]
    if settings.trust:
        words += ["--trust", ",".join(settings.trust)]
    text = settings_text(site, form)
    return f"cat > question.toml <<'END'\n{text}\nEND\n{shlex.join(words)}\n"


#: How to write the programs, by the ending of the file.
PROGRAMS: dict[str, Callable[[Site, QuestionForm], str]] = {
    "py": python_program,
    "toml": settings_text,
    "sh": shell_commands,
}
