"""The settings of a call, checked before the model is asked anything."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pkgutil import resolve_name
from typing import Any, Literal, TypeAlias, TypedDict

import numpy as np

from bayescfx.checks import check, check_whole, is_number, shown
from bayescfx.errors import SettingsError, optional, suggest
from bayescfx.evaluations.evaluator import OnFault
from bayescfx.models.model import Model
from bayescfx.search.auto import Auto
from bayescfx.search.methods import METHODS
from bayescfx.search.question import Search
from bayescfx.search.sweep import Sweep
from bayescfx.search.turns import Listener

Seed: TypeAlias = int | np.random.Generator | None
Share: TypeAlias = Literal["block", "none"]

#: Rows per query that a cheap local model is asked for at most, and any other model.
LOCAL_BUDGET = 2000
REMOTE_BUDGET = 100
#: The most work of one proof, in summands of boxes: about one second of one core. It is counted in
#: work, not in time, so that the same seed gives the same answer on a busy machine.
PROOF_WORK = 15e6
#: With several queries a proof has this part of it, so that proofs take about as long as sweeps.
#: Benchmark `python -m benchmarks exact`, 2026-11-18.
PROOFS_PER_QUERY = 8


class CallOptions(TypedDict, total=False):
    """The settings of a call as keyword arguments; see `CallSettings`."""

    method: str | Search
    budget: int | None
    n: int
    diverse: bool
    tolerance: float
    short_decimals: bool
    timeout: float | None
    on_fault: OnFault
    share: Share
    rng: Seed
    on_step: Listener | None
    progress: bool
    run: str | None
    n_jobs: int | None
    prove: bool | float
    menu: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class CallSettings:
    """How the questions of one call are answered.

    Parameters
    ----------
    method : str or Search, default "auto"
        ``"auto"``: a sweep without a surrogate where the budget affords 50 rows per feature that
        may move or 2,000 in all; else Bayes-CFX, which also takes over when the sweep has not
        reached the target. If the model can be read, a short proof comes before the sweep, which
        mostly finds the answer, and a longer one after it.
        By name: ``"bayes-cfx"``, ``"sweep"``, ``"exact"``, ``"bayes"``, ``"random"``,
        ``"lbfgsb"``, ``"gradient"``; or a configured one such as ``BayesCFX(batch=16)``.
    budget : int, optional
        The most single rows sent to the model for one query, the query's included. By default
        100; with ``"auto"`` and ``"sweep"`` 2,000 for estimators that run in this process
        (scikit-learn, LightGBM, XGBoost, CatBoost, InterpretML, ONNX Runtime, PyTorch).
    n : int, default 1
        The number of different counterfactuals wanted for one query. Each changes something that
        no other changes; fewer are returned, with a note, if there are no more. If the best answer
        is proven, so are the others, as far as the work allows: each is the cheapest row that
        changes only its features.
    diverse : bool, default False
        Which answers are wanted, if several: the nearest with different sets of features, or with
        True the nearest and others that share as few features with it and each other as possible.
    tolerance : float, default 0.05
        The share of the wanted change by which an exact target, such as ``reach(150)``, may be
        missed and still count as reached. No other target has a tolerance.
    short_decimals : bool, default True
        Whether changed numbers become the shortest decimals that keep the target reached and the
        constraints, for at most one per cent of the cost, and no change is too small to notice.
        ``print(space)`` shows the smallest changes; numbers with larger steps stay as they are.
        That takes a few rows: one in thirty of the budget, and at most 60 per answer, are kept for
        it. With False, answers are as the search found them, with all digits.
    timeout : float, optional
        Seconds after which the whole call ends with the best so far.
    on_fault : {"raise", "skip"}, default "raise"
        What happens to rows for which the model fails: raise an error that carries
        ``.evaluations`` and, once the search has begun, the best so far in ``.explanations``; or
        treat the rows as not allowed.
    share : {"block", "none"}, default "block"
        What a query learns from, besides the evaluations known when the call began: the rows
        scored for the other queries of its block of 64, or nothing, as if it were asked alone.
    rng : int or numpy.random.Generator, optional
        The same seed gives the same answers, whatever `n_jobs`.
    on_step : callable, optional
        Receives a `Step` per query after each model call. If it raises, all searches end with the
        best so far.
    progress : bool, default False
        Whether to show a progress bar, in a notebook or a terminal; needs tqdm.
    run : str, optional
        A name for this call, kept in the file of evaluations. Made again under this name, the
        call replays the scored rows and ends as if it had never been cut short, seed included.
        Without a name, an unfinished call with the same arguments and seed is continued.
    n_jobs : int, optional
        The number of workers that answer blocks at the same time, with joblib: -1 is one per core.
        By default 1, this process, unless ``joblib.parallel_config`` sets another number and
        place: processes on this machine, threads, a Dask or a Ray cluster. The answers are the
        same. With workers, the bar counts queries, and `on_step` receives one `Step` per query,
        when its block is done. If workers are lost three times with the same block, the call
        raises a `WorkerError` with ``.evaluations`` and, in ``.explanations``, the answers of
        finished blocks.
    prove : bool or float, default True
        Whether ``"auto"`` proves its answers, for models that can be read: that no allowed change
        with a lower cost reaches the target, or that the target is out of reach. True limits the
        work of a proof, to about a second for one query and an eighth of it for each of several, so
        that the same seed gives the same answer; a number is a limit in seconds.
    menu : bool, default False
        Whether answers list which single features and pairs can reach the target, for tree
        ensembles and linear models whose answers are proven; see :func:`bayescfx.menu`. It takes
        a few times as long as a proof. The rows that it scores do not count towards the budget.

    Attributes
    ----------
    search : Search
        The search that `method` names or is.
    """

    method: str | Search = "auto"
    budget: int | None = None
    n: int = 1
    diverse: bool = False
    tolerance: float = 0.05
    short_decimals: bool = True
    timeout: float | None = None
    on_fault: OnFault = "raise"
    share: Share = "block"
    rng: Seed = None
    on_step: Listener | None = None
    progress: bool = False
    run: str | None = None
    n_jobs: int | None = None
    prove: bool | float = True
    menu: bool = False

    search: Search = field(init=False)

    def __post_init__(self) -> None:
        if self.budget is not None:
            check_whole("budget", self.budget, 1)
        check_whole("n", self.n, 1)
        for name, expected, is_usable, advice in _EXPECTED:
            value = getattr(self, name)
            check(is_usable(value), name, expected, value, advice=advice)
        _check_seed(self.rng)
        object.__setattr__(self, "search", find_search(self.method))
        if self.progress:
            optional("tqdm", "`progress` needs", "progress")
        if self.n_jobs not in (None, 1):
            optional("joblib", "`n_jobs` needs", "parallel")
            optional("cloudpickle", "`n_jobs` needs", "parallel")

    def changed(
        self, options: Mapping[str, Any], only: Collection[str] | None = None
    ) -> CallSettings:
        """Return the settings with some of them replaced; an unknown name is an error.

        So is a setting that is not among `only`, where those are all that matter.
        """
        if not options:
            return self
        names = [each.name for each in fields(self) if each.init]
        _check_names(options, names, names if only is None else only)
        return replace(self, **options)

    @property
    def method_name(self) -> str:
        """The name of the method, for the answer."""
        return self.method if isinstance(self.method, str) else type(self.method).__name__

    @property
    def seed(self) -> int | None:
        """The seed, if it is a number."""
        return int(self.rng) if isinstance(self.rng, int | np.integer) else None

    def proof_work(self, n_queries: int) -> float:
        """Return the most work of the proof for one of several queries; infinite with seconds."""
        if self.prove is not True:
            return math.inf
        return PROOF_WORK if n_queries == 1 else PROOF_WORK / PROOFS_PER_QUERY

    @property
    def proof_seconds(self) -> float:
        """The most seconds of a proof; infinite if its work is limited."""
        return math.inf if isinstance(self.prove, bool) else float(self.prove)

    def rows_per_query(self, model: Model) -> int:
        """Return how many rows may be sent to the model for one query."""
        if self.budget is not None:
            return int(self.budget)
        can_sweep = isinstance(self.search, Auto | Sweep)
        return LOCAL_BUDGET if model.local and can_sweep else REMOTE_BUDGET


#: Name of a setting, what it must be, a test of it, advice.
_EXPECTED: tuple[tuple[str, str, Callable[[Any], bool], str], ...] = (
    (
        "n_jobs",
        "None or a whole number other than 0",
        lambda jobs: jobs is None or (is_number(jobs) and jobs == int(jobs) != 0),
        "",
    ),
    (
        "tolerance",
        "at least 0 and less than 1",
        lambda share: is_number(share, 0) and share < 1,
        "It is the share of the wanted change that may be missed.",
    ),
    (
        "timeout",
        "None or seconds >= 0",
        lambda seconds: (
            seconds is None
            or is_number(seconds, 0)
            or (isinstance(seconds, float) and seconds == math.inf)
        ),
        "",
    ),
    (
        "prove",
        "True, False or seconds >= 0",
        lambda prove: isinstance(prove, bool) or is_number(prove, 0),
        "",
    ),
    (
        "on_step",
        "None or a function of a Step",
        lambda listener: listener is None or callable(listener),
        "",
    ),
    (
        "on_fault",
        "'raise' or 'skip'",
        lambda choice: isinstance(choice, str) and choice in ("raise", "skip"),
        "",
    ),
    (
        "share",
        "'block' or 'none'",
        lambda choice: isinstance(choice, str) and choice in ("block", "none"),
        "",
    ),
    ("diverse", "True or False", lambda value: isinstance(value, bool), ""),
    ("short_decimals", "True or False", lambda value: isinstance(value, bool), ""),
    ("menu", "True or False", lambda value: isinstance(value, bool), ""),
    ("progress", "True or False", lambda value: isinstance(value, bool), ""),
    ("run", "None or a name", lambda value: isinstance(value, str | None), ""),
)


def _check_names(given: Iterable[str], names: list[str], allowed: Collection[str]) -> None:
    """Raise if a given name is none of the settings' `names`, or none of those `allowed` here."""
    for name in given:
        if name not in names:
            raise SettingsError(f"there is no setting {name!r}.{suggest(name, names)}")
        if name not in allowed:
            raise SettingsError(
                f"the setting {name!r} has no effect here; only {', '.join(map(repr, allowed))} "
                "may be given.",
                parameter=name,
            )


def _check_seed(rng: Any) -> None:
    """Raise unless a generator can be made from `rng`."""
    try:
        np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        expected = "None, a whole number of at least 0 or a numpy Generator"
        raise SettingsError(
            f"`rng` must be {expected}; got {shown(rng)}.", parameter="rng"
        ) from error


def find_search(method: Any) -> Search:
    """Return the search that `method` names or is."""
    if not isinstance(method, str):
        return _check_search(method)
    if method in METHODS:
        default: Search = resolve_name(METHODS[method])()
        return default
    expected = f"one of {', '.join(map(repr, METHODS))}"
    raise SettingsError(
        f"`method` must be {expected}; got {shown(method)}.{suggest(method, METHODS)}",
        parameter="method",
    )


def _check_search(method: Any) -> Search:
    """Return a configured search; raise if it is none."""
    entry_point = getattr(method, "rounds", None) or getattr(method, "run", None)
    if callable(entry_point) and not isinstance(method, type):
        search: Search = method
        return search
    raise SettingsError(
        f"`method` must be a name or a configured Search such as BayesCFX(); got {shown(method)}.",
        parameter="method",
    )


def child_generators(
    rng: Seed, parent: np.random.Generator, first: int, n: int
) -> list[np.random.Generator]:
    """Return a generator for each of `n` queries from position `first` on.

    Each is a child of the seed, by position: answers do not depend on how queries are grouped.
    `parent` is the generator made from `rng`.
    """
    if isinstance(rng, int | np.integer):  # earlier positions may have been answered before
        seeds = np.random.SeedSequence(int(rng), n_children_spawned=first)
        parent = np.random.default_rng(seeds)
    try:
        return parent.spawn(n)
    except TypeError:  # a generator that was not made from a seed sequence
        return [np.random.default_rng(seed) for seed in parent.integers(2**63, size=n)]
