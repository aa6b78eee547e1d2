"""The commands and their options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from bayescfx.cli.targets import SYNTAX
from bayescfx.io.loaders import LOADERS
from bayescfx.search.methods import METHODS

_EXAMPLES = """\
examples:
  bayescfx demo
  bayescfx inspect --data houses.csv --model model.onnx
  bayescfx explain --model model.txt --data houses.csv --query 12 --target "+20%" --fix year
  bayescfx explain --model model.cbm --data people.csv --query '{"age": 41, …}' --target ">= 0.5"
  bayescfx explain-many --model http://localhost:5000 --data X.csv --queries Q.csv --target "-15"

exit codes:
  0 reached   3 best guess   4 unreachable   2 bad input   1 unexpected
"""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is, and exit with 2."""
        self.exit(2, f"error: {message}. See {self.prog} --help.\n")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line.

    Examples
    --------
    >>> parse(["explain", "--target", "-15%"]).target
    '-15%'
    """
    return make_parser().parse_args(_with_signs(argv))


def _with_signs(argv: Sequence[str]) -> list[str]:
    """Return the arguments with ``--target -15%`` joined: argparse would see an option."""
    joined: list[str] = []
    rest = iter(argv)
    for word in rest:
        value = next(rest, None) if word in ("--target", "--output", "--label") else None
        joined.append(word if value is None else f"{word}={value}")
    return joined


def make_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="bayescfx",
        description="What would have to change for a model to answer as wished?",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="command", parser_class=Parser)
    _demo(commands.add_parser("demo", help="a model, a question and its answer in a minute"))
    _explain(commands.add_parser("explain", help="answer one question about a model"))
    _explain_many(commands.add_parser("explain-many", help="answer one for each row of a file"))
    _inspect(commands.add_parser("inspect", help="what is inferred from data, and corrections"))
    _report(commands.add_parser("report", help="an answer as a page that works offline"))
    _reproduce(commands.add_parser("reproduce", help="run the paper's experiments (in a clone)"))
    return parser


def _demo(parser: Parser) -> None:
    parser.description = "Train a model on diabetes data, ask a question, show the answer."
    parser.add_argument("--folder", default=".", help="where picture and report go (default: .)")
    _common(parser)


def _explain(parser: Parser) -> None:
    parser.description = "Say what would have to change in one row."
    _model(parser)
    parser.add_argument(
        "--query",
        metavar="ROW|JSON|FILE",
        help="row number in the data (0 is the first), a JSON object, a file with one row, or - ",
    )
    _question(parser)
    _space(parser)
    _output(parser, ".json (complete), .csv, .html (report), .png, .svg or .pdf (picture)")


def _explain_many(parser: Parser) -> None:
    parser.description = "Say what would have to change in each row of a file."
    _model(parser)
    parser.add_argument(
        "--queries", metavar="FILE", help=".csv or .parquet with a row for each question"
    )
    _question(parser)
    _space(parser)
    _output(parser, ".csv, .parquet (one table), .json (complete) or .html (report)")


def _inspect(parser: Parser) -> None:
    parser.description = "Show what is inferred from the data, and how to correct it."
    _model(parser)
    _space(parser)
    _output(parser, "a settings file .toml to correct and to share")


def _report(parser: Parser) -> None:
    parser.description = "Write an answer as a page that works offline and prints well."
    parser.add_argument("answer", metavar="answer.json", help="what explain --out wrote")
    _output(parser, ".html (report), .csv, .png, .svg or .pdf (picture)")


def _reproduce(parser: Parser) -> None:
    parser.description = "Run the paper's experiments; needs a clone of the repository."
    parser.add_argument("experiments", nargs="*", help="which ones; all by default")
    parser.add_argument("--quick", action="store_true", help="small versions, into build/")
    parser.add_argument("--out", metavar="FOLDER", help="where results, figures and page go")
    parser.add_argument("--data", metavar="FOLDER", help="where the paper's data are")
    _common(parser)


def _common(parser: Parser) -> None:
    group = parser.add_argument_group("messages")
    group.add_argument("--quiet", action="store_true", help="no notes and no progress")
    group.add_argument("--debug", action="store_true", help="a traceback with each error")


def _output(parser: Parser, kinds: str) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--out", action="append", default=[], metavar="FILE", help=kinds)
    group.add_argument("--json", action="store_true", help="JSON on stdout, for scripts")
    _common(parser)


def _model(parser: Parser) -> None:
    group = parser.add_argument_group("model and data")
    group.add_argument("--settings", metavar="FILE", help="options and space from a .toml file")
    group.add_argument(
        "--model",
        metavar="M",
        help=f"a file ({', '.join(LOADERS)}), http://…, or package.module:function",
    )
    group.add_argument("--data", metavar="FILE", help=".csv or .parquet like the training data")
    group.add_argument("--drop", type=_names, metavar="A,B", help="columns of the data to ignore")
    group.add_argument(
        "--kind",
        action="append",
        metavar="NAME=KIND",
        help="real, integer, ordinal or categorical, where the inferred kind is wrong",
    )
    group.add_argument("--label", help="classifier: whose probability (default: the second of two)")
    group.add_argument("--output", help="which output, if the model has several")
    group.add_argument(
        "--trust-pickle", action="store_true", default=None, help="load .joblib and .pkl files"
    )
    group.add_argument("--trust", type=_names, metavar="TYPES", help="types in a .skops file")
    group.add_argument(
        "--header", action="append", metavar="'K: V'", help="sent to an endpoint; repeatable"
    )
    group.add_argument("--http-timeout", type=float, metavar="S", help="seconds (default: 30)")
    group.add_argument("--retries", type=int, help="of a busy endpoint (default: 4)")
    group.add_argument("--batch", type=int, metavar="N", help="rows per request (default: 1000)")


def _question(parser: Parser) -> None:
    group = parser.add_argument_group("question and search")
    group.add_argument("--target", metavar="T", help=SYNTAX.replace("%", "%%"))
    group.add_argument("-n", type=int, metavar="N", help="how many answers (default: 1)")
    group.add_argument("--budget", type=int, help="rows sent to the model, at most (default: 100)")
    group.add_argument("--timeout", type=float, metavar="S", help="seconds, at most")
    group.add_argument("--seed", type=int, help="same seed, same answer (default: 0)")
    group.add_argument("--tolerance", type=float, help="share of the change that may be missed")
    group.add_argument("--method", help=f"{', '.join(METHODS)} (default: bayes-cfx)")
    group.add_argument(
        "--on-fault", choices=("raise", "skip"), help="rows for which the model fails"
    )
    group.add_argument(
        "--evaluations", metavar="FILE", help="keep what the model said, and use it next time"
    )


def _space(parser: Parser) -> None:
    group = parser.add_argument_group("what may change")
    for flag, words in (
        ("--fix", "never change"),
        ("--allow", "only these may change"),
        ("--only-up", "only rise"),
        ("--only-down", "only fall"),
    ):
        group.add_argument(flag, type=_names, action="extend", metavar="A,B", help=words)
    for flag, example, words in (
        ("--between", "bmi=18:32", "limits; levels as job=clerk|cook"),
        ("--move", "hour=-2:2", "limits relative to the query"),
        ("--require", "a <= b", "a rule"),
        ("--group", "colour=red,blue", "one-hot columns that are one feature"),
        ("--derive", "bmi=module:function", "a column computed from others"),
    ):
        group.add_argument(
            flag,
            action="append",
            metavar=f"'{example}'",
            help=f"{words}; repeatable",
            dest="groups" if flag == "--group" else flag.removeprefix("--"),
        )
    group.add_argument(
        "--together", type=_names, action="append", metavar="A,B", help="change the same way"
    )
    group.add_argument("--max-changes", type=int, metavar="K", help="change at most so many")
    group.add_argument(
        "--near-data", action="store_true", default=None, help="stay close to rows of the data"
    )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
