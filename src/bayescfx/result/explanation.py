"""The answer to one query: counterfactuals, evidence about them, and how to check them.

Numbers are rounded in texts only; rows are exactly what the model scored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import pandas as pd

from bayescfx import markup
from bayescfx.arrays import Array
from bayescfx.checks import check, reading
from bayescfx.data.tables import Layout, Row, Rows, as_frame, cells_of, free_name
from bayescfx.data.values import same_cell
from bayescfx.errors import ArchiveError, SettingsError, SpaceError
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Stopped
from bayescfx.models.class_scores import claimed
from bayescfx.models.model import as_model
from bayescfx.potentials import Intervals, Target
from bayescfx.result import answer_text, archive
from bayescfx.result.answer_frame import answer_frame
from bayescfx.result.archive import TextTarget
from bayescfx.result.assessment import around
from bayescfx.result.binding_constraint import BindingConstraint
from bayescfx.result.counterfactual import Counterfactual
from bayescfx.result.kept_values import kept_texts
from bayescfx.result.menu import MENU_HEAD, Menu
from bayescfx.result.trace import RunLengths
from bayescfx.result.verification import violations
from bayescfx.space.space import Space

Status: TypeAlias = Literal["reached", "best_guess", "unreachable"]


@dataclass(frozen=True, eq=False)
class Explanation:
    """The answer to one query.

    Parameters
    ----------
    query : Series or ndarray
        The row that is explained.
    output : float
        The model's output for the query.
    target : Target
        The target as you gave it.
    wanted : tuple of (low, high)
        The outputs that the target asks for.
    accepted : tuple of (low, high)
        The outputs that count as reached: `wanted`, with the tolerance.
    status : {"reached", "best_guess", "unreachable"}
        Whether the target was reached. If not: ``"best_guess"`` if the budget or the time ran out,
        ``"unreachable"`` if the target is proven, or estimated, to be out of reach; see `proof`.
    counterfactuals : tuple of Counterfactual
        Best first; at least one, at most `n_wanted`. Any two differ: in the features they change,
        in the direction, or clearly in the distance.
    stopped : str
        Why the search ended: ``"nothing nearer expected"``, ``"proven"`` (the best answer is
        optimal), ``"budget"``, ``"timeout"``, ``"interrupted"``, ``"fault"`` (the model failed),
        ``"converged"``, ``"exhausted"`` (every allowed row was scored), ``"unreachable"`` or
        ``"already met"`` (the query meets the target).
    reachable : (float, float)
        Lowest and highest output seen among the allowed rows.
    evaluations : Evaluations
        All scored rows of the model; pass them on to the next query.
    n_evaluations : int
        Number of rows sent to the model for this query, the query included.
    space : Space
        The constraints of the search.
    layout : Layout
        Columns and dtypes of the rows.
    trace : ndarray of shape (k,)
        The best potential, relative to its peak, after each row that the model scored; rows that
        were scored once more, to see whether the model is deterministic, are left out.
    tolerance : float
        Share of the wanted change by which an exact target may be missed.
    probability_reachable : float, optional
        The surrogate's probability that the target can be reached under the constraints.
    binding : tuple of BindingConstraint
        The binding constraints if the target was missed: fixed features, limits, rules and the
        bound on changes that keep it away. Each says whether that was computed, was checked by
        asking the model, or is a guess.
    no_single_constraint : bool
        Whether it is computed that the target stays out of reach whichever single constraint is
        removed.
    method : str
        The searches that were used.
    seed : int, optional
        The seed, if the random state was given as one.
    jump : tuple of float, optional
        The nearest outputs seen below and above the target, if it was missed between them.
    n_wanted : int
        Number of counterfactuals asked for.
    proof : str, optional
        ``"optimal"``: no allowed row with a lower cost reaches the target. ``"optimal before
        rounding"``: so was the best answer until its numbers became short decimals; `bound` is the
        cost that it had. ``"within 3 %"``: no row reaches the target that costs so much less than
        the best. ``"out of reach"``: no allowed row reaches it.
        None if nothing is proven; `proof_reason` says why.
    bound : float, optional
        The proven lower bound: no answer costs less.
    proof_reason : str
        Why there is no proof, or no complete one; empty otherwise.
    menu : Menu, optional
        Which sets of features can reach the target, if it was asked for.
    labels : tuple
        For a target such as ``becomes("good")``, the labels that the classifier predicts for the
        query and for each counterfactual, if it runs in this process; else empty.
    about : dict of str to str
        Facts for the reader, as ``{"model": "rates.onnx", "row": "4711"}``; ``output`` and ``unit``
        name the model's output in texts, tables and plots, ``title`` is the title of a report.
    """

    query: Row
    output: float
    target: Target | TextTarget
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
    binding: tuple[BindingConstraint, ...] = ()
    no_single_constraint: bool = False
    method: str = "bayes-cfx"
    seed: int | None = None
    jump: tuple[float, float] | None = None
    n_wanted: int = 1
    proof: str | None = None
    bound: float | None = None
    proof_reason: str = ""
    menu: Menu | None = None
    labels: tuple[Any, ...] = ()
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
        """The valid counterfactual with the lowest cost, or the best guess."""
        return self.counterfactuals[0]

    @property
    def rows(self) -> Rows:
        """The counterfactual rows as one table with the user's columns and dtypes."""
        return self.layout.table([list(c.row) for c in self.counterfactuals])

    @property
    def query_rows(self) -> Rows:
        """The query as a table with one row and the user's columns and dtypes."""
        return self.layout.table([list(self.query)])

    def to_frame(self, *, changes_only: bool = False) -> pd.DataFrame:
        """Return one line per counterfactual, with its row and its figures.

        The columns are ``status`` and ``query_output``; the row, with the dtypes of the data; for
        each feature that may change the query's own cell, such as ``bmi_before``; ``output``,
        ``valid``, ``potential``, ``cost``, ``distance``, ``n_changes`` and, for a space with data,
        ``plausibility``; ``changes`` as text, ``n_evaluations`` and ``stopped``. ``_`` is appended
        to names that columns of the data have.

        Parameters
        ----------
        changes_only : bool, default False
            Show only the columns in which a counterfactual differs from the query, with ``"-"``
            where it does not, and the figures from ``output`` to ``plausibility``. If some of
            these columns are derived, ``follows`` names them.
        """
        check(isinstance(changes_only, bool), "changes_only", "True or False", changes_only)
        if not changes_only:
            return answer_frame(self)
        rows = as_frame(self.rows)
        columns = list(rows.columns)
        frame = self._changed_columns(rows)
        for name in self.figure_names:
            frame[free_name(name, columns)] = [getattr(c, name) for c in self.counterfactuals]
        return frame

    @property
    def figure_names(self) -> tuple[str, ...]:
        """The attributes of a counterfactual that follow the changed columns in a table."""
        names = ("output", "valid", "potential", "cost", "distance", "n_changes")
        return names if self.best.plausibility is None else (*names, "plausibility")

    def _changed_columns(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns in which a row differs from the query, ``"-"`` where it does not.

        If some of them are derived, the column ``follows`` names these.
        """
        before = cells_of(self.query_rows)[0]
        after = cells_of(frame)
        shown: dict[Any, list[Any]] = {}
        for j, name in enumerate(frame.columns):
            cells = ["-" if same_cell(row[j], before[j]) else row[j] for row in after]
            is_changed = not all(same_cell(row[j], before[j]) for row in after)
            if is_changed:
                shown[name] = cells
        follows = [", ".join(map(str, found.follows)) or "-" for found in self.counterfactuals]
        if set(follows) != {"-"}:
            shown[free_name("follows", list(frame.columns))] = follows
        return pd.DataFrame(shown, index=frame.index, dtype=object)

    def to_json(self) -> str:
        """Return the whole answer as JSON; rules that are functions are written by name."""
        evaluations = archive.write_evaluations(self.evaluations)
        return archive.dumps("explanation", archive.write(self, evaluations))

    @classmethod
    def from_json(cls, text: str) -> Explanation:
        """Return the answer that :meth:`to_json` wrote, exactly, or raise an `ArchiveError`."""
        content = archive.loads("explanation", text)
        with reading("`text`", ArchiveError, "Pass what to_json returned."):
            return cls.from_content(content, archive.read_evaluations(content["evaluations"]))

    @classmethod
    def from_content(cls, content: Mapping[str, Any], evaluations: Evaluations) -> Explanation:
        """Return the answer of a parsed archive; raise if its fields do not work together."""
        answer = cls(**archive.read(content, evaluations))
        archive.write(answer, None)
        answer._repr_html_()
        answer.to_frame(changes_only=True)
        return answer

    def verify(self, model: object, space: Space | None = None) -> bool:
        """Return whether everything the answer claims is true, mostly in one call of the model.

        Each row is scored again, tested against every limit and rule, and, where it is called
        valid, against the target; :meth:`violations` lists the false claims. Outputs may differ by
        a few units in the last place, or by the model's own differences between batches. Only the
        answer is needed, also after a JSON round trip, unless rules are functions.

        Parameters
        ----------
        model : object
            The model.
        space : Space, optional
            The space of the search, if the answer comes from JSON and its rules are functions.
        """
        return not self.violations(model, space)

    def violations(self, model: object, space: Space | None = None) -> tuple[str, ...]:
        """Return the false claims of this answer in words; empty if :meth:`verify` holds."""
        return self.violations_given(model, space, None)

    def violations_given(
        self, model: object, space: Space | None, outputs: Array | None
    ) -> tuple[str, ...]:
        """Return the false claims, given the model's outputs ``(1 + k,)`` if they are known.

        The first is that of the query, the others are those of the counterfactuals.
        """
        space = self.space if space is None else space
        check(isinstance(space, Space), "space", "a Space", space, SpaceError)
        if space.unrestored:
            raise SpaceError(
                "`space` must be given, because these rules are functions, which JSON does not "
                f"hold: {', '.join(space.unrestored)}. Pass the space that was used."
            )
        region = around(space, self.query_rows)
        accepted = self.accepted
        if not isinstance(self.target, TextTarget):
            accepted = self.target.acceptance(self.output, self.tolerance)
            if accepted != self.accepted or self.target.wanted(self.output) != self.wanted:
                return ("the target asks for other outputs",)
        scored = claimed(as_model(model, region.schema), self.target)
        return violations(self, scored, region, accepted, outputs)

    @property
    def verdict(self) -> str:
        """How the search ended, in words."""
        return answer_text.verdict(self)

    def __repr__(self) -> str:
        return "\n".join(answer_text.answer_lines(self))

    def to_markdown(self) -> str:
        """Return the answer as sentences and a table in Markdown, all text escaped."""
        target, *rest = (markup.plain(text) for text in self._sentences())
        table = markup.markdown(*answer_text.change_table(self))
        return (
            "\n\n".join([target, table, *rest, *self._menu(markup.markdown, markup.plain)]) + "\n"
        )

    def _repr_html_(self) -> str:
        target, *rest = (markup.paragraph(text) for text in self._sentences())
        table = markup.table(*answer_text.change_table(self))
        return markup.page(target, table, *rest, *self._menu(markup.table, markup.paragraph))

    def _menu(
        self,
        table: Callable[[Sequence[str], Sequence[Sequence[str]]], str],
        paragraph: Callable[[str], str],
    ) -> list[str]:
        """Return the parts of the menu, given how to write a table and a paragraph."""
        if self.menu is None:
            return []
        return [table(MENU_HEAD, self.menu.lines()), *map(paragraph, self.menu.notes())]

    def _sentences(self) -> list[str]:
        """Return the texts of the answer around its table of changes."""
        return [
            answer_text.target(self),
            self.verdict,
            *kept_texts(self),
            *answer_text.valid_texts(self),
            answer_text.facts(self),
        ]
