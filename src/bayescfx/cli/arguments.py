"""The commands and the parser of the command line.

Help needs neither NumPy nor pandas: the options of a command are loaded when it is named. A new
command is a function of the parsed options and a `Console`, and an entry of `COMMANDS`.
"""

from __future__ import annotations

import argparse

TYPE_CHECKING = False  # as in `typing`, which takes longer to load than this
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


class Command:
    """A command of the command line.

    Parameters
    ----------
    function : str
        ``package.module:function`` of the parsed options and a `Console`; returns the exit code.
    summary : str
        One line for help.
    options : str
        ``package.module:function`` that adds the options to a parser and gets the command, too.
    out : str
        Help on the files that ``--out`` writes; names every ending.
    """

    def __init__(self, function: str, summary: str, options: str, out: str = "") -> None:
        self.function = function
        self.summary = summary
        self.options = options
        self.out = out

    def add_options(self, parser: Parser) -> None:
        """Add the options of the command to a parser."""
        from pkgutil import resolve_name  # which loads `typing`

        add = resolve_name(self.options)
        add(parser, self)


COMMANDS: dict[str, Command] = {
    "demo": Command(
        "bayescfx.cli.demo:demo",
        "train a model on diabetes data, ask a question, show the answer",
        "bayescfx.cli.command_options:add_demo",
    ),
    "explain": Command(
        "bayescfx.cli.commands:explain",
        "find what would have to change in one row",
        "bayescfx.cli.command_options:add_explain",
        ".json (complete), .csv, .parquet, .xlsx, .md, .html (report), .png, .svg or .pdf "
        "(picture)",
    ),
    "predict": Command(
        "bayescfx.cli.commands:predict",
        "change a row by hand: its output, the distance to the target, broken constraints",
        "bayescfx.cli.command_options:add_predict",
    ),
    "explain-many": Command(
        "bayescfx.cli.commands:explain_many",
        "find what would have to change in each row of a file",
        "bayescfx.cli.command_options:add_explain_many",
        ".csv, .parquet, .xlsx (one table), .json (complete), .md, .html or .pdf (report), .png "
        "or .svg (what moves)",
    ),
    "inspect": Command(
        "bayescfx.cli.inspecting:inspect",
        "show what is inferred from the data, and how to correct it",
        "bayescfx.cli.command_options:add_inspect",
        "a settings file .toml to correct and to share",
    ),
    "serve": Command(
        "bayescfx.web.serving:serve",
        "open a page to ask on, in a browser on this machine",
        "bayescfx.cli.command_options:add_serve",
    ),
    "report": Command(
        "bayescfx.cli.commands:report",
        "write an answer as a page that works offline and prints well",
        "bayescfx.cli.command_options:add_report",
        ".html (report), .csv, .parquet, .xlsx, .md, .json, .png, .svg or .pdf (picture; of many a "
        "report)",
    ),
    "store": Command(
        "bayescfx.cli.storing:store",
        "manage files of evaluations: check, list, export FILE OUT, merge OUT FILES",
        "bayescfx.cli.command_options:add_store",
    ),
    "reproduce": Command(
        "bayescfx.cli.reproducing:reproduce",
        "run the paper's experiments; needs a clone of the repository",
        "bayescfx.cli.command_options:add_reproduce",
    ),
}

EPILOG = """\
examples:
  bayescfx demo
  bayescfx inspect --data houses.csv --model model.onnx
  bayescfx explain --model model.txt --data houses.csv --query 12 --target "+20%" --fix year
  bayescfx explain --model model.cbm --data people.csv --query '{"age": 41, …}' --target ">= 0.5"
  bayescfx explain-many --model http://localhost:5000 --data X.csv --queries Q.csv --target "-15"

exit codes:
  0 reached   3 best guess   4 unreachable   2 bad input   1 unexpected   130 interrupted
"""

#: Options whose value may begin with a minus; argparse would take it for another option.
SIGNED = ("--target", "--output", "--label")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Write what is wrong and how to get help, and exit with 2."""
        self.exit(2, f"error: {message}. See {self.prog} --help.\n")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    words: list[str] = []
    for word in argv:
        if words and words[-1] in SIGNED:
            words[-1] = f"{words[-1]}={word}"
        else:
            words.append(word)
    return make_parser(argv).parse_args(words)


def make_parser(argv: Sequence[str] = ()) -> Parser:
    """Return the parser, with the options of the commands that are named in `argv`."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = Parser(
        prog="bayescfx",
        description="Find what would have to change for a model to predict something else.",
        epilog=EPILOG,
        formatter_class=formatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="command", prog=parser.prog)
    for name, command in COMMANDS.items():
        summary = command.summary
        child = commands.add_parser(name, help=summary, formatter_class=formatter)
        child.description = f"{summary[0].upper()}{summary[1:]}."
        if name in argv:
            command.add_options(child)
    return parser
