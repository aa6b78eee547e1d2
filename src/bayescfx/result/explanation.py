"""The answer: counterfactuals, how sure we are, and everything needed to check them.

Numbers are rounded where they are shown and nowhere else; rows are exactly what the model scored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import pandas as pd

from bayescfx.checks import check, reading
from bayescfx.data.tables import Layout, Row, Rows, as_frame, cells_of, free_name
from bayescfx.data.values import same_cell
from bayescfx.errors import ArchiveError, SettingsError, SpaceError
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Stopped
from bayescfx.models.model import as_model
from bayescfx.potentials import Intervals, Target
from bayescfx.potentials.targets import Shift
from bayescfx.result import archive, markup, wording
from bayescfx.result.archive import Told
from bayescfx.result.assessment import around
from bayescfx.result.counterfactual import Counterfactual
from bayescfx.result.trace import RunLengths
from bayescfx.result.verification import violations
from bayescfx.space.space import Space

Status: TypeAlias = Literal["reached", "best_guess", "unreachable"]


@dataclass(frozen=True, eq=False)
class Explanation:
    """The answer to one question.

    Parameters
    ----------
    query : Series or ndarray
        The row asked about.
    output : float
        The model's output for it.
    target : Target
        The wish, as it was given.
    wanted : tuple of (low, high)
        The outputs wished for.
    accepted : tuple of (low, high)
        The outputs that count as reached: the wish with its tolerance.
    status : {"reached", "best_guess", "unreachable"}
        Whether the target was reached; if not, whether budget or time ran out or the search is
        confident that it is out of reach.
    counterfactuals : tuple of Counterfactual
        Best first; at least one, at most `n_wanted`. No two say the same: each changes something
        that the other does not, or clearly less, or another way.
    stopped : str
        Why the search ended: ``"nothing nearer expected"``, ``"budget"``, ``"timeout"``,
        ``"interrupted"``, ``"fault"`` (the model failed), ``"converged"``, ``"exhausted"``,
        ``"unreachable"`` or ``"already met"`` (the query has what is wanted).
    reachable : (float, float)
        Lowest and highest output seen among the allowed rows.
    evaluations : Evaluations
        Everything known of the model; pass it on to the next question.
    n_evaluations : int
        Rows sent to the model for this question, the query's included.
    space : Space
        What was allowed.
    layout : Layout
        Columns and dtypes of the rows.
    trace : ndarray of shape (n_evaluations,)
        The best potential, relative to its peak, after each row that the model scored.
    tolerance : float
        How much of the wanted change may be missed.
    probability_reachable : float, optional
        The surrogate's probability that the target can be reached within the limits.
    binding : tuple of str
        Limits and rules that keep the target away, as far as the rows scored tell.
    method : str
        The search that was used.
    seed : int, optional
        The seed, if the random state was given as one.
    jump : tuple of float, optional
        The nearest outputs seen below and above what is wanted, where nothing was reached between
        them.
    n_wanted : int
        How many counterfactuals were asked for.
    about : dict of str to str
        What a reader should know, as ``{"model": "rates.onnx", "row": "4711"}``; ``output`` and
        ``unit`` name the output in words, tables and pictures, ``title`` is that of a report.
    """

    query: Row
    output: float
    target: Target | Told
    wanted: Intervals
    accepted: Intervals
    status: Status
    counterfactuals: tuple[Counterfactual, ...]
    stopped: Stopped
    reachable: tuple[float, float]
    evaluations: Evaluations
    n_evaluations: int
    space: Space
    layout: Layout
    # Required: a descriptor without a default.
    trace: RunLengths = RunLengths()  # noqa: RUF009  # shared by all answers: it has no state
    tolerance: float = 0.05
    probability_reachable: float | None = None
    binding: tuple[str, ...] = ()
    method: str = "bayes-cfx"
    seed: int | None = None
    jump: tuple[float, float] | None = None
    n_wanted: int = 1
    about: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.counterfactuals:
            raise SettingsError(
                "`counterfactuals` must hold at least one row; got none. Pass the best guess."
            )

    def without_context(self) -> Explanation:
        """Return the answer without evaluations and space, to be sent between processes."""
        nothing: Any = None
        return replace(self, evaluations=nothing, space=nothing)

    def with_context(self, evaluations: Evaluations, space: Space) -> Explanation:
        """Return the answer with the evaluations and the space it belongs to."""
        return replace(self, evaluations=evaluations, space=space)

    @property
    def reached(self) -> bool:
        """Whether the target was reached."""
        return self.status == "reached"

    @property
    def best(self) -> Counterfactual:
        """The best answer: the nearest that is valid, or the best guess."""
        return self.counterfactuals[0]

    @property
    def rows(self) -> Rows:
        """The counterfactual rows as one table of the user's columns and dtypes."""
        return self.layout.table([list(c.row) for c in self.counterfactuals])

    def to_frame(self, *, changes_only: bool = False) -> pd.DataFrame:
        """Return one line per counterfactual: its row, then what is known about it.

        That is ``output``, ``valid``, ``potential``, ``cost``, ``n_changes`` and, for a space with
        data, ``plausibility`` (``_`` is appended where a column of that name exists).

        Parameters
        ----------
        changes_only : bool, default False
            Show only the columns in which some counterfactual differs from the query, with ``"-"``
            where it does not. Otherwise all columns, with the dtypes of the data.
        """
        frame = as_frame(self.rows)
        columns = list(frame.columns)
        check(isinstance(changes_only, bool), "changes_only", "True or False", changes_only)
        if changes_only:
            before, after = cells_of(self.layout.table([list(self.query)]))[0], cells_of(frame)
            shown: dict[Any, list[Any]] = {}
            for j, name in enumerate(columns):
                kept = [same_cell(row[j], before[j]) for row in after]
                if not all(kept):
                    shown[name] = ["-" if k else row[j] for k, row in zip(kept, after, strict=True)]
            frame = pd.DataFrame(shown, index=frame.index, dtype=object)
        told = ("output", "valid", "potential", "cost", "n_changes")
        for name in told if self.best.plausibility is None else (*told, "plausibility"):
            frame[free_name(name, columns)] = [getattr(c, name) for c in self.counterfactuals]
        return frame

    def to_markdown(self) -> str:
        """Return the answer as sentences and a table in Markdown, all text escaped."""
        text = [markup.plain(line) for line in self._lines()]
        return "\n\n".join([*text[:2], markup.markdown(*self._table()), *text[-2:]]) + "\n"

    def to_json(self) -> str:
        """Return the whole answer as a JSON text; of rules that are functions, the names."""
        evaluations = archive.write_evaluations(self.evaluations)
        return archive.dumps("explanation", archive.write(self, evaluations))

    @classmethod
    def from_json(cls, text: str) -> Explanation:
        """Return the answer that :meth:`to_json` wrote, exactly, or raise an `ArchiveError`."""
        content = archive.loads("explanation", text)
        with reading("`text`", ArchiveError, "Pass what to_json returned."):
            return cls._read(content, archive.read_evaluations(content["evaluations"]))

    @classmethod
    def _read(cls, content: Mapping[str, Any], evaluations: Evaluations) -> Explanation:
        """Return an answer that can be told, tabled and written again; else it was changed."""
        found = cls(**archive.read(content, evaluations))
        archive.write(found, None)
        found._repr_html_()
        found.to_frame(changes_only=True)
        return found

    def verify(self, model: object, space: Space | None = None) -> bool:
        """Tell whether everything the answer claims is true, mostly in one call of the model.

        Each row is scored again, tested against every limit and rule, and, where it is called
        valid, against the target; :meth:`violations` says what is not true. Outputs may differ by a
        few units in the last place, or by what the model itself gives to one row in different
        batches. Nothing but the answer is needed, also after a JSON round trip, unless rules are
        functions.

        Parameters
        ----------
        model : object
            The model.
        space : Space, optional
            What was allowed, if the answer comes from JSON and its rules are functions.
        """
        return not self.violations(model, space)

    def violations(self, model: object, space: Space | None = None) -> tuple[str, ...]:
        """Return what is not true of this answer, in words; nothing if :meth:`verify` holds."""
        space = self.space if space is None else space
        check(isinstance(space, Space), "space", "a Space", space, SpaceError)
        if space.unrestored:
            raise SpaceError(
                "`space` must be given, because these rules are functions, which JSON does not "
                f"hold: {', '.join(space.unrestored)}. Pass the space that was used."
            )
        region = around(space, self.layout.table([list(self.query)]))
        accepted = self.accepted
        if not isinstance(self.target, Told):
            accepted = self.target.acceptance(self.output, self.tolerance)
            if accepted != self.accepted or self.target.wanted(self.output) != self.wanted:
                return ("another output is wanted than the target says",)
        return violations(self, as_model(model, region.schema), region, accepted)

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        said = f"{self.target.describe()}; " if isinstance(self.target, Shift) else ""
        output = wording.Output.of(self.about)
        now = f"({said}now {output.number(wording.number(self.output))})"
        lines = [
            f"Wanted: {output} {output.number(wording.wish(self.wanted))} {now}",
            f"{'Answer' if self.reached else 'Best guess'}: {wording.sentence(self)}",
        ]
        for k, other in enumerate(self.counterfactuals[1:], start=2):
            tail = "" if other.valid else " (not valid)"
            moved, number = wording.moves(other.changes), wording.number(other.output)
            lines.append(f"  {k}. {moved}: {output} {output.number(number)}{tail}")
        if self.best.plausibility is not None and self.best.changes:
            lines.append(f"More usual than {100 * self.best.plausibility:.0f} % of the data.")
        lines.append(self.verdict)
        lines.append(f"{wording.count(self.n_evaluations, 'row')} of the model used.")
        return lines

    @property
    def verdict(self) -> str:
        """How the search ended, in words."""
        return wording.verdict(self)

    def _repr_html_(self) -> str:
        text = [markup.paragraph(line) for line in self._lines()]
        return markup.page(*text[:2], markup.table(*self._table()), *text[-2:])

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return what changes, now and in each counterfactual: head and lines."""
        answers, lines = self.counterfactuals, wording.changed(self)
        lines.append(["valid", "", *("yes" if c.valid else "no" for c in answers)])
        return ["", "query", *(f"answer {k + 1}" for k in range(len(answers)))], lines
