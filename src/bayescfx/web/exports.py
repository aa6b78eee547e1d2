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
    trust = ", trust=cfx.Trust(pickle=True)" if settings.trust_pickle else ""
    label = "" if settings.label is None else repr(settings.label)
    known = {name: f for name, f in space.features.items() if name in settings.features}
    kinds = ", ".join(f"{name!r}: cfx.{feature!r}" for name, feature in known.items())
    read = "read_parquet" if settings.data.endswith(".parquet") else "read_csv"
    missing = "" if read == "read_parquet" else ", keep_default_na=False, na_values=['']"
    named = {"rng" if n == "seed" else n: getattr(asked, n) for n in SETTINGS}
    make, numbers, wanted = parse_call(asked.target)
    wish = [*map(repr, numbers), *(f"{name}={value!r}" for name, value in wanted.items())]
    verbs = [f"    .{call}" for call in _verbs(together(settings.space, asked.space.said()))]
    lines = [
        "import pandas as pd",
        "",
        "import bayescfx as cfx",
        "",
        f"loaded = cfx.load_model({settings.model!r}{trust})",
        f"data = pd.{read}({settings.data!r}{missing})",
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
    lines = ["# bayescfx explain --settings question.toml"]
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
    wishes = together(settings.space, asked.space.said())
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


def together(house: dict[str, Any], page: dict[str, Any]) -> dict[str, Any]:
    """Return the wishes of whoever started the page and those of the page as one."""
    both = {**house, **page}
    for verb in house.keys() & page.keys():
        if isinstance(house[verb], list):
            both[verb] = [*house[verb], *page[verb]]
        elif isinstance(house[verb], dict):
            both[verb] = {**house[verb], **page[verb]}
    if "max_changes" in both:
        known = [wishes["max_changes"] for wishes in (house, page) if "max_changes" in wishes]
        both["max_changes"] = min(known)
    return both


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
