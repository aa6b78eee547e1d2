"""The commands and their options, as tables; nothing here needs NumPy or pandas.

A new command is a function of the parsed options and a `Console`, and a line in `COMMANDS`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence

TYPE_CHECKING = False  # as `typing` has it, without the time to load that
if TYPE_CHECKING:
    from typing import Any, NoReturn

SYNTAX = "'>= 150', '<= 0.3', '+20%', '-15' (15 less), '±10%', '[140, 160]', '150' or '= -15'"


class Option:
    """An option of the command line and, for most, of a settings file."""

    def __init__(
        self,
        flag: str,
        kind: str,  # of `KINDS`
        help: str,
        metavar: str | None = None,
        default: Any = None,
        key: str = "",  # its name in a settings file, if not that of the flag
    ) -> None:
        self.flag, self.kind, self.help = flag, kind, help
        self.metavar, self.default = metavar, default
        self.key = key or flag.lstrip("-").replace("-", "_")


class Command:
    """A command: where its function is, what help says, and what it takes."""

    def __init__(
        self,
        function: str,
        help: str,
        description: str,
        own: tuple[Option, ...] = (),
        groups: tuple[str, ...] = (),  # of `OPTIONS`
        out: str | None = None,  # the kinds of files it writes
    ) -> None:
        self.function, self.help, self.description = function, help, description
        self.own, self.groups, self.out = own, groups, out


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


#: How each kind of option is read from the command line, its types in a settings file, their name.
KINDS: dict[str, tuple[dict[str, Any], tuple[type, ...], str]] = {
    "text": ({}, (str,), "a text"),
    "path": ({}, (str,), "a text"),  # relative to the settings file
    "fault": ({"choices": ("raise", "skip")}, (str,), "a text"),
    "whole": ({"type": int}, (int,), "a whole number"),
    "number": ({"type": float}, (int, float), "a number"),
    "list": ({"type": _names}, (list,), "a list"),
    "lines": ({"action": "append"}, (list,), "a list"),
    "names": ({"type": _names, "action": "extend"}, (list,), "a list of names"),
    "texts": ({"action": "append"}, (list,), "a list of texts"),
    "lists": ({"type": _names, "action": "append"}, (list,), "a list of lists of names"),
    "table": ({"action": "append"}, (dict,), "a table"),  # of NAME=VALUE
    "switch": ({"action": "store_true", "default": None}, (bool, dict), "true or a table"),
    "words": ({"nargs": "*"}, (), ""),
    "files": ({"action": "append", "default": []}, (), ""),
}

#: The options that several commands have, by the title above them.
OPTIONS: dict[str, tuple[Option, ...]] = {
    "model and data": (
        Option("--settings", "text", "options and space from a .toml file", "FILE"),
        Option(
            "--model",
            "text",
            "a file (FORMATS), http://…, or package.module:function",
            "M",
        ),
        Option("--data", "path", ".csv or .parquet like the training data", "FILE"),
        Option("--drop", "list", "columns of the data to ignore", "A,B", ()),
        Option(
            "--kind",
            "table",
            "real, integer, ordinal or categorical, where the inferred kind is wrong",
            "NAME=KIND",
            {},
            key="features",
        ),
        Option("--label", "text", "classifier: whose probability (default: the second of two)"),
        Option("--output", "text", "which output, if the model has several"),
        Option("--trust-pickle", "switch", "load .joblib and .pkl files", default=False),
        Option("--trust", "list", "types in a .skops file", "TYPES", ()),
        Option("--header", "lines", "sent to an endpoint; repeatable", "'K: V'", ()),
        Option("--http-timeout", "number", "seconds (default: 30)", "S", 30.0),
        Option("--retries", "whole", "of a busy endpoint (default: 4)", default=4),
        Option("--batch", "whole", "rows per request (default: 1000)", "N", 1000),
    ),
    "question and search": (
        Option("--target", "text", SYNTAX, "T"),
        Option("-n", "whole", "how many answers (default: 1)", "N", 1),
        Option("--budget", "whole", "rows sent to the model, at most (default: 100)", default=100),
        Option("--timeout", "number", "seconds, at most", "S"),
        Option("--seed", "whole", "same seed, same answer (default: 0)", default=0),
        Option("--tolerance", "number", "share of the change that may be missed", default=0.05),
        Option(
            "--method",
            "text",
            "bayes-cfx, bayes, random, lbfgsb, gradient (default: bayes-cfx)",
            default="bayes-cfx",
        ),
        Option("--on-fault", "fault", "rows for which the model fails", default="raise"),
        Option("--evaluations", "path", "keep what the model said, and use it next time", "FILE"),
    ),
    "what may change": (
        Option("--fix", "names", "never change", "A,B"),
        Option("--allow", "names", "only these may change", "A,B"),
        Option("--only-up", "names", "only rise", "A,B"),
        Option("--only-down", "names", "only fall", "A,B"),
        Option("--between", "table", "limits; levels as job=clerk|cook; repeatable", "'bmi=18:32'"),
        Option("--move", "table", "limits relative to the query; repeatable", "'hour=-2:2'"),
        Option("--require", "texts", "a rule; repeatable", "'a <= b'"),
        Option(
            "--group",
            "table",
            "one-hot columns that are one feature; repeatable",
            "'colour=red,blue'",
            key="groups",
        ),
        Option(
            "--derive",
            "table",
            "a column computed from others; repeatable",
            "'bmi=module:function'",
        ),
        Option("--together", "lists", "change the same way", "A,B"),
        Option("--max-changes", "whole", "change at most so many", "K"),
        Option("--near-data", "switch", "stay close to rows of the data"),
    ),
}

COMMANDS: dict[str, Command] = {
    "demo": Command(
        "bayescfx.cli.demo:demo",
        "a model, a question and its answer in a minute",
        "Train a model on diabetes data, ask a question, show the answer.",
        (Option("--folder", "text", "where picture and report go (default: .)", default="."),),
    ),
    "explain": Command(
        "bayescfx.cli.commands:explain",
        "answer one question about a model",
        "Say what would have to change in one row.",
        (
            Option(
                "--query",
                "text",
                "row number in the data (0 is the first), a JSON object, a file with one row, "
                "or - ",
                "ROW|JSON|FILE",
            ),
        ),
        tuple(OPTIONS),
        ".json (complete), .csv, .html (report), .png, .svg or .pdf (picture)",
    ),
    "explain-many": Command(
        "bayescfx.cli.commands:explain_many",
        "answer one for each row of a file",
        "Say what would have to change in each row of a file.",
        (Option("--queries", "path", ".csv or .parquet with a row for each question", "FILE"),),
        tuple(OPTIONS),
        ".csv, .parquet (one table), .json (complete) or .html (report)",
    ),
    "inspect": Command(
        "bayescfx.cli.inspecting:inspect",
        "what is inferred from data, and corrections",
        "Show what is inferred from the data, and how to correct it.",
        (),
        ("model and data", "what may change"),
        "a settings file .toml to correct and to share",
    ),
    "report": Command(
        "bayescfx.cli.commands:report",
        "an answer as a page that works offline",
        "Write an answer as a page that works offline and prints well.",
        (Option("answer", "text", "what explain --out wrote", "answer.json"),),
        out=".html (report), .csv, .png, .svg or .pdf (picture)",
    ),
    "reproduce": Command(
        "bayescfx.cli.commands:reproduce",
        "run the paper's experiments (in a clone)",
        "Run the paper's experiments; needs a clone of the repository.",
        (
            Option("experiments", "words", "which ones; all by default"),
            Option("--quick", "switch", "small versions, into build/"),
            Option("--out", "text", "where results, figures and page go", "FOLDER"),
            Option("--data", "text", "where the paper's data are", "FOLDER"),
        ),
    ),
}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is, and exit with 2."""
        self.exit(2, f"error: {message}. See {self.prog} --help.\n")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line.

    >>> parse(["explain", "--target", "-15%"]).target
    '-15%'
    """
    words, rest = [], iter(argv)
    for word in rest:  # argparse would take the value of `--target -15%` for an option
        value = next(rest, None) if word in ("--target", "--output", "--label") else None
        words.append(word if value is None else f"{word}={value}")
    return make_parser(argv).parse_args(words)


def make_parser(argv: Sequence[str] = ()) -> Parser:
    """Return the parser, with the options of those commands that stand in `argv`."""
    parser = Parser(
        prog="bayescfx",
        description="What would have to change for a model to answer as wished?",
        epilog="""\
examples:
  bayescfx demo
  bayescfx inspect --data houses.csv --model model.onnx
  bayescfx explain --model model.txt --data houses.csv --query 12 --target "+20%" --fix year
  bayescfx explain --model model.cbm --data people.csv --query '{"age": 41, …}' --target ">= 0.5"
  bayescfx explain-many --model http://localhost:5000 --data X.csv --queries Q.csv --target "-15"

exit codes:
  0 reached   3 best guess   4 unreachable   2 bad input   1 unexpected
""",
        formatter_class=_formatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(
        dest="command", metavar="command", parser_class=Parser, prog=parser.prog
    )
    for name, command in COMMANDS.items():
        child = commands.add_parser(
            name,
            help=command.help,
            description=command.description,
            formatter_class=_formatter,
        )
        for title, options in _groups(command) if name in argv else ():
            group = child.add_argument_group(title) if title else child
            for option in options:
                _add(group, option)
    return parser


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Return a formatter as wide as the terminal, without the archives argparse loads for that."""
    try:
        columns = int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size().columns
    except (ValueError, OSError):
        columns = 80
    return argparse.RawDescriptionHelpFormatter(prog, width=columns - 2)


def _groups(command: Command) -> Iterator[tuple[str, tuple[Option, ...]]]:
    """Yield the options of a command by the title above them."""
    for title in command.groups[:1]:
        yield title, OPTIONS[title]
    yield "", command.own
    for title in command.groups[1:]:
        yield title, OPTIONS[title]
    if command.out is not None:
        files = Option("--out", "files", command.out, "FILE")
        yield "output", (files, Option("--json", "switch", "JSON on stdout, for scripts"))
    quiet = Option("--quiet", "switch", "no notes and no progress")
    yield "messages", (quiet, Option("--debug", "switch", "a traceback with each error"))


def _add(group: Any, option: Option) -> None:
    text = option.help.replace("%", "%%")
    if "FORMATS" in text:
        from bayescfx.io.loaders import LOADERS

        text = text.replace("FORMATS", ", ".join(LOADERS))
    settings = {"help": text, **KINDS[option.kind][0]}
    if option.flag.startswith("-"):
        settings["dest"] = option.key
    if option.metavar is not None:
        settings["metavar"] = option.metavar
    group.add_argument(option.flag, **settings)
