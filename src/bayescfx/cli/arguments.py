"""The commands and their options, as tables; nothing here needs NumPy or pandas.

A new command is a function of the parsed options and a `Console`, and an entry of `COMMANDS`.
"""

from __future__ import annotations

import argparse
import os
import re

TYPE_CHECKING = False  # `typing` takes longer to load than all the rest of this
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, NoReturn

SYNTAX = (
    "'>= 150', '<= 0.3', '>= +20%' (at least 20 % more), '+20%', '-15' (15 less), '±10%', "
    "'[140, 160]', '150' or '= -15'"
)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


#: How each kind of option is read from the command line, its types in a settings file, their name.
KINDS: dict[str, tuple[dict[str, Any], tuple[type, ...], str]] = {
    "text": ({"type": str}, (str,), "a text"),
    "path": ({"type": str}, (str,), "a text"),  # relative to the settings file
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


class Option:
    """An option, written ``--flag/name=default  kind  METAVAR  help``: two blanks between.

    The name is that in a settings file, if it is not the flag's. METAVAR may be ``-``.
    """

    def __init__(self, line: str) -> None:
        spec, self.kind, self.metavar, self.help = re.split(r"\s{2,}", line.strip(), maxsplit=3)
        spec, _, default = spec.partition("=")
        flag, _, name = spec.partition("/")
        self.flag, self.key = flag, name or flag.lstrip("-").replace("-", "_")
        empty: dict[str, Any] = {"list": (), "lines": (), "table": {}}
        read = KINDS[self.kind][0].get("type", str)
        self.default = read(default) if default else empty.get(self.kind)

    def add_to(self, parser: Any, **words: str) -> None:
        """Let a parser, or a group of its options, know of it."""
        settings = {"help": self.help.replace("%", "%%").format(**words), **KINDS[self.kind][0]}
        if self.metavar != "-":
            settings["metavar"] = self.metavar
        if self.flag.startswith("-"):
            settings["dest"] = self.key
        parser.add_argument(self.flag, **settings)


def _options(table: str) -> tuple[Option, ...]:
    return tuple(Option(line) for line in table.splitlines() if line.strip())


#: The options that several commands have, by the title above them.
OPTIONS: dict[str, tuple[Option, ...]] = {
    "model and data": _options("""
        --settings          text    FILE       options and space from a .toml file
        --model             text    M          a file ({formats}), http://…, \
models:/… of MLflow, or package.module:function
        --data              path    FILE       .csv, .tsv or .parquet like the training data
        --na                lines   TEXT       a text that means a missing cell, as an empty one \
does; repeatable
        --id                text    COLUMN     names the rows: no feature, but in every answer
        --drop              list    A,B        columns of the data to ignore
        --kind/features     table   NAME=KIND  real, integer, categorical, an order such as \
'low < high' or how dates are written such as %d/%m/%Y, where the inferred kind is wrong
        --label             text    -          classifier: whose probability (default: the second \
of two)
        --output            text    -          which output, if the model has several
        --trust-pickle      switch  -          load .joblib and .pkl files
        --trust             list    TYPES      types in a .skops file
        --header            lines   'K: V'     sent to an endpoint; repeatable
        --http-timeout=30   number  S          seconds (default: 30)
        --retries=4         whole   -          of a busy endpoint (default: 4)
        --batch=1000        whole   N          rows per request (default: 1000)
    """),
    "": (),  # here are those that only one command has
    "question and search": _options(f"""
        --target            text    T          {SYNTAX}
        -n=1                whole   N          how many answers (default: 1)
        --budget            whole   -          rows sent to the model for a query, at most \
(default: 2000 for a file that runs here, else 100)
        --timeout           number  S          seconds, at most
        --seed=0            whole   -          same seed, same answer (default: 0)
        --tolerance=0.05    number  -          share of the change that may be missed
        --method=auto       text    -          auto, bayes-cfx, sweep, bayes, random, lbfgsb, \
gradient (default: auto)
        --on-fault=raise    fault   -          rows for which the model fails
        --evaluations       path    FILE       keep what the model said, and use it next time
        --forget            switch  -          remove this model's rows from it first
        --run               text    NAME       the same command under this name ends the same way
    """),
    "what may change": _options("""
        --fix           names   A,B                    never change
        --allow         names   A,B                    only these may change
        --only-up       names   A,B                    only rise
        --only-down     names   A,B                    only fall
        --between       table   'bmi=18:32'            limits; levels as job=clerk|cook; repeatable
        --move          table   'hour=-2:2'            limits relative to the query; repeatable
        --step/steps    table   'bmi=0.5'              move by multiples of it; repeatable
        --require       texts   'a <= b'               a rule; repeatable
        --group/groups  table   'colour=red,blue'      one-hot columns that are one feature; \
repeatable
        --derive        table   'bmi=module:function'  a column computed from others; repeatable
        --together      lists   A,B                    change the same way
        --max-changes   whole   K                      change at most so many
        --near-data     switch  -                      stay close to rows of the data
    """),
    "output": _options("""
        --out    files   FILE  {out}
        --json   switch  -     JSON on stdout, for scripts
    """),
    "reports": _options("""
        --title        text   -           what stands above it
        --output-name  text   -           what the model's output is called (default: prediction)
        --unit         text   -           of the output
        --about        table  NAME=VALUE  what else a reader should know; repeatable
    """),
    "messages": _options("""
        --quiet  switch  -     no notes and no progress
        --debug  switch  -     a traceback with each error
    """),
}


class Command:
    """A command: where its function is, what help says, and what it takes."""

    def __init__(
        self,
        function: str,
        does: str,
        own: str = "",  # options that only this command has
        groups: Iterable[str] = ("", "messages"),  # of `OPTIONS`
        out: str = "",  # the kinds of files it writes
    ) -> None:
        self.function, self.does, self.out = function, does, out
        self.own, self.groups = _options(own), tuple(groups)

    @property
    def flags(self) -> set[str]:
        """The options that it takes, as they are typed."""
        return {option.flag for title in self.groups for option in OPTIONS[title] or self.own}

    def add_to(self, parser: Parser) -> None:
        """Let a parser know the options of the command."""
        from bayescfx.models.loaders import LOADERS

        for title in self.groups:
            group = parser.add_argument_group(title) if title else parser
            for option in OPTIONS[title] or self.own:
                option.add_to(group, formats=", ".join(LOADERS), out=self.out)


COMMANDS: dict[str, Command] = {
    "demo": Command(
        "bayescfx.cli.commands:demo",
        "train a model on diabetes data, ask a question, show the answer",
        "--folder  text  -  where picture and report go (default: .)",
    ),
    "explain": Command(
        "bayescfx.cli.commands:explain",
        "say what would have to change in one row",
        "--query  text  ROW|JSON|FILE  row number of the data (0 is the first), name with --id, "
        "a JSON object, a file with one row, or - for any of these on standard input",
        OPTIONS,
        ".json (complete), .csv, .parquet, .xlsx, .md, .html (report), .png, .svg or .pdf "
        "(picture)",
    ),
    "predict": Command(
        "bayescfx.cli.commands:predict",
        "change a row by hand: its output, how far from the target, what it breaks",
        """
        --query           text    ROW|JSON|FILE  as in explain
        --set             files   NAME=VALUE     what is to be different, NAME= for a \
missing cell; repeatable
        --target          text    T              as in explain
        --tolerance=0.05  number  -              share of the change that may be missed
        --output-name     text    -              what the model's output is called (default: \
prediction)
        --unit            text    -              of the output
        --json            switch  -              JSON on stdout, for scripts
        """,
        ("model and data", "", "what may change", "messages"),
    ),
    "explain-many": Command(
        "bayescfx.cli.commands:explain_many",
        "say what would have to change in each row of a file",
        """
        --queries  path   FILE  .csv, .tsv or .parquet with a row for each question
        --jobs     whole  N     worker processes; -1 for every core
        """,
        OPTIONS,
        ".csv, .parquet, .xlsx (one table), .json (complete), .md, .html or .pdf (report), .png "
        "or .svg (what moves)",
    ),
    "inspect": Command(
        "bayescfx.cli.inspecting:inspect",
        "show what is inferred from the data, and how to correct it",
        "",
        ("model and data", "what may change", "output", "messages"),
        "a settings file .toml to correct and to share",
    ),
    "serve": Command(
        "bayescfx.web.serving:serve",
        "open a page to ask on, in a browser on this machine",
        """
        --evaluations  path    FILE   keep what the model said, and use it next time
        --rows         whole   N      of the data, scored for the page at first (default: 5000 for \
a file that runs here, else 100)
        --on-fault=raise  fault  -    rows for which the model fails
        --host         text    -      where to listen (default: 127.0.0.1, this machine only; \
elsewhere a token is asked for)
        --port         whole   -      (default: 8017; 0 for any that is free)
        --name         lines   -      another name of this machine in addresses; repeatable
        --token        text    -      instead of one by chance
        --open         switch  -      open the browser, too
        """,
        ("model and data", "", "what may change", "reports", "messages"),
    ),
    "report": Command(
        "bayescfx.cli.commands:report",
        "write an answer as a page that works offline and prints well",
        "answer  text  answer.json  what explain --out wrote",
        ("", "output", "reports", "messages"),
        ".html (report), .csv, .parquet, .xlsx, .md, .json, .png, .svg or .pdf (picture; of many a "
        "report)",
    ),
    "store": Command(
        "bayescfx.cli.storing:store",
        "look after files of evaluations: check, list, export FILE OUT, merge OUT FILES",
        """
        action  text   check|list|export|merge  what to do
        files   words  FILE                     export: FILE and a .csv, .parquet or .json; \
merge: a new file, then those to put into it
        """,
    ),
    "reproduce": Command(
        "bayescfx.cli.commands:reproduce",
        "run the paper's experiments; needs a clone of the repository",
        """
        experiments  words   -       which ones; all by default
        --quick      switch  -       small versions, into build/
        --out        text    FOLDER  where results, figures and page go
        --data       text    FOLDER  where the paper's data are
        """,
    ),
}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is, and exit with 2."""
        self.exit(2, f"error: {message}. See {self.prog} --help.\n")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
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
  0 reached   3 best guess   4 unreachable   2 bad input   1 unexpected   130 interrupted
""",
        formatter_class=_formatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="command", prog=parser.prog)
    for name, command in COMMANDS.items():
        child = commands.add_parser(name, help=command.does, formatter_class=_formatter)
        child.description = f"{command.does[0].upper()}{command.does[1:]}."
        if name in argv:
            command.add_to(child)
    return parser


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Return a formatter as wide as the terminal, without the archives argparse loads for that."""
    try:
        columns = int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size().columns
    except (ValueError, OSError):
        columns = 80
    return argparse.RawDescriptionHelpFormatter(prog, width=columns - 2)
