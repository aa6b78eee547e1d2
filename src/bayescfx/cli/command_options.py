"""The options of each command."""

from __future__ import annotations

from argparse import ArgumentParser

from bayescfx.cli.arguments import Command
from bayescfx.requests.constraints import add_constraint_options
from bayescfx.requests.settings import GROUPS, MODEL, OPTIONS, QUESTION, REPORTS


def add_demo(parser: ArgumentParser, _: Command) -> None:
    """Add the options of `demo`."""
    parser.add_argument("--folder", help="where picture and report go (default: .)")
    _add_messages(parser)


def add_explain(parser: ArgumentParser, command: Command) -> None:
    """Add the options of `explain`."""
    _add_group(parser, MODEL)
    OPTIONS["query"].add_to(parser)
    _add_group(parser, QUESTION)
    add_constraint_options(parser)
    _add_output(parser, command)
    _add_group(parser, REPORTS)
    _add_messages(parser)


def add_predict(parser: ArgumentParser, _: Command) -> None:
    """Add the options of `predict`."""
    _add_group(parser, MODEL)
    OPTIONS["query"].add_to(parser)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a cell to change, NAME= for a missing cell; repeatable",
    )
    for name in ("target", "tolerance", "output_name", "unit"):
        OPTIONS[name].add_to(parser)
    _add_json(parser)
    add_constraint_options(parser)
    _add_messages(parser)


def add_explain_many(parser: ArgumentParser, command: Command) -> None:
    """Add the options of `explain-many`."""
    _add_group(parser, MODEL)
    OPTIONS["queries"].add_to(parser)
    OPTIONS["jobs"].add_to(parser)
    _add_group(parser, QUESTION)
    add_constraint_options(parser)
    _add_output(parser, command)
    _add_group(parser, REPORTS)
    _add_messages(parser)


def add_inspect(parser: ArgumentParser, command: Command) -> None:
    """Add the options of `inspect`."""
    _add_group(parser, MODEL)
    add_constraint_options(parser)
    _add_output(parser, command)
    _add_messages(parser)


def add_serve(parser: ArgumentParser, _: Command) -> None:
    """Add the options of `serve`."""
    _add_group(parser, MODEL)
    OPTIONS["evaluations"].add_to(parser)
    OPTIONS["on_fault"].add_to(parser)
    parser.add_argument(
        "--rows",
        type=int,
        metavar="N",
        help="rows of the data that the model scores for the page at first (default: 5000 for a "
        "file that runs here, else 100)",
    )
    parser.add_argument(
        "--host",
        help="where to listen (default: 127.0.0.1, this machine only; elsewhere a token is "
        "required)",
    )
    parser.add_argument("--port", type=int, help="(default: 8017; 0 for any that is free)")
    parser.add_argument(
        "--name",
        action="append",
        help="another name of this machine in addresses; repeatable",
    )
    parser.add_argument("--token", help="instead of a random one")
    parser.add_argument("--open", action="store_true", default=None, help="open the browser, too")
    add_constraint_options(parser)
    _add_group(parser, REPORTS)
    _add_messages(parser)


def add_report(parser: ArgumentParser, command: Command) -> None:
    """Add the options of `report`."""
    parser.add_argument("answer", metavar="answer.json", help="a file that explain --out wrote")
    _add_output(parser, command)
    _add_group(parser, REPORTS)
    _add_messages(parser)


def add_store(parser: ArgumentParser, _: Command) -> None:
    """Add the options of `store`."""
    parser.add_argument("action", metavar="check|list|export|merge", help="what to do")
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="export: FILE and a .csv, .parquet or .json; merge: a new file, then those to put "
        "into it",
    )
    _add_messages(parser)


def add_reproduce(parser: ArgumentParser, _: Command) -> None:
    """Add the options of `reproduce`."""
    parser.add_argument("experiments", nargs="*", help="which ones; all by default")
    parser.add_argument(
        "--quick", action="store_true", default=None, help="small versions, into build/"
    )
    parser.add_argument("--out", metavar="FOLDER", help="where results, figures and page go")
    parser.add_argument("--data", metavar="FOLDER", help="the folder of the paper's data")
    _add_messages(parser)


def _add_group(parser: ArgumentParser, title: str) -> None:
    """Add the options of `Settings` below a title."""
    group = parser.add_argument_group(title)
    if title == MODEL:
        group.add_argument("--settings", metavar="FILE", help="options and space from a .toml file")
    for option in GROUPS[title]:
        option.add_to(group)


def _add_output(parser: ArgumentParser, command: Command) -> None:
    """Add the options for results."""
    group = parser.add_argument_group("output")
    group.add_argument("--out", action="append", default=[], metavar="FILE", help=command.out)
    _add_json(group)  # type: ignore[arg-type]  # a group adds arguments as a parser does


def _add_json(parser: ArgumentParser) -> None:
    """Add the option for JSON."""
    parser.add_argument(
        "--json", action="store_true", default=None, help="JSON on stdout, for scripts"
    )


def _add_messages(parser: ArgumentParser) -> None:
    """Add the options for messages."""
    group = parser.add_argument_group("messages")
    group.add_argument(
        "--quiet", action="store_true", default=None, help="no notes and no progress"
    )
    group.add_argument(
        "--debug", action="store_true", default=None, help="a traceback with each error"
    )
