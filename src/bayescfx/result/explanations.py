"""Answers to several questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import pandas as pd

from bayescfx.checks import check, reading
from bayescfx.errors import ArchiveError
from bayescfx.result import archive, markup, wording
from bayescfx.result.explanation import Explanation
from bayescfx.result.importance import importance
from bayescfx.tables import free_name
from bayescfx.values import Plain, from_plain, to_plain


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
        try:
            self._answers = tuple(answers)
        except TypeError:
            check(False, "answers", "a list of Explanation", answers)
        good = set(map(type, self._answers)) <= {Explanation}
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
            added = 5 if self[0].best.usual is None else 6  # by each frame to the row
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
        return importance(self)

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
