"""Certificates of linear models: boxes with multipliers, which the check evaluates.

Boxes are split until multipliers of a linear program exclude each of them, by the check's own
bound (`certificate_sums`). Every certificate that is made has therefore passed its check.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.data.values import Plain, to_plain
from bayescfx.models.readers import LinearModel
from bayescfx.potentials import Intervals
from bayescfx.search.exact.branching import Work
from bayescfx.search.exact.cells import NoProof
from bayescfx.search.exact.certificate_check import checksum, digest_of_model
from bayescfx.search.exact.certificate_space import CertificateError, read_question
from bayescfx.search.exact.certificate_sums import (
    TARGET,
    LinearBounds,
    Multipliers,
    SumBox,
    fault_of_norm,
)
from bayescfx.search.exact.certificates import describe_question
from bayescfx.search.exact.linear_relaxation import BoxPrograms, Mixture
from bayescfx.space.region import Region

#: Share by which the proven limit is below the cost of an answer: a proof leaves a third of it.
SAME_COST = 3e-6
#: Work of a linear program over a box, in summands as for trees: 15 million take a second.
_PROGRAM_WORK = 6e4
#: Shares of codes below this size are 0 (numerical).
_NO_SHARE = 1e-7
#: What splitting a feature must at least better to be worth it (numerical).
_LEAST_GAP = 1e-12
#: Multipliers that exclude nothing but an empty box.
_ZERO = Multipliers(0.0, 0.0, 0.0, ())


def make_linear_certificate(
    form: LinearModel,
    region: Region,
    accepted: Intervals,
    slack: float = 0.0,
    limit: float = np.inf,
    work: Work | None = None,
    answer: Array | None = None,
) -> dict[str, Any]:
    """Return a certificate that no row with a cost below a limit reaches a target.

    Parameters
    ----------
    form : LinearModel
        The model.
    region : Region
        The rows that are allowed.
    accepted : Intervals
        Sums that reach the target.
    slack : float
        By how much sums may differ from the model's through rounding.
    limit : float
        Slightly less than the cost of the answer; infinite if the target is out of reach.
    work : Work, optional
        What limits the work.
    answer : array of shape (d,), optional
        The codes of the answer; the check compares its cost with the limit.

    Returns
    -------
    dict
        In JSON's own types.

    Raises
    ------
    NoProof
        If the work is over, the answer is wrong, or a box can't be closed: a rule that is not
        linear excludes its rows, or its sum is as close to the target as rounding errors are. Also
        if the distance has another norm than 0 and 1.
    """
    fault = fault_of_norm(region.price.norm)
    if fault is not None:
        raise NoProof(fault)
    certificate = describe_question((), region, accepted, slack, limit)
    question = read_question(certificate)
    certificate["model"] = digest_of_model(form, question)
    certificate["answer"] = None if answer is None else [to_plain(float(c)) for c in answer]
    try:
        bounds = LinearBounds(form, question)
        if answer is not None:
            bounds.check_answer(answer)
        certificate["boxes"] = _Recorder(bounds, work or Work()).record()
    except CertificateError as error:
        raise NoProof(f"the certificate would not pass its check: {error}") from error
    certificate["checksum"] = checksum(certificate)
    return certificate


@dataclass(eq=False)
class _Recorder:
    """Splits boxes until each is closed, and keeps all splits."""

    bounds: LinearBounds
    work: Work
    relaxation: BoxPrograms = field(init=False)

    def __post_init__(self) -> None:
        self.relaxation = BoxPrograms(self.bounds)

    def record(self) -> list[Plain]:
        """Return splits and reasons in depth-first order."""
        order: list[Plain] = []
        waiting = [self.bounds.start()]
        while waiting:
            if self.work.is_over:
                raise NoProof("the work for the certificate is over")
            box = waiting.pop()
            content = self._settle(box)
            if isinstance(content, tuple):
                key, value = content
                first, second = self.bounds.split(box, key, value)
                waiting += [second, first]
                order.append([key, to_plain(value)])
            else:
                order.append(content)
        return order

    def _settle(self, box: SumBox) -> Any:
        """Return the reason why a box is closed, or the key and the value of a split."""
        bounds = self.bounds
        word = bounds.reason_to_close(box.codes)
        if word is not None:
            return word
        small = bounds.shrink(box)
        if small is None:
            return self._plain(_ZERO)
        if len(small.targets) > 1:
            return TARGET, small.targets[0]
        before = self.relaxation.n_programs
        mixture = self.relaxation.solve(small)
        self.work.done += _PROGRAM_WORK * (self.relaxation.n_programs - before)
        plain = None if mixture is None else self._plain(mixture.multipliers)
        if plain is not None and bounds.fault(box, plain) is None:
            return plain
        found = None if mixture is None else self._choose_split(small, mixture)
        found = self._split_anything(small) if found is None else found
        if found is None:
            raise NoProof(f"no reason excludes the rows with {bounds.describe(box)}")
        return found

    def _plain(self, multipliers: Multipliers) -> dict[str, Any]:
        """Return multipliers as JSON."""
        plain = multipliers.to_plain()
        plain["rules"] = plain["rules"] or [0.0] * len(self.bounds.question.rules)
        return plain

    # ── splits ──

    def _choose_split(self, box: SumBox, mixture: Mixture) -> tuple[Any, Any] | None:
        """Return the split that promises most; None if the mixture names none."""
        multipliers = mixture.multipliers
        gaps = [(self._gap(j, mixture, multipliers), j) for j in self.bounds.features]
        gap, feature = max(gaps, default=(0.0, -1))
        if gap <= _LEAST_GAP:  # constraints that do not matter to the mixture may matter to rows
            largest = float(np.abs(mixture.terms.gain).max(initial=0.0)) or 1.0
            plain = replace(multipliers, target=1.0 / largest, changes=1.0)
            gaps = [(self._gap(j, mixture, plain), j) for j in self.bounds.features]
            gap, feature = max(gaps, default=(0.0, -1))
        found = self._split_feature(box, feature, mixture) if gap > _LEAST_GAP else None
        return self._split_block(box) if found is None else found

    def _gap(self, j: int, mixture: Mixture, multipliers: Multipliers) -> float:
        """Return by how much the mixture of a feature is too cheap, about."""
        own = np.flatnonzero(mixture.feature == j)
        weights = mixture.weights[own]
        used = own[weights > _NO_SHARE]
        if len(used) < 2:
            return 0.0
        terms = mixture.terms
        gains = terms.gain[used]
        spread = float(np.ptp(gains)) * abs(multipliers.target)
        if not self.bounds.question.allowed[j].is_line:
            return (1.0 - float(weights.max())) * (spread + _LEAST_GAP * 2.0)
        changed = float(weights @ terms.changed[own])
        is_charged = float(np.ptp(terms.changed[used])) > 0.0
        charge = multipliers.cost * self.bounds.question.prices.per_change + multipliers.changes
        gap = (1.0 - changed) * charge * is_charged
        codes = self.bounds.question.allowed[j].codes
        if codes is not None:  # the mixture lies between two codes
            code = float(weights @ terms.code[own])
            nearest = float(np.abs(codes - code).min())
            size = float(np.ptp(terms.code[used]))
            gap += spread * nearest / size
        return gap

    def _split_feature(self, box: SumBox, j: int, mixture: Mixture) -> tuple[Any, Any] | None:
        """Return a split of a feature between the codes of its mixture."""
        question = self.bounds.question
        own = mixture.feature == j
        weights = mixture.weights[own]
        codes = mixture.terms.code[own]
        if not question.allowed[j].is_line:
            return j, float(codes[weights.argmax()])
        mean = float(weights @ codes)
        query = float(question.prices.query[j])
        allowed = question.allowed[j]
        below = allowed.last_up_to(float(np.nextafter(query, -np.inf)))
        around = [query, below] if mean > query else [below, query]
        for code in (*around, allowed.last_up_to(mean)):
            found = self._checked(box, j, code)
            if found is not None:
                return found
        return None

    def _checked(self, box: SumBox, j: int, code: float) -> tuple[Any, Any] | None:
        """Return a split of a line that leaves codes on both sides; None if this one does not."""
        allowed = self.bounds.question.allowed[j]
        is_split = box.codes.low[j] <= code and allowed.first_above(code) <= box.codes.high[j]
        return (j, code) if is_split else None

    def _split_block(self, box: SumBox) -> tuple[Any, Any] | None:
        """Return a split of a feature that must move together with others, at the query."""
        question = self.bounds.question
        for block in question.blocks:
            for j in block:
                query = float(question.prices.query[j])
                if not question.allowed[j].is_line:
                    continue
                below = question.allowed[j].last_up_to(float(np.nextafter(query, -np.inf)))
                for code in (query, below):
                    found = self._checked(box, j, code)
                    if found is not None:
                        return found
        return None

    def _split_anything(self, box: SumBox) -> tuple[Any, Any] | None:
        """Return a split of the feature with most codes, if its codes are listed."""
        question = self.bounds.question
        best: tuple[int, Any, Any] = (1, None, None)
        for j in self.bounds.features:
            codes = question.allowed[j].codes
            if codes is None:
                continue
            kept = codes
            if question.allowed[j].is_line:
                kept = codes[(codes >= box.codes.low[j]) & (codes <= box.codes.high[j])]
            else:
                kept = codes[box.codes.sets[j]]
            if len(kept) > best[0]:
                best = (len(kept), j, float(kept[(len(kept) - 1) // 2]))
        return None if best[1] is None else (best[1], best[2])
