"""`Settings`: everything a question needs, from the command line and a settings file (TOML).

A settings file holds options by name, the table ``[features]`` that corrects what is inferred from
the data, and the table ``[space]`` with the constraints.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from bayescfx.errors import TARGET_SYNTAX, SettingsError
from bayescfx.models.loaders import LOADERS, is_code
from bayescfx.requests.constraints import extend_constraints
from bayescfx.requests.option import Option
from bayescfx.requests.settings_file import read_settings_file
from bayescfx.search.methods import METHODS

#: The names of the searches.
METHOD_NAMES = tuple(METHODS)

MODEL = "model and data"
QUESTION = "question and search"
REPORTS = "reports"


def option(group: str, kind: str, text: str, default: Any = None, **more: Any) -> Any:
    """Return a field of `Settings` that is an option of commands.

    `group` is the title above it in help, or empty for an option of a single command; `more` are
    fields of `Option`.
    """
    metadata = {"group": group, "option": {"kind": kind, "help": text, **more}}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of a question by name, with their defaults, and the constraints in `space`.

    Texts without which there is no question, such as `model`, are empty until they are given.
    """

    model: str = option(
        MODEL,
        "text",
        f"a file ({', '.join(LOADERS)}), http://…, models:/… of MLflow, or package.module:function",
        "",
        metavar="M",
    )
    data: str = option(
        MODEL, "path", ".csv, .tsv or .parquet like the training data", "", metavar="FILE"
    )
    na: tuple[str, ...] = option(
        MODEL,
        "lines",
        "a text that means a missing cell, as an empty one does; repeatable",
        (),
        metavar="TEXT",
    )
    id: str | None = option(
        MODEL,
        "text",
        "the column that identifies rows: not a feature, but in every answer",
        metavar="COLUMN",
    )
    drop: tuple[str, ...] = option(
        MODEL, "names", "columns of the data to ignore", (), metavar="A,B"
    )
    features: Mapping[str, Any] = option(
        MODEL,
        "table",
        "real, integer, categorical, an order such as 'low < high' or a date format such as "
        "%d/%m/%Y, where the inferred kind is wrong",
        {},
        typed_as="--kind",
        metavar="NAME=KIND",
    )
    label: str | None = option(
        MODEL, "text", "classifier: whose probability (default: the second of two)"
    )
    output: str | None = option(MODEL, "text", "which output, if the model has several")
    trust_pickle: bool | None = option(MODEL, "switch", "load .joblib and .pkl files")
    trust: tuple[str, ...] = option(MODEL, "names", "types in a .skops file", (), metavar="TYPES")
    header: tuple[str, ...] = option(
        MODEL, "lines", "sent to an endpoint; repeatable", (), metavar="'K: V'"
    )
    http_timeout: float = option(
        MODEL, "number", "seconds to wait for an endpoint (default: 30)", 30.0, metavar="S"
    )
    retries: int = option(
        MODEL, "integer", "how often a busy endpoint is tried again (default: 4)", 4
    )
    batch: int = option(MODEL, "integer", "rows per request (default: 1000)", 1000, metavar="N")

    query: str = option(
        "",
        "text",
        "row number of the data (0 is the first), name with --id, a JSON object, a file with one "
        "row, or - for any of these on standard input",
        "",
        metavar="ROW|JSON|FILE",
    )
    queries: str = option(
        "", "path", ".csv, .tsv or .parquet with a row for each question", "", metavar="FILE"
    )
    jobs: int | None = option("", "integer", "worker processes; -1 for every core", metavar="N")

    target: str = option(QUESTION, "text", TARGET_SYNTAX, "", metavar="T")
    n: int = option(QUESTION, "integer", "how many answers (default: 1)", 1, typed_as="-n")
    diverse: bool | None = option(
        QUESTION, "switch", "answers as different as possible (default: the nearest ones)"
    )
    budget: int | None = option(
        QUESTION,
        "integer",
        "rows sent to the model for a query, at most (default: 2000 for a file that runs here, "
        "else 100)",
    )
    timeout: float | None = option(QUESTION, "number", "seconds, at most", metavar="S")
    prove: float | None = option(
        QUESTION,
        "number",
        "seconds for the proof of an answer, at most; 0 for none (default: about a second)",
        metavar="S",
    )
    menu: bool | None = option(
        QUESTION, "switch", "list which single features and pairs can reach the target"
    )
    seed: int = option(QUESTION, "integer", "same seed, same answer (default: 0)", 0)
    tolerance: float = option(
        QUESTION, "number", "share of an exact change that may be missed (default: 0.05)", 0.05
    )
    all_digits: bool | None = option(
        QUESTION, "switch", "leave changed numbers as found, not rounded to short decimals"
    )
    method: str = option(QUESTION, "text", f"{', '.join(METHODS)} (default: auto)", "auto")
    on_fault: Literal["raise", "skip"] = option(
        QUESTION,
        "text",
        "stop at rows for which the model fails, or skip them (default: raise)",
        "raise",
        choices=("raise", "skip"),
    )
    evaluations: str | None = option(
        QUESTION, "path", "keep scored rows in a file, and reuse them", metavar="FILE"
    )
    forget: bool | None = option(QUESTION, "switch", "remove this model's rows from it first")
    run: str | None = option(
        QUESTION, "text", "the same command under this name gives the same answers", metavar="NAME"
    )

    title: str | None = option(REPORTS, "text", "the title")
    output_name: str | None = option(
        REPORTS, "text", "a name for the model's output (default: prediction)"
    )
    unit: str | None = option(REPORTS, "text", "the unit of the output")
    about: Mapping[str, str] = option(
        REPORTS,
        "table",
        "another fact for the readers; repeatable",
        {},
        metavar="NAME=VALUE",
    )

    space: Mapping[str, Any] = field(default_factory=dict)  # constraints by verb

    @property
    def names_code(self) -> bool:
        """Whether the model is named as code, ``package.module:function``."""
        return is_code(self.model)

    def require(self, *names: str) -> None:
        """Raise a `SettingsError` unless these options are given."""
        for name in names:
            if getattr(self, name) in (None, ""):
                raise SettingsError(
                    f"--{name} must be given; got none. Add --{name}, or {name} = … to the "
                    "settings file."
                )


#: The options of `Settings` by name.
OPTIONS = {
    each.name: Option(name=each.name, **each.metadata["option"])
    for each in fields(Settings)
    if each.metadata
}

#: The options below each title in help.
GROUPS: dict[str, list[Option]] = {}
for _each in fields(Settings):
    if _each.metadata.get("group"):
        GROUPS.setdefault(_each.metadata["group"], []).append(OPTIONS[_each.name])


def gather_settings(given: Namespace) -> Settings:
    """Return the settings of a parsed command line and of the settings file that it names."""
    typed = vars(given)
    in_file: dict[str, Any] = {}
    if typed.get("settings"):
        in_file = read_settings_file(Path(typed["settings"]), OPTIONS)
    values = {**in_file, **_typed_values(typed, in_file)}
    values["space"] = extend_constraints(in_file.get("space", {}), typed)
    for name, value in values.items():
        if isinstance(value, list):
            values[name] = tuple(value)
    return Settings(**values)


def _typed_values(typed: Mapping[str, Any], in_file: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options on a command line; tables are added to those of the settings file."""
    names = [name for name in OPTIONS if typed.get(name) is not None]
    values: dict[str, Any] = {name: typed[name] for name in names}
    for name, lines in values.items():
        if OPTIONS[name].kind == "table":
            pairs = dict(split_assignment(OPTIONS[name].flag, line) for line in lines)
            values[name] = {**in_file.get(name, {}), **pairs}
    return values


def split_assignment(
    flag: str,
    text: str,
    *,
    may_be_empty: bool = False,
    sign: str = "=",
    example: str = "name=value",
) -> tuple[str, str]:
    """Return name and value of ``name=value``; `example` shows another form in an error."""
    name, found, value = map(str.strip, text.partition(sign))
    if not all((found, name, value or may_be_empty)):
        raise SettingsError(f"{flag} must be like {example}; got {text!r}.")
    return name, value
