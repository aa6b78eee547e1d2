"""Pages of the reference that are made from the program itself: commands, options, settings."""

from __future__ import annotations

import re
from argparse import Action, _SubParsersAction
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from bayescfx.cli.arguments import COMMANDS, make_parser
from bayescfx.data import Feature
from bayescfx.requests.constraints import VERBS
from bayescfx.requests.option import KINDS, Option
from bayescfx.requests.settings import OPTIONS, Settings
from bayescfx.requests.settings_file import CODE_OPTIONS


def command_line() -> str:
    """Return every command with its options, as Markdown; shared options are listed once."""
    actions = make_parser(list(COMMANDS))._actions
    commands = next(a.choices for a in actions if isinstance(a, _SubParsersAction))
    takers: dict[tuple[str, str], list[str]] = {}  # of each group of options
    for name, parser in commands.items():
        for group in parser._action_groups:
            told = [_option(a) for a in group._group_actions if a.dest != "help"]
            if told:
                takers.setdefault((str(group.title), "\n\n".join(told)), []).append(name)
    page: list[str] = []
    for name, parser in commands.items():
        page += [f"## bayescfx {name}", str(parser.description), _program(f"bayescfx {name}")]
        page += [options for (_, options), names in takers.items() if names == [name]]
        others = [title for (title, _), names in takers.items() if name in names != [name]]
        links = [f"[{title}](#{title.replace(' ', '-')})" for title in others]
        page += [f"Options of {', '.join(links)}."] if links else []
    for (title, options), names in takers.items():
        if len(names) > 1:
            page += [f"## {title.capitalize()}", f"Taken by {', '.join(names)}."]
            page += [_program("bayescfx"), options]
    return "\n\n".join(page)


def _program(name: str) -> str:
    return f":::{{program}} {name}\n:::"


def _option(action: Action) -> str:
    """Return one option or argument with its help."""
    words = action.metavar or (action.choices and "|".join(action.choices)) or action.dest.upper()
    value = "" if action.nargs == 0 else str(words)
    names = ", ".join(f"{flag} {value}".rstrip() for flag in action.option_strings) or value
    return f":::{{option}} {names}\n{_escaped((action.help or '').replace('%%', '%'))}\n:::"


def settings() -> str:
    """Return what a settings file may hold, as Markdown."""
    return "\n".join(
        [
            *("## Options", "", *_table(OPTIONS), ""),
            *("## The table `[features]`", ""),
            "A column and its kind, an order, or a table with `kind` and its other properties:",
            '`sex = "categorical"`, `cut = "Fair < Good < Ideal"`,',
            '`bmi = { kind = "real", low = 18, high = 40, step = 0.5 }`.',
            *("", "| kind | may also have |", "|---|---|"),
            *(
                f"| `{name}` | {', '.join(f'`{field.name}`' for field in fields(kind))} |"
                for name, kind in Feature.kinds.items()
            ),
            *("", "## The table `[space]`", "", *_verbs()),
        ]
    )


def names() -> str:
    """Return the pages of the reference with the names they list, as Markdown."""
    folder = Path(__file__).resolve().parents[1] / "reference"
    order = re.findall(r"^([\w-]+)$", (folder / "index.md").read_text(encoding="utf-8"), re.M)
    lines = ["| page | names |", "|---|---|"]
    for page in order:
        text = (folder / f"{page}.md").read_text(encoding="utf-8")
        tables = re.findall(r"^   :toctree:.*\n(?:   :.*\n)*\n((?:   [\w.]+\n)+)", text, re.M)
        links = (f"{{py:obj}}`{name} <bayescfx.{name}>`" for name in "".join(tables).split())
        title = text.partition("\n")[0].removeprefix("# ")
        lines += [f"| [{title}]({page}.md) | {', '.join(links)} |"] if tables else []
    return "\n".join(lines)


def _table(known: Mapping[str, Option]) -> list[str]:
    """Return a line for each name that may be set."""
    lines = ["| name | value | meaning |", "|---|---|---|"]
    for name, option in known.items():
        if name in CODE_OPTIONS:  # they decide what code runs
            continue
        default = getattr(Settings, name, None)
        value = KINDS[option.kind].words
        if default not in (None, (), ""):
            value += f", `{default}` by default"
        meaning = re.sub(r" \(default: [\w.]+\)$|; repeatable", "", option.help)
        lines.append(f"| `{name}` | {value} | {_escaped(meaning)} |")
    return lines


def _verbs() -> list[str]:
    """Return a line for each verb that a settings file may hold."""
    lines = ["| name | value | meaning |", "|---|---|---|"]
    for name, verb in VERBS.items():
        if not verb.runs_code:
            lines.append(f"| `{name}` | {verb.parameter.words} | {_escaped(verb.help)} |")
    return lines


def _escaped(text: str) -> str:
    """Return text whose signs are no Markdown."""
    return re.sub(r"([\\`*_<>\[\]{}|#])", r"\\\1", text)


def sharper(gallery: object, name: object) -> None:
    """Make the pictures of an example as large as those of the other pages."""
    import matplotlib.pyplot as plt

    plt.rcParams["figure.dpi"] = 150


PAGES = {
    "reference/index": names,
    "reference/command-line": command_line,
    "reference/settings": settings,
}


def _append(app: Any, page: str, source: list[str]) -> None:
    if page in PAGES:
        source[0] += f"\n{PAGES[page]()}\n"


def setup(app: Any) -> dict[str, bool]:
    """Let Sphinx append what is made to the pages that introduce it."""
    app.connect("source-read", _append)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
