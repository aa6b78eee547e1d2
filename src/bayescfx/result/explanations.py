"""Answers to several questions: which features they move, and all as lines of one flat table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, overload

import numpy as np
import pandas as pd

from bayescfx.checks import check, is_several, reading
from bayescfx.data.tables import cells_of, free_name
from bayescfx.data.values import Plain, from_plain, to_plain
from bayescfx.errors import ArchiveError
from bayescfx.result import archive, markup, wording
from bayescfx.result.assessment import around
from bayescfx.result.explanation import Explanation
from bayescfx.space.rules.limits import limits_of
from bayescfx.space.space import Space


class Explanations(Sequence[Explanation]):
    """Answers to several questions, in the order of the queries.

    Parameters
    ----------
    answers : sequence of Explanation
        One per query.
    index : pandas.Index, optional
        What the queries are called; their numbers by default. `explain_many` takes the index of
        a DataFrame.
    """

    def __init__(self, answers: Sequence[Explanation], index: Any = None) -> None:
        several = is_several(answers)
        self._answers = tuple(answers) if several else ()
        good = several and set(map(type, self._answers)) <= {Explanation}
        check(good, "answers", "a list of Explanation", answers)
        index = pd.RangeIndex(len(self._answers)) if index is None else index
        good = isinstance(index, pd.Index) and len(index) == len(self._answers)
        check(good, "index", "a pandas.Index with one label per answer", index)
        self.index: pd.Index[Any] = index  # type: ignore[assignment]  # labels, as pandas has them

    def __len__(self) -> int:
        return len(self._answers)

    @overload
    def __getitem__(self, i: int) -> Explanation: ...

    @overload
    def __getitem__(self, i: slice) -> Explanations: ...

    def __getitem__(self, i: int | slice) -> Explanation | Explanations:
        if isinstance(i, slice):
            return Explanations(self._answers[i], self.index[i])
        return self._answers[i]

    def to_frame(self, *, changes_only: bool = False) -> pd.DataFrame:
        """Return the frames of all answers, with the query's label in a first column.

        It is called as the index is, or ``query``.
        """
        if not len(self):
            return pd.DataFrame()
        frames = [answer.to_frame(changes_only=changes_only) for answer in self]
        lengths = list(map(len, frames))
        whole = pd.concat(frames, ignore_index=True)
        if changes_only:
            # Answers change different columns: those go first, cells nobody changed are "-".
            added = 5 if self[0].best.plausibility is None else 6  # by each frame to the row
            meta = list(frames[0].columns[-added:])
            cells = whole.drop(columns=meta).astype(object)
            whole = pd.concat([cells.where(cells.notna(), "-"), whole[meta]], axis=1)
        labels = self.index.to_flat_index().repeat(lengths)
        name = "query" if self.index.name is None else str(self.index.name)
        whole.insert(0, free_name(name, whole.columns), labels)
        return whole

    def summary(self) -> pd.DataFrame:
        """Return one line per query: its own ``output``, how it ended, what the best answer is."""
        return pd.DataFrame(
            {
                "status": [a.status for a in self],
                "output": [a.output for a in self],
                "best_output": [a.best.output for a in self],
                "wanted": [wording.wish(a.wanted) for a in self],
                "potential": [a.best.potential for a in self],
                "cost": [a.best.cost for a in self],
                "n_changes": [a.best.n_changes for a in self],
                "changes": [wording.best_moves(a) for a in self],
                "n_evaluations": [a.n_evaluations for a in self],
                "stopped": [a.stopped for a in self],
            },
            index=self.index,
        )

    def importance(self) -> pd.DataFrame:
        """Return how often and how far each feature moves in the best answers.

        Answers that change nothing are left out.

        Returns
        -------
        DataFrame
            One line per feature, the most frequent first: ``feature``; ``share``, of the answers
            that move it, and ``times``, how many these are; ``up`` and ``down``, which shares of
            them raise and lower it; ``mean`` and ``median``, how far, in its own units (dates: in
            their unit, ordered levels: in steps); ``mean_scaled`` and ``median_scaled``, the same
            in its unit of change; ``transitions``, of levels without order, in words.

        Examples
        --------
        >>> import numpy as np, bayescfx as cfx
        >>> X = np.random.default_rng(0).normal(size=(50, 2)).round(1)
        >>> space = cfx.Space.from_data(X)
        >>> many = cfx.explain_many(lambda X: 3 * X[:, 0], X[:4], space, 6.0, budget=30, rng=0)
        >>> many.importance()[["feature", "share", "up", "median"]].round(2).to_dict("list")
        {'feature': ['x0', 'x1'], 'share': [1.0, 0.0], 'up': [1.0, nan], 'median': [1.45, nan]}
        """
        each = [found for answer in self if (found := moves(answer))]
        names = dict.fromkeys(name for answer in self for name in answer.space.features)
        by_name: dict[Hashable, list[Move]] = {name: [] for name in names}
        for move in chain.from_iterable(each):
            by_name[move.feature].append(move)
        table = []
        for name, found in sorted(by_name.items(), key=lambda line: -len(line[1])):
            known = [(move.step, move.scaled) for move in found if not math.isnan(move.step)]
            step, scaled = (pd.Series(part) for part in np.reshape(known, (-1, 2)).T)
            words = Counter(move.words for move in found if math.isnan(move.step))
            table.append(
                {
                    "feature": name,
                    "share": len(found) / max(1, len(each)),
                    "times": len(found),
                    "up": (step > 0).mean(),
                    "down": (step < 0).mean(),
                    "mean": step.abs().mean(),
                    "median": step.abs().median(),
                    "mean_scaled": scaled.abs().mean(),
                    "median_scaled": scaled.abs().median(),
                    "transitions": ", ".join(f"{text} ({n})" for text, n in words.most_common()),
                }
            )
        return pd.DataFrame(table)

    def to_markdown(self) -> str:
        """Return one line per query as a table in Markdown, all text escaped."""
        return f"{self.counted()}\n\n{markup.markdown(*self._table(), last_left=True)}\n"

    def to_json(self) -> str:
        """Return all answers as one JSON text, with evaluations that they share written once."""
        stores = list({id(answer.evaluations): answer.evaluations for answer in self}.values())
        place = {id(store): k for k, store in enumerate(stores)}
        content: dict[str, Plain] = {
            "answers": [archive.write(a, place[id(a.evaluations)]) for a in self],
            "evaluations": [archive.write_evaluations(store) for store in stores],
        }
        if not self.index.equals(pd.RangeIndex(len(self))) or self.index.name is not None:
            content["index"] = to_plain([list(self.index.names), self.index.tolist()])
        return archive.dumps("explanations", content)

    @classmethod
    def from_json(cls, text: str) -> Explanations:
        """Return the answers that :meth:`to_json` wrote, exactly, or raise an `ArchiveError`."""
        content = archive.loads("explanations", text)
        with reading("`text`", ArchiveError, "Pass what to_json returned."):
            stores = [archive.read_evaluations(plain) for plain in content["evaluations"]]
            answers = [Explanation._read(a, stores[a["evaluations"]]) for a in content["answers"]]
            names, labels = from_plain(content.get("index", [[], None]))
            index = None if labels is None else pd.Index(labels)
            return cls(answers, index if index is None else index.set_names(names))

    def __repr__(self) -> str:
        most = 10
        rows = sum(a.n_evaluations for a in self)
        lines = [f"{self.counted()}, {wording.count(rows, 'row')} of the model used"]
        for i, a in zip(self.index[:most], self._answers, strict=False):
            missed = "" if a.reached else f" ({a.status.replace('_', ' ')})"
            lines.append(f"  {wording.label(i)}. {wording.sentence(a)}{missed}")
        return "\n".join(lines + [f"  … and {len(self) - most} more"] * (len(self) > most))

    def counted(self) -> str:
        """Return how many answers there are, and how many reach the target, in words."""
        return f"{wording.count(len(self), 'answer')}, {sum(a.reached for a in self)} reached"

    def _repr_html_(self) -> str:
        table = markup.table(*self._table(), last_left=True)
        return markup.page(markup.paragraph(self.counted()), table)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return one line per query for reading: head and lines."""
        columns = ["status", "output", "wanted", "best_output", "n_evaluations", "changes"]
        name = "query" if self.index.name is None else str(self.index.name)
        output = wording.Output.of({"output": "output", **(self[0].about if len(self) else {})})
        best = output._replace(name=f"best {output}")
        head = [name, "status", output.label, "wanted", best.label, "rows", "changes"]
        return head, wording.lines(self.summary()[columns])


class Move(NamedTuple):
    """One feature in one answer."""

    feature: Hashable
    step: float  # signed, in the feature's own units; nan for levels without order
    scaled: float  # the same in its units of change
    words: str


def moves(answer: Explanation) -> list[Move]:
    """Return what the best answer moves."""
    if not answer.best.changes:
        return []
    region = around(answer.space, answer.layout.table([list(answer.query)]))
    after = region.encode(answer.layout.table([list(answer.best.row)]))[0]
    found = []
    for name, pair in answer.best.changes.items():
        j = region.schema.positions[name]
        step, period = float(after[j] - region.query[j]), float(region.period[j])
        if period:  # the short way round
            step = (step + period / 2) % period - period / 2
        if region.categorical[j]:
            step = math.nan
        found.append(Move(name, step, step / float(region.scale[j]), wording.move(*pair)))
    return found


def lines(
    space: Space,
    index: pd.Index[Any],
    answers: Mapping[int, Explanation],
    refused: Mapping[int, str],
) -> pd.DataFrame:
    """Return a line per counterfactual, or per query that can't be asked, in order.

    `index` has the labels of all queries, `answers` and `refused` go by their positions.
    """
    columns = space.schema.columns
    fixed = {space.schema.positions[name] for name, said in limits_of(space).items() if said.fixed}
    # columns with a second one for the query's own cells
    own = [c for c, j in enumerate(space.schema.feature_at) if j not in fixed]
    told: list[list[Any]] = []
    for i in sorted([*answers, *refused]):
        if i in refused:
            told.append([i, "error", *[None] * (len(columns) + len(own) + 10), refused[i]])
            continue
        a = answers[i]
        query = cells_of(a.layout.table([list(a.query)]))[0]
        for found, row in zip(a.counterfactuals, cells_of(a.rows), strict=True):
            known = (found.output, found.valid, found.potential, found.cost, found.n_changes)
            words = wording.moves(found.changes) if found.changes else wording.best_moves(a)
            ended = (found.plausibility, words, a.n_evaluations, a.stopped, None)
            told.append([i, a.status, a.output, *row, *(query[c] for c in own), *known, *ended])
    names = [column.name for column in columns]
    # float64 holds what is missing; other numbers need pandas' nullable dtypes for that
    kinds = {name: _dtype(column.dtype) for name, column in zip(names, columns, strict=True)}
    first = {"status": "string", "query_output": "float64"}
    last = {
        **{"output": "float64", "valid": "boolean", "potential": "float64", "cost": "float64"},
        **{"n_changes": "Int64", "plausibility": "float64", "changes": "string"},
        **{"n_evaluations": "Int64", "stopped": "string", "error": "string"},
    }
    head = {free_name(name, names): kind for name, kind in first.items()}
    tail = {free_name(name, names): kind for name, kind in last.items()}
    taken = [*names, *head, *tail]
    before = [(free_name(f"{names[c]}_before", taken), kinds[names[c]]) for c in own]
    every = [*head.items(), *((n, kinds[n]) for n in names), *before, *tail.items()]
    places, *cells = zip(*told, strict=True) if told else [()] * (1 + len(every))
    table = {
        c: pd.Series([_cell(v, kind) for v in column], dtype=kind)
        for c, (column, (_, kind)) in enumerate(zip(cells, every, strict=True))
    }
    frame = pd.DataFrame(table)
    frame.columns = pd.Index([name for name, _ in every])
    return frame.set_axis(index.take(list(places)), axis=0)


def _dtype(dtype: Any) -> Any:
    """Return a dtype that holds the cells of a column, and missing ones."""
    if isinstance(dtype, pd.CategoricalDtype):
        return _dtype(dtype.categories.dtype)
    by_kind = {"i": "Int64", "u": "UInt64", "b": "boolean", "O": "string"}
    return by_kind.get(dtype.kind, dtype)


def _cell(value: Any, kind: Any) -> Any:
    if value is None or pd.isna(value):
        return None
    return str(value) if kind == "string" else value
