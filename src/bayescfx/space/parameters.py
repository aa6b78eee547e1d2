"""The vocabulary of parameters: the values that verbs of a space take from text, TOML and JSON.

Each kind knows how the command line writes it, how a settings file or a request holds it, how its
values are read with the features of a space, and how two values combine. The command line,
settings files and the page treat every verb by the kind of its parameter, so that they need no
change for a new verb. Nothing big is imported here: the help of the command line shows the verbs.
"""

from __future__ import annotations

from bayescfx.errors import BayesCFXError, SettingsError

TYPE_CHECKING = False  # `typing` takes its time
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from bayescfx.data import Feature
    from bayescfx.space.space import Space

    #: One item that can be taken back, in words, and the value without it; None if nothing is left.
    Relaxation = tuple[str, Any]


def last_text(texts: list[str]) -> str:
    """Return the last of the texts of an option, or an empty text: an empty field has no lines."""
    return texts[-1] if texts else ""


class Parameter:
    """One value that a verb takes. A new kind is a subclass; most methods have defaults."""

    kind: str  # the word for it in the vocabulary
    words: str  # what a message says it must be
    types: tuple[type, ...] = ()  # of the value in a settings file or a request
    is_repeatable = False  # whether an option may be given several times
    takes_text = True  # whether an option has a value, instead of being a switch

    def from_texts(self, option: str, texts: list[str]) -> Any:
        """Return the value of an option from its texts, as a settings file would hold it."""
        return last_text(texts)

    def check(self, what: str, value: Any) -> None:
        """Raise a `SettingsError` about `what` unless a value is of this kind."""
        is_flag = isinstance(value, bool) and bool not in self.types
        if is_flag or not isinstance(value, self.types):
            raise SettingsError(f"{what} must be {self.words}; got {value!r}.")

    def extend(self, old: Any, new: Any) -> Any:
        """Return the value of a settings file, `old`, with that of the command line added."""
        return new

    def read(self, space: Space, verb: str, value: Any) -> Any:
        """Return the value as the method of `Space` takes it, texts read by the features."""
        return value

    def intersect(self, space: Space, one: Any, other: Any) -> Any:
        """Return the value that allows what both read values allow."""
        return other

    def relaxations(self, value: Any) -> Iterator[Relaxation]:
        """Yield each item that can be taken back, with the value that is left."""
        yield "", None

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the value."""
        raise NotImplementedError


class Number(Parameter):
    """One number."""

    kind = "number"
    words = "a number"
    types: tuple[type, ...] = (int, float)

    def __init__(
        self, default: float | None = None, stricter: Callable[..., Any] | None = None
    ) -> None:
        self.default = default  # if the verb is used without it
        self.stricter = stricter  # of two numbers, `min` or `max`

    def from_texts(self, option: str, texts: list[str]) -> float:
        """Return the last number given."""
        text = last_text(texts)
        try:
            return float(text)
        except ValueError as error:
            raise SettingsError(f"{option} must be a number; got {text!r}.") from error

    def intersect(self, space: Space, one: Any, other: Any) -> Any:
        """Return the stricter number; the second if none is."""
        return other if self.stricter is None else self.stricter(one, other)

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of a number."""
        return {"type": "number"}


class Count(Number):
    """A whole number of at least 1."""

    kind = "count"
    words = "a whole number"
    types = (int,)

    def __init__(self) -> None:
        super().__init__(stricter=min)

    def from_texts(self, option: str, texts: list[str]) -> int:
        """Return the last whole number given."""
        text = last_text(texts)
        try:
            return int(text)
        except ValueError as error:
            raise SettingsError(f"{option} must be a whole number; got {text!r}.") from error

    def relaxations(self, value: int) -> Iterator[Relaxation]:
        """Yield the next number."""
        yield f"{value}", value + 1

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of a positive whole number."""
        return {"type": "integer", "minimum": 1}


class Items(Parameter):
    """A list; the command line adds to that of a settings file."""

    types = (list,)
    is_repeatable = True

    def extend(self, old: Any, new: Any) -> list[Any]:
        """Return both lists, one after the other."""
        return [*(old or ()), *new]

    def intersect(self, space: Space, one: Any, other: Any) -> list[Any]:
        """Return the items of both: each of them is a constraint."""
        return [*one, *(item for item in other if item not in one)]

    def relaxations(self, value: list[Any]) -> Iterator[Relaxation]:
        """Yield each item with the list of the others."""
        for item in value:
            text = ", ".join(item) if isinstance(item, list) else str(item)
            yield text, [other for other in value if other != item] or None

    def _check_items(self, what: str, value: list[Any], item_type: type) -> None:
        """Raise unless every item is of a type."""
        if not all(isinstance(item, item_type) for item in value):
            raise SettingsError(f"{what} must be {self.words}; got {value!r}.")


class Names(Items):
    """A list of features, ``A,B`` on the command line."""

    kind = "names"
    words = "a list of names"

    def from_texts(self, option: str, texts: list[str]) -> list[str]:
        """Return the names between the commas of all texts."""
        return [name for text in texts for name in split(text)]

    def check(self, what: str, value: Any) -> None:
        """Raise unless a value is a list of texts."""
        super().check(what, value)
        self._check_items(what, value, str)

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of a list of names."""
        return {"type": "array", "items": {"type": "string"}}


class AllowedNames(Names):
    """A list of features that excludes all others: two of them leave what both name."""

    kind = "allowed names"

    def intersect(self, space: Space, one: Any, other: Any) -> list[Any]:
        """Return the names that are in both."""
        return [name for name in other if name in one]

    def relaxations(self, value: list[Any]) -> Iterator[Relaxation]:
        """Yield nothing less than the end of the restriction."""
        yield ", ".join(map(str, value)), None


class Texts(Names):
    """A list of texts, one per option."""

    kind = "texts"
    words = "a list of texts"

    def from_texts(self, option: str, texts: list[str]) -> list[str]:
        """Return the texts as they are."""
        return list(texts)


class NameLists(Items):
    """A list of lists of features, one list ``A,B`` per option."""

    kind = "name lists"
    words = "a list of lists of names"

    def from_texts(self, option: str, texts: list[str]) -> list[list[str]]:
        """Return one list of names per text."""
        return [split(text) for text in texts]

    def check(self, what: str, value: Any) -> None:
        """Raise unless a value is a list of lists of texts."""
        super().check(what, value)
        self._check_items(what, value, list)
        for names in value:
            self._check_items(what, names, str)

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of a list of lists of names."""
        return {"type": "array", "items": Names().schema()}


class Table(Parameter):
    """One item per feature: ``name=value`` on the command line, a table in a settings file."""

    kind = "table"
    words = "a table"
    types = (dict,)
    is_repeatable = True

    def from_texts(self, option: str, texts: list[str]) -> dict[str, str]:
        """Return the text of each feature."""
        table: dict[str, str] = {}
        for text in texts:
            name, _, item = (part.strip() for part in text.partition("="))
            if not name or not item:
                raise SettingsError(f"{option} must be like name=value; got {text!r}.")
            table[name] = item
        return table

    def extend(self, old: Any, new: Any) -> dict[str, Any]:
        """Return both tables as one; new items replace old ones."""
        return {**(old or {}), **new}

    def read(self, space: Space, verb: str, value: Any) -> dict[str, Any]:
        """Return the table with every item read."""
        return {name: self.read_item(space, verb, name, item) for name, item in value.items()}

    def intersect(self, space: Space, one: Any, other: Any) -> dict[str, Any]:
        """Return both tables, with items of the same feature combined."""
        table = {**one, **other}
        for name in one.keys() & other.keys():
            table[name] = self.intersect_items(space, name, one[name], other[name])
        return table

    def relaxations(self, value: dict[str, Any]) -> Iterator[Relaxation]:
        """Yield each feature with the table of the others."""
        for name in value:
            yield name, {other: value[other] for other in value if other != name} or None

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of a table."""
        return {"type": "object", "additionalProperties": self.item_schema()}

    def read_item(self, space: Space, verb: str, name: str, item: Any) -> Any:
        """Return one item as the method of `Space` takes it."""
        return item

    def intersect_items(self, space: Space, name: str, one: Any, other: Any) -> Any:
        """Return the item that allows what both read items allow."""
        return other

    def item_schema(self) -> dict[str, Any]:
        """Return the JSON schema of an item."""
        return {"type": "string"}


class Ranges(Table):
    """Limits per feature: ``low:high``, or levels as ``a|b``; either end may be left out."""

    kind = "ranges"
    words = "a table of pairs [low, high] or lists of levels"

    def read_item(self, space: Space, verb: str, name: str, item: Any) -> Any:
        """Return a pair of values, or a list of levels."""
        feature = feature_of(space, name)
        if feature.has_levels:
            return read_levels(feature, name, verb, item)
        return read_ends(name, item, lambda end: feature.parse(end, name, verb))

    def intersect_items(self, space: Space, name: str, one: Any, other: Any) -> list[Any]:
        """Return the levels in both lists, or the higher low and the lower high."""
        feature = feature_of(space, name)
        if feature.has_levels:
            return [level for level in other if level in one]
        return narrower_pair(one, other, lambda end: feature.code(end, name))

    def item_schema(self) -> dict[str, Any]:
        """Return the JSON schema of limits."""
        return {"type": "array", "items": {"type": ["boolean", "number", "string", "null"]}}


class Shifts(Table):
    """Limits per feature relative to the query: ``low:high``; either end may be left out."""

    kind = "shifts"
    words = "a table of pairs [low, high]"

    def read_item(self, space: Space, verb: str, name: str, item: Any) -> Any:
        """Return a pair of relative changes."""
        return read_ends(name, item, number_if_any)

    def intersect_items(self, space: Space, name: str, one: Any, other: Any) -> list[Any]:
        """Return the higher low and the lower high."""
        feature = feature_of(space, name)
        return narrower_pair(one, other, lambda end: feature.shift(end, name))

    def item_schema(self) -> dict[str, Any]:
        """Return the JSON schema of a pair of relative changes."""
        ends = {"type": ["number", "string", "null"]}
        return {"type": "array", "items": ends, "minItems": 2, "maxItems": 2}


class Numbers(Table):
    """One number per feature."""

    kind = "numbers"
    words = "a table of numbers"

    def read_item(self, space: Space, verb: str, name: str, item: Any) -> Any:
        """Return a number."""
        return number_if_any(item)

    def item_schema(self) -> dict[str, Any]:
        """Return the JSON schema of a number."""
        return {"type": "number"}


class ColumnLists(Table):
    """A list of columns per new name, ``colour=red,blue`` on the command line."""

    kind = "column lists"
    words = "a table of lists of columns"

    def read_item(self, space: Space, verb: str, name: str, item: Any) -> list[str]:
        """Return a list of columns."""
        return split(item) if isinstance(item, str) else [str(column).strip() for column in item]

    def item_schema(self) -> dict[str, Any]:
        """Return the JSON schema of a list of columns."""
        return Names().schema()


class Functions(Table):
    """A function per feature, written ``module:name``; see `load_functions` of `verbs`."""

    kind = "functions"
    words = "a table of functions"


class Options(Parameter):
    """Named parameters of a verb; ``true`` uses the verb with its defaults, if it is a switch.

    On the command line ``name=value``, or nothing but the option of a switch.
    """

    kind = "options"

    def __init__(self, *, is_switch: bool = False, **parameters: Parameter) -> None:
        self.parameters = parameters
        self.is_switch = is_switch
        self.takes_text = not is_switch
        self.is_repeatable = not is_switch
        self.types = (bool, dict) if is_switch else (dict,)
        self.words = "true or a table" if is_switch else "a table"

    def from_texts(self, option: str, texts: list[str]) -> bool | dict[str, Any]:
        """Return the parameters that are given; True for a switch."""
        if self.is_switch:
            return True
        by_name: dict[str, list[str]] = {}
        for text in texts:
            name, _, value = (part.strip() for part in text.partition("="))
            if name not in self.parameters or not value:
                known = ", ".join(self.parameters)
                raise SettingsError(f"{option} must be like name=value with {known}; got {text!r}.")
            by_name.setdefault(name, []).append(value)
        return {
            name: self.parameters[name].from_texts(f"{option} {name}", values)
            for name, values in by_name.items()
        }

    def extend(self, old: Any, new: Any) -> Any:
        """Return the parameters of both, those of the command line where both have one."""
        if self.is_switch or not old:
            return new
        table = {**old, **new}
        for name in old.keys() & new.keys():
            table[name] = self.parameters[name].extend(old[name], new[name])
        return table

    def check(self, what: str, value: Any) -> None:
        """Raise unless a value is a table of known parameters."""
        super().check(what, value)
        if isinstance(value, bool):
            return
        if set(value) - set(self.parameters):
            known = ", ".join(self.parameters)
            raise SettingsError(f"{what} must have only {known}; got {value!r}.")
        for name, given in value.items():
            self.parameters[name].check(f"{what}.{name}", given)

    def read(self, space: Space, verb: str, value: Any) -> Any:
        """Return the parameters, each read."""
        self.check(f"space.{verb}", value)
        if isinstance(value, bool):
            return value
        return {name: self.parameters[name].read(space, verb, v) for name, v in value.items()}

    def intersect(self, space: Space, one: Any, other: Any) -> Any:
        """Return the parameters of both, with those that both give combined."""
        if not any(isinstance(given, dict) for given in (one, other)):
            return one or other
        left = self._with_defaults(one)
        right = self._with_defaults(other)
        table = {**left, **right}
        for name in left.keys() & right.keys():
            table[name] = self.parameters[name].intersect(space, left[name], right[name])
        return table

    def _with_defaults(self, value: Any) -> dict[str, Any]:
        """Return the parameters of a table, or the defaults of a switch that is on."""
        if isinstance(value, dict):
            return value
        known = {n: getattr(p, "default", None) for n, p in self.parameters.items()}
        return {name: default for name, default in known.items() if value and default is not None}

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the parameters."""
        properties = {name: parameter.schema() for name, parameter in self.parameters.items()}
        table = {"type": "object", "properties": properties, "additionalProperties": False}
        return {"anyOf": [{"type": "boolean"}, table]} if self.is_switch else table


# ── reading text ──


def split(text: str) -> list[str]:
    """Return the names between commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def number_if_any(value: Any) -> Any:
    """Return the number that a text is, or the value itself."""
    from bayescfx.data.values import as_number  # it needs NumPy

    return as_number(value)


def feature_of(space: Space, name: str) -> Feature:
    """Return a feature of a space; an error suggests the name that was meant."""
    return space.features[space.name(name)]


def read_levels(feature: Feature, name: str, verb: str, item: Any) -> Any:
    """Return levels from ``a|b`` or a list of levels; a level itself may contain the bar."""
    if not isinstance(item, str | list):
        return item
    if isinstance(item, list):
        return [feature.parse(level, name, verb) for level in item]
    try:
        return [feature.parse(item, name, verb)]
    except BayesCFXError:
        return [feature.parse(level.strip(), name, verb) for level in item.split("|")]


def read_ends(name: str, item: Any, read: Callable[[Any], Any]) -> Any:
    """Return the pair of ``low:high`` or ``low..high``, None for an open end."""
    if isinstance(item, list | tuple):
        return [None if end is None else read(end) for end in item]
    if not isinstance(item, str):
        return item
    return tuple(read(end) if end else None for end in _split_ends(name, item))


def _split_ends(name: str, text: str) -> list[str]:
    """Return the two ends of ``low:high`` or ``low..high``; one of them may be empty."""
    ends = [end.strip() for end in text.split(".." if ".." in text else ":")]
    if len(ends) != 2 or not any(ends):
        raise SettingsError(f"limits of {name!r} must be like low:high; got {text!r}.")
    return ends


def narrower_pair(one: Any, other: Any, code: Callable[[Any], float]) -> list[Any]:
    """Return the limits that both pairs allow; `code` puts their ends in order."""
    lows = [pair[0] for pair in (one, other) if pair[0] is not None]
    highs = [pair[1] for pair in (one, other) if pair[1] is not None]
    return [max(lows, key=code, default=None), min(highs, key=code, default=None)]
