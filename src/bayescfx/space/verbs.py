"""The verbs of `Space`, described as data: what the command line, settings files and the page need.

A new verb is a method of `Space` and one entry of `VERBS`; options, the table ``[space]`` of a
settings file and the request of the page follow from the entry. Nothing big is imported here: the
help of the command line shows the verbs.
"""

from __future__ import annotations

from bayescfx.errors import BayesCFXError, SettingsError, suggest
from bayescfx.space.parameters import (
    AllowedNames,
    ColumnLists,
    Count,
    Functions,
    NameLists,
    Names,
    Number,
    Numbers,
    Options,
    Parameter,
    Ranges,
    Shifts,
    Texts,
)

TYPE_CHECKING = False  # `typing` takes its time
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from bayescfx.space.space import Space

    #: A space, the value that was read, and the data that the space was made from.
    Apply = Callable[[Space, Any, Any], Space]


class Verb:
    """One verb of `Space`, as clients see it.

    Parameters
    ----------
    name : str
        Its key in the table ``[space]`` of a settings file and in a request of the page.
    parameter : Parameter
        The value that it takes.
    apply : callable
        ``(space, value, data) -> space`` for a value that was read.
    help : str
        One line for users.
    option : str
        The option of the command line, such as ``--fix``; empty if there is none.
    example : str
        A value of the option, as help shows it.
    runs_code : bool
        The value names code; it must not come from a settings file or a request.
    changes_columns : bool
        The features are others afterwards; it must not come from a request.
    python : str
        How Python writes it, such as ``between(…, strict=True)``; by default ``name(…)``.
    """

    def __init__(
        self,
        name: str,
        parameter: Parameter,
        apply: Apply,
        *,
        help: str,
        option: str = "",
        example: str = "",
        runs_code: bool = False,
        changes_columns: bool = False,
        python: str = "",
    ) -> None:
        self.name = name
        self.python = python or f"{name}(…)"
        self.parameter = parameter
        self._apply = apply
        self.help = help
        self.option = option
        self.example = example
        self.runs_code = runs_code
        self.changes_columns = changes_columns

    def __repr__(self) -> str:
        return f"Verb({self.name!r}, {self.parameter.kind})"

    def read(self, space: Space, value: Any) -> Any:
        """Return a value with its texts read by the features of a space."""
        return self.parameter.read(space, self.name, value)

    def apply(self, space: Space, value: Any, data: Any) -> Space:
        """Return the space with the verb applied; the value may hold texts.

        An error has the verb as its `parameter`, unless it is about another.
        """
        try:
            return self._apply(space, self.read(space, value), data)
        except BayesCFXError as error:
            error.parameter = error.parameter or self.name
            raise


def apply_verbs(space: Space, settings: Mapping[str, Any], data: Any = None) -> Space:
    """Return the space with verbs applied, in the order of `VERBS`.

    Parameters
    ----------
    settings : dict of verb to value
        As in the table ``[space]`` of a settings file; values may be texts of the command line.
    data : DataFrame, optional
        The data that the space was made from; `near_data` needs it.
    """
    for name in settings:
        if name not in VERBS:
            known = ", ".join(VERBS)
            hint = suggest(name, VERBS)
            raise SettingsError(f"a space has no verb {name!r}.{hint} Known: {known}.")
    for name, verb in VERBS.items():
        if name in settings:
            space = verb.apply(space, settings[name], data)
    return space


def read_verbs(space: Space, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of verbs with all texts read by the features of a space."""
    return {name: VERBS[name].read(space, value) for name, value in settings.items()}


def intersect_verbs(
    space: Space, one: Mapping[str, Any], other: Mapping[str, Any]
) -> dict[str, Any]:
    """Return settings that allow what both settings allow."""
    left = read_verbs(space, one)
    right = read_verbs(space, other)
    merged = {**left, **right}
    for name in left.keys() & right.keys():
        merged[name] = VERBS[name].parameter.intersect(space, left[name], right[name])
    return merged


def load_functions(settings: Mapping[str, Any], load: Callable[[str], Any]) -> dict[str, Any]:
    """Return settings in which every function that is named by a text is loaded with `load`."""
    loaded = dict(settings)
    for name, value in settings.items():
        if name in VERBS and VERBS[name].runs_code:
            loaded[name] = {key: load(f) if isinstance(f, str) else f for key, f in value.items()}
    return loaded


def _call(method: str) -> Apply:
    """Return how to call a method with the value as its argument."""
    return lambda space, value, _: getattr(space, method)(value)


def _call_with_names(method: str) -> Apply:
    """Return how to call a method with the names as its arguments."""
    return lambda space, names, _: getattr(space, method)(*names)


def _require(space: Space, rules: list[str], data: Any) -> Space:
    """Apply `require` to each rule."""
    for rule in rules:
        space = space.require(rule)
    return space


def _together(space: Space, blocks: list[list[str]], data: Any) -> Space:
    """Apply `together` to each list of features."""
    for names in blocks:
        space = space.together(*names)
    return space


def _group(space: Space, groups: Mapping[str, list[str]], data: Any) -> Space:
    """Apply `group` to each new feature."""
    for name, columns in groups.items():
        space = space.group(name, columns)
    return space


def _strict_between(space: Space, limits: Mapping[str, Any], data: Any) -> Space:
    """Apply `between` with strict limits."""
    return space.between(limits, strict=True)


def _derive(space: Space, functions: Mapping[str, Any], data: Any) -> Space:
    """Apply `derive` to each column; see `load_functions` for texts."""
    for name, function in functions.items():
        space = space.derive(name, function)
    return space


def _derive_residual(space: Space, functions: Mapping[str, Any], data: Any) -> Space:
    """Apply `derive` to each column, its residual kept."""
    for name, function in functions.items():
        space = space.derive(name, function, residual=True)
    return space


def _near_data(space: Space, value: Any, data: Any) -> Space:
    """Apply `near_data` with its options, unless it is switched off."""
    if value is False:
        return space
    return space.near_data(data, **({} if value is True else value))


def _cost(space: Space, value: dict[str, Any], data: Any) -> Space:
    """Apply `cost` with its options."""
    return space.cost(**value)


#: The verbs by name, in the order in which they are applied.
VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb(
            "groups",
            ColumnLists(),
            _group,
            help="one-hot columns that are one feature",
            option="--group",
            example="'colour=red,blue'",
            changes_columns=True,
            python="group(…)",
        ),
        Verb(
            "fix",
            Names(),
            _call_with_names("fix"),
            help="never change",
            option="--fix",
            example="A,B",
        ),
        Verb(
            "allow",
            AllowedNames(),
            _call_with_names("allow"),
            help="only these may change",
            option="--allow",
            example="A,B",
        ),
        Verb(
            "only_up",
            Names(),
            _call_with_names("only_up"),
            help="may only rise",
            option="--only-up",
            example="A,B",
        ),
        Verb(
            "only_down",
            Names(),
            _call_with_names("only_down"),
            help="may only fall",
            option="--only-down",
            example="A,B",
        ),
        Verb(
            "between",
            Ranges(),
            _call("between"),
            help="limits of changed values; levels as job=clerk|cook",
            option="--between",
            example="'bmi=18:32'",
        ),
        Verb(
            "strict_between",
            Ranges(),
            _strict_between,
            help="limits of all values: one outside must change",
            option="--strict-between",
            example="'bmi=18:32'",
            python="between(…, strict=True)",
        ),
        Verb(
            "move",
            Shifts(),
            _call("move"),
            help="limits relative to the query",
            option="--move",
            example="'hour=-2:2'",
        ),
        Verb(
            "require",
            Texts(),
            _require,
            help="a rule that must hold",
            option="--require",
            example="'a <= b'",
        ),
        Verb(
            "derive",
            Functions(),
            _derive,
            help="a column computed from others",
            option="--derive",
            example="'bmi=module:function'",
            runs_code=True,
        ),
        Verb(
            "derive_residual",
            Functions(),
            _derive_residual,
            help="the same, with the query's difference kept",
            option="--derive-residual",
            example="'bmi=module:function'",
            runs_code=True,
            python="derive(…, residual=True)",
        ),
        Verb(
            "steps",
            Numbers(),
            _call("steps"),
            help="values are multiples of the step",
            option="--step",
            example="'bmi=0.5'",
        ),
        Verb(
            "together",
            NameLists(),
            _together,
            help="change in the same direction",
            option="--together",
            example="A,B",
        ),
        Verb(
            "max_changes",
            Count(),
            _call("max_changes"),
            help="at most so many features change",
            option="--max-changes",
            example="K",
        ),
        Verb(
            "near_data",
            Options(is_switch=True, quantile=Number(default=0.95, stricter=min)),
            _near_data,
            help="stay close to rows of the data",
            option="--near-data",
        ),
        Verb(
            "cost",
            Options(
                per_change=Number(),
                per_feature=Numbers(),
                norm=Number(),
                weight=Number(),
            ),
            _cost,
            help="what is minimised: distance + per_change * changes",
            option="--cost",
            example="per_change=0.5",
        ),
    )
}
