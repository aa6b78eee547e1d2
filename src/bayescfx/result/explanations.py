"""Answers to several queries: a sequence with a summary and the importance of features."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
import pandas as pd

from bayescfx import markup
from bayescfx.arrays import Array
from bayescfx.checks import check, is_several, reading
from bayescfx.data.tables import Rows, free_name, join
from bayescfx.data.values import Plain, from_plain, to_plain
from bayescfx.errors import ArchiveError
from bayescfx.models.model import as_model
from bayescfx.potentials import ClassTarget
from bayescfx.result import answer_text, archive, wording
from bayescfx.result.assessment import around
from bayescfx.result.explanation import Explanation
from bayescfx.result.verification import UNFIT, claimed_rows
from bayescfx.space.space import Space

#: Rows that `Explanations.verify` sends to the model at once; limits its memory.
ROWS_PER_CALL = 10_000


class Explanations(Sequence[Explanation]):
    """Answers to several queries, in the order of the queries.

    Parameters
    ----------
    answers : sequence of Explanation
        One per query.
    index : pandas.Index, optional
        Labels of the queries; their positions by default. `explain_many` takes the index of a
        DataFrame.
    """

    n_printed = 10  # answers in the text form; the rest is counted

    def __init__(self, answers: Sequence[Explanation], index: Any = None) -> None:
        self._answers = tuple(answers) if is_several(answers) else ()
        are_answers = all(type(answer) is Explanation for answer in self._answers)
        good = is_several(answers) and are_answers
        check(good, "answers", "a list of Explanation", answers)
        index = pd.RangeIndex(len(self._answers)) if index is None else index
        good = isinstance(index, pd.Index) and len(index) == len(self._answers)
        check(good, "index", "a pandas.Index with one label per answer", index)
        self.index: pd.Index[Any] = index  # type: ignore[assignment]  # labels of any type

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

    @property
    def about(self) -> dict[str, str]:
        """The facts of the first answer; without the output's name if others have another."""
        facts = dict(self[0].about) if len(self) else {}
        if len({answer.about.get("output") for answer in self}) > 1:
            facts.pop("output", None)
        return facts

    @property
    def index_name(self) -> str:
        """The name of the index, ``query`` by default."""
        return "query" if self.index.name is None else str(self.index.name)

    def to_frame(self, *, changes_only: bool = False) -> pd.DataFrame:
        """Return the frames of all answers, with the query's label in a first column.

        The column has the name of the index, or ``query``.
        """
        if not len(self):
            return pd.DataFrame()
        frames = [answer.to_frame(changes_only=changes_only) for answer in self]
        whole = pd.concat(frames, ignore_index=True)
        if changes_only:
            # Answers change different columns: these go first, with "-" where unchanged.
            n_figures = len(self[0].figure_names)
            figures = list(frames[0].columns[-n_figures:])
            cells = whole.drop(columns=figures).astype(object)
            whole = pd.concat([cells.where(cells.notna(), "-"), whole[figures]], axis=1)
        labels = self.index.to_flat_index().repeat([len(frame) for frame in frames])
        whole.insert(0, free_name(self.index_name, whole.columns), labels)
        return whole

    def summary(self) -> pd.DataFrame:
        """Return one line per query: its output, its status and its best counterfactual."""
        columns = {name: [read(answer) for answer in self] for name, read in _SUMMARY.items()}
        return pd.DataFrame(columns, index=self.index)

    def importance(self) -> pd.DataFrame:
        """Return how often and how far each feature moves in the best counterfactuals.

        Answers without a change are left out.

        Returns
        -------
        DataFrame
            One line per feature, the most frequent first: ``feature``; ``share``, of the answers
            that move it, and ``times``, their number; ``up`` and ``down``, the shares of these that
            raise and lower it; ``mean`` and ``median`` distance in its own units (dates: in their
            unit, ordered levels: in steps); ``mean_scaled`` and ``median_scaled``, the same in its
            unit of change; ``transitions`` between levels without order, as text.

        Examples
        --------
        >>> import numpy as np, bayescfx as cfx
        >>> X = np.random.default_rng(0).normal(size=(50, 2)).round(1)
        >>> space = cfx.Space.from_data(X)
        >>> many = cfx.explain_many(lambda X: 3 * X[:, 0], X[:4], space, 6.0, budget=30, rng=0)
        >>> many.importance()[["feature", "share", "up", "median"]].round(2).to_dict("list")
        {'feature': ['x0', 'x1'], 'share': [1.0, 0.0], 'up': [1.0, nan], 'median': [1.45, nan]}
        """
        n_changing = sum(bool(answer.best.changes) for answer in self)
        most_frequent_first = sorted(_by_feature(self).items(), key=lambda item: -len(item[1]))
        lines = [_importance(name, found, n_changing) for name, found in most_frequent_first]
        return pd.DataFrame(lines)

    def verify(self, model: object, space: Space | None = None) -> bool:
        """Return whether everything the answers claim is true; see `Explanation.verify`.

        The rows of all answers are scored together, at most 10,000 in a call of the model.

        Parameters
        ----------
        model : object
            The model.
        space : Space, optional
            The space of the search, if the answers come from JSON and its rules are functions.
        """
        return not self.violations(model, space)

    def violations(self, model: object, space: Space | None = None) -> dict[int, tuple[str, ...]]:
        """Return the false claims in words, by position of the answer; empty if there are none."""
        found = {}
        for i, (answer, outputs) in enumerate(zip(self, self._scored_again(model), strict=True)):
            false = answer.violations_given(model, space, outputs)
            if false:
                found[i] = false
        return found

    def _scored_again(self, model: object) -> list[Array | None]:
        """Return the model's outputs ``(1 + k,)`` of each answer's rows, in few calls.

        None for an answer that is scored alone: its rows do not fit its columns, or its columns
        are not those of the first answer.
        """
        tables: dict[int, Rows] = {}
        for i, answer in enumerate(self):
            if answer.layout == self[0].layout:
                with contextlib.suppress(*UNFIT):
                    tables[i] = claimed_rows(answer)
        outputs: list[Array | None] = [None] * len(self)
        if not tables:
            return outputs
        checked = as_model(model, self[0].space.schema)
        if any(isinstance(answer.target, ClassTarget) for answer in self):
            return outputs  # they may be about several outputs of a classifier
        ends = np.cumsum([len(table) for table in tables.values()])
        call_of = (ends - 1) // ROWS_PER_CALL
        for call in np.unique(call_of):
            positions = [i for i, c in zip(tables, call_of, strict=True) if c == call]
            scores = checked.scores(join([tables[i] for i in positions]))
            sizes = [len(tables[i]) for i in positions]
            for i, part in zip(positions, np.split(scores, np.cumsum(sizes[:-1])), strict=True):
                outputs[i] = part
        return outputs

    def to_json(self) -> str:
        """Return all answers as JSON; evaluations that they share are written once."""
        stores = {id(answer.evaluations): answer.evaluations for answer in self}
        place = dict(zip(stores, range(len(stores)), strict=True))
        content: dict[str, Plain] = {
            "answers": [archive.write(a, place[id(a.evaluations)]) for a in self],
            "evaluations": list(map(archive.write_evaluations, stores.values())),
        }
        if not self._is_numbered:
            content["index"] = to_plain([list(self.index.names), self.index.tolist()])
        return archive.dumps("explanations", content)

    @property
    def _is_numbered(self) -> bool:
        """Whether the index has nothing but the positions of the queries."""
        return self.index.name is None and self.index.equals(pd.RangeIndex(len(self)))

    @classmethod
    def from_json(cls, text: str) -> Explanations:
        """Return the answers that :meth:`to_json` wrote, exactly, or raise an `ArchiveError`."""
        content = archive.loads("explanations", text)
        with reading("`text`", ArchiveError, "Pass what to_json returned."):
            stores = [archive.read_evaluations(plain) for plain in content["evaluations"]]
            answers = []
            for plain in content["answers"]:
                evaluations = stores[plain["evaluations"]]
                answers.append(Explanation.from_content(plain, evaluations))
            if "index" not in content:
                return cls(answers)
            names, labels = from_plain(content["index"])
            return cls(answers, pd.Index(labels).set_names(names))

    def counted(self) -> str:
        """Return ``12 answers, 11 reached``."""
        return f"{wording.count(len(self), 'answer')}, {sum(a.reached for a in self)} reached"

    def __repr__(self) -> str:
        n_rows = sum(a.n_evaluations for a in self)
        head = f"{self.counted()}; scored {wording.count(n_rows, 'row')}"
        cells = []
        for label, answer in zip(self.index[: self.n_printed], self._answers, strict=False):
            status = "" if answer.reached else f" ({answer.status.replace('_', ' ')})"
            name = f"  {self.index_name} {wording.label(label)}"
            cells.append((name, f"{answer_text.sentence(answer)}{status}"))
        lines = [head, *wording.aligned(cells, "<<")]
        n_hidden = len(self) - self.n_printed
        if n_hidden > 0:
            lines.append(f"  … and {n_hidden} more")
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """Return one line per query as a table in Markdown, all text escaped."""
        return f"{self.counted()}\n\n{markup.markdown(*self._table(), last_left=True)}\n"

    def _repr_html_(self) -> str:
        table = markup.table(*self._table(), last_left=True)
        return markup.page(markup.paragraph(self.counted()), table)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return head and lines of a table with one line per query."""
        about = self.about
        output = wording.Output.of({"output": "output", **about})
        best = output._replace(name=f"best {output}")
        head = [self.index_name, "status", output.label, "target", best.label, "rows", "changes"]
        columns = ["status", "output", "wanted", "best_output", "n_evaluations", "changes"]
        cells = self.summary()[columns].replace("best_guess", "best guess").to_numpy(object)
        lines = []
        for label, answer, row in zip(self.index, self, cells, strict=True):
            status, _, target, _, *rest = map(wording.cell, row)
            before, after = map(
                answer_text.compared(answer, answer.best), (answer.output, answer.best.output)
            )
            lines.append([wording.label(label), status, before, target, after, *rest])
        return head, lines


#: The columns of :meth:`Explanations.summary`, and how they are read from an answer.
_SUMMARY: dict[str, Callable[[Explanation], Any]] = {
    "status": lambda answer: answer.status,
    "output": lambda answer: answer.output,
    "best_output": lambda answer: answer.best.output,
    "wanted": answer_text.wanted,
    "potential": lambda answer: answer.best.potential,
    "cost": lambda answer: answer.best.cost,
    "distance": lambda answer: answer.best.distance,
    "n_changes": lambda answer: answer.best.n_changes,
    "changes": answer_text.best_moves,
    "n_evaluations": lambda answer: answer.n_evaluations,
    "stopped": lambda answer: answer.stopped,
}


class Move(NamedTuple):
    """The change of one feature in one answer."""

    feature: Hashable
    step: float  # signed, in the feature's own units; nan for levels without order
    scaled: float  # the same in its units of change
    words: str


def moves(answer: Explanation) -> list[Move]:
    """Return the chosen changes of the best counterfactual as steps."""
    if not answer.best.chosen:
        return []
    region = around(answer.space, answer.query_rows)
    after = region.encode(answer.layout.table([list(answer.best.row)]))[0]
    found = []
    for name, pair in answer.best.chosen.items():
        j = region.schema.positions[name]
        step = float(after[j] - region.query[j])
        period = float(region.period[j])
        if period:  # the short way round
            step = (step + period / 2) % period - period / 2
        if region.categorical[j]:
            step = math.nan
        found.append(Move(name, step, step / float(region.scale[j]), wording.move(*pair)))
    return found


def _by_feature(answers: Iterable[Explanation]) -> dict[Hashable, list[Move]]:
    """Return the moves of each feature in the best counterfactuals of answers."""
    by_feature: dict[Hashable, list[Move]] = {}
    for answer in answers:
        for name in answer.space.features:
            by_feature.setdefault(name, [])
        for move in moves(answer):
            by_feature[move.feature].append(move)
    return by_feature


def _importance(name: Hashable, found: Sequence[Move], n_changing: int) -> dict[str, Any]:
    """Return a line of :meth:`Explanations.importance`: the moves of one feature."""
    ordered = [move for move in found if not math.isnan(move.step)]
    step = pd.Series([move.step for move in ordered], dtype=np.float64)
    scaled = pd.Series([move.scaled for move in ordered], dtype=np.float64)
    transitions = Counter(move.words for move in found if math.isnan(move.step))
    return {
        "feature": name,
        "share": len(found) / max(1, n_changing),
        "times": len(found),
        "up": (step > 0).mean(),
        "down": (step < 0).mean(),
        "mean": step.abs().mean(),
        "median": step.abs().median(),
        "mean_scaled": scaled.abs().mean(),
        "median_scaled": scaled.abs().median(),
        "transitions": ", ".join(f"{text} ({n})" for text, n in transitions.most_common()),
    }
