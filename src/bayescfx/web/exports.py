"""A question and its answer as files, and as the Python or the command that asks the same."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from bayescfx.models.loaders import is_code
from bayescfx.requests.answer_files import Answers, write_answers
from bayescfx.requests.constraints import read_verbs
from bayescfx.requests.settings import Settings
from bayescfx.requests.target_text import parse_call
from bayescfx.requests.toml_text import toml_value
from bayescfx.result.explanation import Explanation
from bayescfx.result.wording import ID
from bayescfx.web.forms import AskForm
from bayescfx.web.site import Site

#: What `explain` takes beside the row and the target.
SETTINGS = ("method", "budget", "n", "tolerance", "timeout", "seed")


def exported(form: str, site: Site, asked: AskForm, answer: Explanation) -> bytes:
    """Return a question and its answer in one of the `FORMS`, or as the command line writes it."""
    if form in FORMS:
        return FORMS[form](site, asked).encode()
    with tempfile.TemporaryDirectory() as folder:
        path, about = os.path.join(folder, f"answer.{form}"), answer.about
        names = pd.Index([about["row"]], name=about[ID]) if ID in about else None
        write_answers(Answers(explanations={0: answer}, names=names, is_single=True), path)
        return Path(path).read_bytes()


def python(site: Site, asked: AskForm) -> str:
    """Return a program that asks the same question."""
    settings = site.settings
    label = "" if settings.label is None else repr(settings.label)
    known = {name: f for name, f in site.space.features.items() if name in settings.features}
    kinds = ", ".join(f"{name!r}: cfx.{feature!r}" for name, feature in known.items())
    gone = [name for name in (settings.id, *settings.drop) if name is not None]
    dropped = f".drop(columns={gone!r}, errors='ignore')" if gone else ""
    named = {"rng" if n == "seed" else n: getattr(asked, n) for n in SETTINGS}
    make, numbers, wanted = parse_call(asked.target)
    calls = [f"    .{call}" for wish in together(site, asked).items() for call in _calls(*wish)]
    return "\n".join(
        [
            "import pandas as pd",
            "",
            "import bayescfx as cfx",
            "",
            "# What earlier questions on the page had learnt of the model is not known here.",
            f"loaded = cfx.load_model({settings.model!r}{_loading(settings)})",
            f"data = {_reading(settings)}{dropped}",
            "data = data[loaded.select(list(data.columns))]",
            "space = (",
            f"    cfx.Space.from_data(data{', {' + kinds + '}' if kinds else ''})",
            *calls,
            ")",
            f"query = {asked.cells!r}",
            "answer = cfx.explain(",
            f"    loaded.scoring({label}),",
            "    query,",
            "    space,",
            f"    cfx.{make.__name__}({_arguments(*numbers, **wanted)}),",
            *(f"    {name}={value!r}," for name, value in named.items()),
            ")",
            "print(answer)\n",
        ]
    )


def _arguments(*given: Any, **named: Any) -> str:
    """Return arguments as a call has them."""
    return ", ".join([*map(repr, given), *(f"{name}={value!r}" for name, value in named.items())])


def _loading(settings: Settings) -> str:
    """Return what a model is loaded with, beside its name."""
    given = ["pickle=True"] if settings.trust_pickle else []
    given += [f"types={tuple(settings.trust)!r}"] if settings.trust else []
    trust = f", trust=cfx.Trust({', '.join(given)})" if given else ""
    return trust + (f", output={settings.output!r}" if settings.output is not None else "")


def _reading(settings: Settings) -> str:
    """Return how the data are read; a comma stands between cells, or a tab."""
    if settings.data.endswith(".parquet"):
        return f"pd.read_parquet({settings.data!r})"
    tabs = ", sep='\\t'" if ".tsv" in settings.data else ""
    missing = ["", *map(str, settings.na)]
    return f"pd.read_csv({settings.data!r}{tabs}, keep_default_na=False, na_values={missing!r})"


def _calls(verb: str, wish: Any) -> Iterable[str]:
    """Return a wish as calls of the verbs of a space."""
    if verb in ("fix", "allow", "only_up", "only_down"):
        return [f"{verb}({_arguments(*wish)})"]
    if verb == "require":
        return [f"require({rule!r})" for rule in wish]
    if verb == "together":
        return [f"together({_arguments(*names)})" for names in wish]
    if verb == "near_data":
        more = f", {_arguments(**wish)}" if isinstance(wish, dict) and wish else ""
        return [] if wish is False else [f"near_data(data{more})"]
    if verb == "cost":
        return [f"cost({_arguments(**wish)})"]
    if verb == "groups":
        return [f"group({name!r}, {columns!r})" for name, columns in wish.items()]
    if verb == "derive":
        return [f"derive({name!r}, ...)  # {source}" for name, source in wish.items()]
    return [f"{verb}({wish!r})"]


def toml(site: Site, asked: AskForm) -> str:
    """Return a settings file that asks the same question."""
    settings, model = site.settings, site.settings.model
    given: dict[str, Any] = {"model": os.path.abspath(model) if os.path.exists(model) else model}
    if is_code(model):  # decides what code runs: not in a file
        given = {}
    given["data"] = os.path.abspath(settings.data)
    given |= {name: getattr(settings, name) for name in ("id", "na", "drop", "label", "output")}
    given |= {"query": json.dumps(asked.cells, ensure_ascii=False), "target": asked.target}
    given |= {name: getattr(asked, name) for name in SETTINGS}
    given = {name: value for name, value in given.items() if value not in (None, (), [])}
    wishes = together(site, asked)
    wishes.pop("derive", None)  # decides what code runs, too
    kinds = {toml_value(name): kind for name, kind in settings.features.items()}
    text = (
        "# bayescfx explain --settings question.toml; what earlier questions learnt is not used\n"
    )
    text += _assigned(given) + (f"\n[features]\n{_assigned(kinds)}" if kinds else "")
    return f"{text}\n[space]\n{_assigned(wishes)}".rstrip("\n")


def _assigned(table: dict[str, Any]) -> str:
    return "".join(f"{name} = {toml_value(value)}\n" for name, value in table.items())


def shell(site: Site, asked: AskForm) -> str:
    """Return commands that write the settings and ask the question."""
    settings, words = site.settings, ["bayescfx", "explain", "--settings", "question.toml"]
    words += ["--model", settings.model] if is_code(settings.model) else []
    for name, source in settings.space.get("derive", {}).items():
        words += ["--derive", f"{name}={source}"]
    words += ["--trust-pickle"] if settings.trust_pickle else []
    words += ["--trust", ",".join(settings.trust)] if settings.trust else []
    return f"cat > question.toml <<'END'\n{toml(site, asked)}\nEND\n{shlex.join(words)}\n"


def together(site: Site, asked: AskForm) -> dict[str, Any]:
    """Return what both allow, whoever started the page and the page, as wishes of one."""
    both = (read_verbs(site.space, given) for given in (site.settings.space, asked.space.said()))
    wishes: dict[str, Any] = _both(site, (), *both)
    return wishes


def _both(site: Site, where: tuple[str, ...], house: Any, page: Any) -> Any:
    """Return two wishes as one; `where` are the verb and the feature that they are about."""
    verb = where[0] if where else ""
    if isinstance(house, dict) and isinstance(page, dict):
        shared = house.keys() & page.keys()
        common = {name: _both(site, (*where, name), house[name], page[name]) for name in shared}
        return {**house, **page, **common}
    if verb == "allow":
        return [name for name in page if name in house]
    if verb in ("between", "move"):
        return _common(site, where[1], verb, house, page)
    if verb == "max_changes":
        return min(house, page)
    if verb == "near_data":  # the page leaves the share of the data as it is
        return house if isinstance(house, dict) and house.get("quantile", 1.0) < 0.95 else page
    return [*house, *page] if isinstance(house, list) else page


def _common(site: Site, name: str, verb: str, house: Any, page: Any) -> list[Any]:
    """Return the limits that both allow."""
    feature = site.space.features[name]
    if verb == "between" and feature.levelled:
        return [level for level in page if level in house]

    def code(value: Any) -> float:
        return float(value) if verb == "move" else feature.code(value, name)

    lows, highs = (
        [end for end in ends if end is not None] for ends in zip(house, page, strict=True)
    )
    return [max(lows, key=code, default=None), min(highs, key=code, default=None)]


#: By the ending of a file: how it is made.
FORMS: dict[str, Callable[[Site, AskForm], str]] = {"py": python, "toml": toml, "sh": shell}
