"""Answers to several questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import pandas as pd

from bayescfx.checks import check, reading
from bayescfx.errors import ArchiveError
from bayescfx.result import archive, markup, wording
from bayescfx.result.explanation import Explanation
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
        """Return the frames of all answers, with the query's label in a first column."""
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
        whole.insert(0, free_name("query", whole.columns), labels)
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
                "changes": [wording.moves(a.best.changes) for a in self],
                "n_evaluations": [a.n_evaluations for a in self],
                "stopped": [a.stopped for a in self],
            },
            index=self.index,
        )

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
        lines = [f"{self._count()}, {wording.count(rows, 'row')} of the model used"]
        for i, a in zip(self.index[:most], self._answers, strict=False):
            missed = "" if a.reached else f" ({a.status.replace('_', ' ')})"
            lines.append(f"  {i}. {wording.sentence(a)}{missed}")
        return "\n".join(lines + [f"  … and {len(self) - most} more"] * (len(self) > most))

    def _count(self) -> str:
        return f"{wording.count(len(self), 'answer')}, {sum(a.reached for a in self)} reached"

    def _repr_html_(self) -> str:
        columns = ["status", "output", "wanted", "best_output", "n_evaluations", "changes"]
        head = ["query", "status", "output", "wanted", "best output", "rows", "changes"]
        table = markup.table(head, wording.lines(self.summary()[columns]), last_left=True)
        return markup.page(markup.paragraph(self._count()), table)
