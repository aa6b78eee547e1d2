"""Certificates: the boxes of a finished branch and bound, so that others can check the proof.

The allowed rows are split again for the limit that was proven. A box is closed as soon as the
check of certificates (`certificate_check`) finds a reason; the bounds of the search only choose
where to split. Every certificate that is made has therefore passed its check.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.data.tables import Layout, cells_of, dtype_to_plain
from bayescfx.data.values import Plain, to_plain
from bayescfx.potentials import Intervals
from bayescfx.search.exact.branching import TUNING, Branching, Work
from bayescfx.search.exact.cells import Listing, NoProof
from bayescfx.search.exact.certificate_check import FORMAT, BoxBounds, checksum, digest_of_model
from bayescfx.search.exact.certificate_space import (
    CertificateError,
    CodeBox,
    grid_codes,
    read_question,
)
from bayescfx.search.exact.leaves import LeafTable
from bayescfx.search.exact.pool import Boxes
from bayescfx.search.exact.problem import BoxProblem
from bayescfx.search.exact.steps import choose_cuts, drop_leaves, halve, narrow, pin, tree_bounds
from bayescfx.space.region import Region

#: Shorter lists of codes are written in full.
LEAST_GRID = 5


def make_certificate(
    table: LeafTable,
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
    table : LeafTable
        The model.
    region : Region
        The rows that are allowed.
    accepted : Intervals
        Scores that reach the target, on the scale of the sums.
    slack : float
        By how much scores may differ from the model's through rounding.
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
        linear excludes its rows, or its score is as close to the target as rounding errors are.
    """
    listed = {cells.feature for cells in table.cells if isinstance(cells, Listing)}
    certificate = describe_question(listed, region, accepted, slack, limit)
    question = read_question(certificate)
    certificate["model"] = digest_of_model(table.form, question)
    certificate["answer"] = None if answer is None else [to_plain(float(c)) for c in answer]
    problem = BoxProblem(table, region, accepted, slack, limit, keep_costly=True)
    try:
        bounds = BoxBounds(table.form, question)
        if answer is not None:
            bounds.check_answer(answer)
        recorder = _Recorder(problem, limit=limit, work=work or Work(), bounds=bounds)
        certificate["boxes"] = recorder.record()
    except CertificateError as error:
        raise NoProof(f"the certificate would not pass its check: {error}") from error
    certificate["checksum"] = checksum(certificate)
    return certificate


# ── the question ──


def describe_question(
    listed: Collection[int], region: Region, accepted: Intervals, slack: float, limit: float
) -> dict[str, Any]:
    """Return everything in a certificate but the model, the answer and the boxes.

    `listed` are features on a line whose boxes must be sets of codes.
    """
    rows = region.rows(region.query[None])
    schema = region.schema
    counts = ~region.recomputed & ~np.isnan(region.query)
    return {
        "format": FORMAT,
        "table": {
            "features": [[to_plain(n), f.to_plain()] for n, f in schema.features.items()],
            "columns": [[to_plain(c.name), dtype_to_plain(c.dtype)] for c in schema.columns],
            "array": None if schema.array is None else str(schema.array),
            "groups": [[to_plain(n), to_plain(tuple(c))] for n, c in schema.groups.items()],
            "layout": Layout.of(rows).to_plain(),
            "cells": [to_plain(cell) for cell in cells_of(rows)[0]],
        },
        "features": [
            _describe_feature(region, j, is_listed=j in listed, counts=bool(counts[j]))
            for j in range(len(region.query))
        ],
        "cost": {
            "norm": float(region.price.norm),
            "per_change": float(region.price.per_change),
        },
        "max_changes": region.max_changes,
        "rules": _describe_rules(region),
        "together": [list(map(int, block)) for block in region.blocks],
        "accepted": [[to_plain(float(low)), to_plain(float(high))] for low, high in accepted],
        "slack": float(slack),
        "limit": float(limit) if np.isfinite(limit) else None,
    }


def _describe_feature(region: Region, j: int, *, is_listed: bool, counts: bool) -> dict[str, Plain]:
    """Return the query's code, the allowed codes and the costs of one feature."""
    axis = region.axes[j]
    is_free = bool(region.low[j] < region.high[j])
    codes = axis.choices if is_free else region.query[[j]]
    grid = None if codes is None else _describe_grid(region, j, codes)
    is_set = region.categorical[j] or region.cyclic[j] or is_listed
    return {
        "query": to_plain(float(region.query[j])),
        "low": to_plain(float(axis.low)),
        "high": to_plain(float(axis.high)),
        "codes": None if codes is None or grid else [to_plain(float(code)) for code in codes],
        "grid": grid,
        "narrow": None if axis.narrow is None else np.dtype(axis.narrow).name,
        "is_line": is_free and not is_set,
        "counts": counts,
        "scale": to_plain(float(region.scale[j])),
        "weight": float(region.weight[j]),
    }


def _describe_grid(region: Region, j: int, codes: Array) -> list[Plain] | None:
    """Return the first and last step of allowed codes on a grid; None if they are not a grid."""
    axis = region.axes[j]
    step = axis.feature.code_step
    if not step or len(codes) < LEAST_GRID:
        return None
    first = round((axis.low - axis.anchor) / step)
    last = round((axis.high - axis.anchor) / step)
    if not np.array_equal(grid_codes(axis.feature, axis.query, first, last), codes):
        return None
    return [first, last]


def _describe_rules(region: Region) -> list[Plain]:
    """Return the linear rules that read no derived column."""
    rules: list[Plain] = []
    if not region.rules:
        return rules
    for coefficients, bound in zip(region.A, region.b, strict=True):
        used = np.flatnonzero(coefficients).tolist()
        if not region.recomputed[used].any():
            factors: list[Plain] = [[j, float(coefficients[j])] for j in used]
            rules.append({"coefficients": factors, "bound": float(bound)})
    return rules


# ── the boxes ──


@dataclass(eq=False)
class _Node:
    """A box of the certificate: closed for a reason, or split at a code of a feature."""

    reason: str = ""
    feature: int = -1
    code: float = np.nan
    parts: tuple[_Node, _Node] | None = None


@dataclass(eq=False, kw_only=True)
class _Recorder(Branching):
    """Branch and bound that closes boxes by the check of certificates, and keeps all splits."""

    bounds: BoxBounds = field()

    def record(self) -> list[Plain]:
        """Return splits and reasons in depth-first order."""
        root = _Node()
        start = self.whole()
        self._tighten(start)
        waiting = [(root, self.bounds.question.start(), start)]
        while waiting:
            if self.work.is_over:
                raise NoProof("the work for the certificate is over")
            batch = waiting[-TUNING.batch :]
            del waiting[-TUNING.batch :]
            waiting += self._settle(batch)
        return _in_order(root)

    def _settle(self, batch: list[tuple[_Node, CodeBox, Boxes]]) -> list[Any]:
        """Close or split some boxes; return the parts."""
        is_open = []
        for node, box, _ in batch:
            node.reason = self.bounds.reason_to_close(box) or ""
            is_open.append(not node.reason)
        batch = [each for each, open_ in zip(batch, is_open, strict=True) if open_]
        if not batch:
            return []
        parts = zip(*(boxes.parts() for _, _, boxes in batch), strict=True)
        boxes = Boxes(*(np.concatenate(part) for part in parts))
        is_used = np.zeros(boxes.low.shape, dtype=np.bool_)
        chosen = choose_cuts(self.problem, boxes, self.limit, is_used)
        if (chosen < 0).any():
            place = int(np.flatnonzero(chosen < 0)[0])
            text = self.bounds.question.describe(batch[place][1])
            raise NoProof(f"no reason excludes the rows with {text}")
        children, _ = halve(self.problem, boxes, chosen, is_used)
        self._tighten(children)
        found = []
        for i, (node, box, _) in enumerate(batch):
            low, high = (children.take(np.array([k])) for k in (i, len(batch) + i))
            feature = int(self.problem.cuts.feature[chosen[i]])
            cut = int(self.problem.cuts.cell[chosen[i]])
            node.feature, node.code, is_turned = self._split_code(feature, cut)
            first, second = self.bounds.question.split(box, node.feature, node.code)
            if is_turned:  # the codes fall from cell to cell
                low, high = high, low
            node.parts = (_Node(), _Node())
            found += [(node.parts[0], first, low), (node.parts[1], second, high)]
        return found

    def _tighten(self, boxes: Boxes) -> None:
        """Leave out cells and leaves that can't matter, in place."""
        problem = self.problem
        self.work.done += boxes.mask.size
        pin(problem, boxes)
        boxes.is_new[:] = True
        narrow(problem, boxes, self.limit)
        low, high = tree_bounds(problem, boxes.mask)
        with np.errstate(invalid="ignore"):  # empty trees are closed by the check
            drop_leaves(problem, boxes.mask, (low, high))
            spread = np.nan_to_num(high - low, posinf=0.0, neginf=0.0)
        boxes.spread = spread.astype(np.float32)

    def _split_code(self, feature: int, cut: int) -> tuple[int, float, bool]:
        """Return feature and code of a cut, and whether codes fall from cell to cell."""
        problem = self.problem
        j = int(problem.features[feature])
        at = int(problem.offset[feature]) + cut
        code = problem.code
        if not problem.is_line[feature]:
            return j, float(code[at]), False
        is_turned = bool(code[at] > code[at + 1])
        below, above = (at + 1, at) if is_turned else (at, at + 1)
        # The code of a cell is its nearest to the query, so next to the cut on the far side only.
        if code[above] > problem.region.query[j]:
            before = float(np.nextafter(code[above], -np.inf))
            return j, self.bounds.question.allowed[j].last_up_to(before), is_turned
        return j, float(code[below]), is_turned


def _in_order(root: _Node) -> list[Plain]:
    """Return splits and reasons in depth-first order."""
    order: list[Plain] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.parts is None:
            order.append(node.reason)
        else:
            order.append([node.feature, to_plain(node.code)])
            waiting += [node.parts[1], node.parts[0]]
    return order
