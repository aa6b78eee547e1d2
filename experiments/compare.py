"""``python -m experiments compare A B``: compare the verdicts of two results folders."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments import environment
from experiments.claims import Claim

FILE = "comparison.json"
_AGREE = 0.01  # largest relative difference of figures without random error


def compare(first: Sequence[Claim], second: Sequence[Claim]) -> list[dict[str, Any]]:
    """Return one row per claim of either list: verdicts, figures, and whether they agree."""
    others = {claim.key: claim for claim in second}
    rows = []
    for claim in first:
        other = others.pop(claim.key, None)
        rows.append(_row(claim.key, claim, other))
    return rows + [_row(key, None, other) for key, other in others.items()]


def _row(key: str, a: Claim | None, b: Claim | None) -> dict[str, Any]:
    verdicts = [None if claim is None else claim.verdict for claim in (a, b)]
    return {
        "claim": key,
        "verdicts": verdicts,
        "ours": [None if claim is None else claim.ours for claim in (a, b)],
        "same_verdict": verdicts[0] == verdicts[1],
        "figures_agree": a is not None and b is not None and agree(a, b),
    }


def agree(a: Claim, b: Claim) -> bool:
    """Return whether the intervals overlap, or the figures differ by at most 1 %."""
    if a.margin is None or b.margin is None:
        return a.margin is b.margin
    return a.margin.meets(b.margin) or math.isclose(a.margin.value, b.margin.value, rel_tol=_AGREE)


def save(
    rows: Sequence[Mapping[str, Any]], folders: tuple[Path, Path], path: Path
) -> dict[str, Any]:
    """Write the comparison of two folders, with the environment of each."""
    made = [environment.line(environment.load(folder)) for folder in folders]
    found = {"environments": made, "rows": list(rows)}
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return found


def load(folder: Path) -> dict[str, Any]:
    """Return the comparison in a results folder; empty if there is none."""
    path = folder / FILE
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows as a table."""
    lines = ["| claim | verdict, first | verdict, second | same | figures agree |"]
    lines.append("|---|---|---|---|---|")
    for row in rows:
        verdicts = " | ".join(verdict or "missing" for verdict in row["verdicts"])
        same, meet = ("yes" if row[key] else "**no**" for key in ("same_verdict", "figures_agree"))
        lines.append(f"| `{row['claim']}` | {verdicts} | {same} | {meet} |")
    return "\n".join(lines)


def tell(found: Mapping[str, Any], claims: Sequence[Claim]) -> str:
    """Return the section of the report; a comparison of other results is not shown."""
    head = "## Does it replicate?\n\n"
    rows = found.get("rows", [])
    now = {claim.key: claim.ours for claim in claims}
    if not rows:
        return f"{head}Not compared with another environment: see `make reproduce-oldest`.\n"
    if now != {row["claim"]: row["ours"][0] for row in rows if row["ours"][0] is not None}:
        return f"{head}These results are newer than the last comparison; run it again.\n"
    same, meet = (sum(row[key] for row in rows) for key in ("same_verdict", "figures_agree"))
    first, second = found["environments"]
    differing = [row for row in rows if not (row["same_verdict"] and row["figures_agree"])]
    text = f"""\
{head}Everything was run in two environments and compared by `python -m experiments compare`:

* first: {first}
* second: {second}

The verdict is the same on {same} of {len(rows)} claims; the figures agree on {meet}: their
intervals meet or, where nothing is random, they are within {_AGREE:.0%} of each other.
"""
    return f"{text}\n{table(differing)}\n" if differing else text
