"""A question and its answer as files, and as the Python or the command that asks the same."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from bayescfx.cli.answers import write
from bayescfx.cli.asking import Asked
from bayescfx.cli.inspecting import toml_value
from bayescfx.cli.settings import Settings
from bayescfx.cli.spaces import as_values
from bayescfx.cli.targets import parse_call
from bayescfx.io.loaders import is_code
from bayescfx.result.explanation import Explanation
from bayescfx.result.wording import ID
from bayescfx.web.forms import AskForm
from bayescfx.web.site import Site

#: What `explain` takes beside the row and the target.
SETTINGS = ("method", "budget", "n", "tolerance", "timeout", "seed")


def exported(form: str, site: Site, asked: AskForm, answer: Explanation) -> bytes:
    """Return a question and its answer in one of the `FORMS`."""
    made: Callable[..., str] | None = FORMS[form]
    if made is not None:
        return made(site, asked).encode()
    with tempfile.TemporaryDirectory() as folder:
        path, about = os.path.join(folder, f"answer.{form}"), answer.about
        names = pd.Index([about["row"]], name=about[ID]) if ID in about else None
        write(Asked({0: answer}, names=names, single=True), path)
        return Path(path).read_bytes()


def python(site: Site, asked: AskForm) -> str:
    """Return a program that asks the same question."""
    settings, space = site.settings, site.space
    label = "" if settings.label is None else repr(settings.label)
    known = {name: f for name, f in space.features.items() if name in settings.features}
    kinds = ", ".join(f"{name!r}: cfx.{feature!r}" for name, feature in known.items())
    gone = [name for name in (settings.id, *settings.drop) if name is not None]
    dropped = f".drop(columns={gone!r}, errors='ignore')" if gone else ""
    named = {"rng" if n == "seed" else n: getattr(asked, n) for n in SETTINGS}
    make, numbers, wanted = parse_call(asked.target)
    wish = [*map(repr, numbers), *(f"{name}={value!r}" for name, value in wanted.items())]
    verbs = [f"    .{call}" for call in _verbs(together(site, asked))]
    lines = [
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
        *verbs,
        ")",
        f"query = {asked.cells!r}",
        "answer = cfx.explain(",
        f"    loaded.scoring({label}),",
        "    query,",
        "    space,",
        f"    cfx.{make.__name__}({', '.join(wish)}),",
        *(f"    {name}={value!r}," for name, value in named.items()),
        ")",
        "print(answer)",
    ]
    return "\n".join(lines) + "\n"


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


def _verbs(wishes: dict[str, Any]) -> list[str]:
    """Return wishes as calls of the verbs of a space."""
    calls = []
    for verb, wish in wishes.items():
        if verb in ("fix", "allow", "only_up", "only_down"):
            calls.append(f"{verb}({', '.join(map(repr, wish))})")
        elif verb == "require":
            calls += [f"require({rule!r})" for rule in wish]
        elif verb == "together":
            calls += [f"together({', '.join(map(repr, names))})" for names in wish]
        elif verb == "near_data":
            calls.append("near_data(data)")
        elif verb == "cost":
            calls.append(f"cost({', '.join(f'{name}={value!r}' for name, value in wish.items())})")
        elif verb == "groups":
            calls += [f"group({name!r}, {columns!r})" for name, columns in wish.items()]
        elif verb == "derive":
            calls += [f"derive({name!r}, ...)  # {source}" for name, source in wish.items()]
        else:
            calls.append(f"{verb}({wish!r})")
    return calls


def toml(site: Site, asked: AskForm) -> str:
    """Return a settings file that asks the same question."""
    settings = site.settings
    lines = [
        "# bayescfx explain --settings question.toml; what earlier questions learnt is not used"
    ]
    given = {name: getattr(settings, name) for name in ("id", "na", "drop", "label", "output")}
    given = {"model": settings.model, "data": os.path.abspath(settings.data), **given}
    if is_code(settings.model):  # decides what code runs: not in a file
        del given["model"]
    elif os.path.exists(settings.model):
        given["model"] = os.path.abspath(settings.model)
    given |= {"query": json.dumps(asked.cells, ensure_ascii=False), "target": asked.target}
    given |= {name: getattr(asked, name) for name in SETTINGS}
    kept = {name: value for name, value in given.items() if value not in (None, (), [])}
    lines += [f"{name} = {toml_value(value)}" for name, value in kept.items()]
    if settings.features:
        lines += ["", "[features]"]
        lines += [f"{toml_value(n)} = {toml_value(kind)}" for n, kind in settings.features.items()]
    wishes = together(site, asked)
    wishes.pop("derive", None)  # decides what code runs, too
    return "\n".join(
        [*lines, "", "[space]", *(f"{v} = {toml_value(w)}" for v, w in wishes.items())]
    )


def shell(site: Site, asked: AskForm) -> str:
    """Return commands that write the settings and ask the question."""
    settings, words = site.settings, ["bayescfx", "explain", "--settings", "question.toml"]
    words += ["--model", settings.model] if is_code(settings.model) else []
    for name, source in settings.space.get("derive", {}).items():
        words += ["--derive", f"{name}={source}"]
    words += ["--trust-pickle"] if settings.trust_pickle else []
    words += ["--trust", ",".join(settings.trust)] if settings.trust else []
    text = toml(site, asked)
    return f"cat > question.toml <<'END'\n{text}\nEND\n{shlex.join(words)}\n"


def together(site: Site, asked: AskForm) -> dict[str, Any]:
    """Return what both allow, whoever started the page and the page, as wishes of one."""
    house = as_values(site.space, site.settings.space)
    page = as_values(site.space, asked.space.said())
    both = {**house, **page}
    for verb in house.keys() & page.keys():
        if verb == "allow":
            both[verb] = [name for name in page[verb] if name in house[verb]]
        elif isinstance(house[verb], list):
            both[verb] = [*house[verb], *page[verb]]
        elif verb in ("between", "move"):
            common = house[verb].keys() & page[verb].keys()
            narrowed = {n: _common(site, n, verb, house[verb][n], page[verb][n]) for n in common}
            both[verb] = {**house[verb], **page[verb], **narrowed}
        elif isinstance(house[verb], dict):
            both[verb] = {**house[verb], **page[verb]}
        elif verb == "max_changes":
            both[verb] = min(house[verb], page[verb])
    return both


def _common(site: Site, name: str, verb: str, house: Any, page: Any) -> list[Any]:
    """Return the limits that both allow."""
    feature = site.space.features[name]
    if verb == "between" and feature.levelled:
        return [level for level in page if level in house]

    def code(value: Any) -> float:
        return float(value) if verb == "move" else feature.code(value, name)

    ends = []
    for narrowest, pair in zip((max, min), zip(house, page, strict=True), strict=True):
        given = [value for value in pair if value is not None]
        ends.append(narrowest(given, key=code) if given else None)
    return ends


#: By the ending of a file: how it is made; None as the command line writes an answer.
FORMS: dict[str, Callable[[Site, AskForm], str] | None] = {
    "json": None,
    "csv": None,
    "html": None,
    "md": None,
    "py": python,
    "toml": toml,
    "sh": shell,
}
