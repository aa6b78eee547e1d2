"""Answers as text, as JSON for scripts, and as files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bayescfx.cli.asking import Asked
from bayescfx.cli.pictures import write_picture, write_report
from bayescfx.cli.settings import SettingsError
from bayescfx.io.protocols import cell as plain_cell
from bayescfx.result import wording
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations

PICTURES = (".png", ".svg", ".pdf")
CODES = {"reached": 0, "best_guess": 3, "unreachable": 4}


def exit_code(answers: Sequence[Explanation]) -> int:
    """Return 0 if all are reached, 3 if some are a best guess, 4 if some are out of reach."""
    found = {answer.status for answer in answers}
    return next((CODES[status] for status in ("best_guess", "unreachable") if status in found), 0)


# ── text ──


def as_text(answer: Explanation) -> str:
    """Return the answer as a table and sentences."""
    return f"{change_table(answer)}\n\n{answer}"


def change_table(answer: Explanation) -> str:
    """Return a table of what changes: one line per feature, one column per answer."""
    several = len(answer.counterfactuals) > 1
    before: dict[Any, Any] = {}
    for found in answer.counterfactuals:
        before.update({name: pair[0] for name, pair in found.changes.items()})
    heads = [f"answer {k}" for k in range(1, len(answer.counterfactuals) + 1)]
    lines = [["", "now", *(heads if several else ["then"])]]
    for name, old in before.items():
        cells = [_then(found.changes, name) for found in answer.counterfactuals]
        lines.append([str(name), wording.cell(old), *cells])
    outputs = [wording.number(found.output) for found in answer.counterfactuals]
    lines.append(["prediction", wording.number(answer.output), *outputs])
    return _aligned(lines)


def _then(changes: wording.Changes, name: Any) -> str:
    return wording.move(*changes[name]).rpartition(" → ")[2] if name in changes else "-"


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[c]) for line in lines) for c in range(len(lines[0]))]
    return "\n".join(
        "  "
        + "  ".join(
            text.ljust(width) if c == 0 else text.rjust(width)
            for c, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def many_as_text(asked: Asked) -> str:
    """Return one line per query: how it ended and what the best answer is."""
    lines = [["query", "status", "now", "then", "changes"]]
    for i, answer in sorted(asked.answers.items()):
        best = answer.best
        lines.append(
            [
                str(i),
                answer.status.replace("_", " "),
                wording.number(answer.output),
                wording.number(best.output),
                wording.moves(best.changes),
            ]
        )
    lines += [[str(f.query), "error", "", "", f.reason] for f in asked.failures]
    widths = [max(len(line[c]) for line in lines) for c in range(4)]
    table = [
        "  ".join([*(t.rjust(w) for t, w in zip(line[:4], widths, strict=True)), line[4]])
        for line in lines
    ]
    reached = sum(answer.reached for answer in asked.answers.values())
    rows = sum(answer.n_evaluations for answer in asked.answers.values())
    count = len(asked.answers) + len(asked.failures)
    return "\n".join([*table, "", f"{reached} of {count} reached; {rows} rows of the model used."])


# ── JSON for scripts ──


def as_plain(answer: Explanation) -> dict[str, Any]:
    """Return the answer in JSON's own types, simple to read; the complete form is `to_json`."""
    names = answer.layout.names
    return {
        "status": answer.status,
        "stopped": answer.stopped,
        "output": _finite(answer.output),
        "target": str(answer.target),
        "wanted": [[_finite(low), _finite(high)] for low, high in answer.wanted],
        "counterfactuals": [
            {
                "output": _finite(found.output),
                "prediction": _finite(found.output),  # as "output" was called; for one version
                "valid": found.valid,
                "potential": _finite(found.potential),
                "cost": _finite(found.cost),
                "changes": {
                    str(name): {"from": _plain(old), "to": _plain(new)}
                    for name, (old, new) in found.changes.items()
                },
                "row": {str(n): _plain(v) for n, v in zip(names, list(found.row), strict=True)},
            }
            for found in answer.counterfactuals
        ],
        "reachable": [_finite(end) for end in answer.reachable],
        "probability_reachable": answer.probability_reachable,
        "n_evaluations": answer.n_evaluations,
        "seed": answer.seed,
        "text": str(answer),
    }


def many_as_plain(asked: Asked) -> dict[str, Any]:
    """Return the answers in JSON's own types, with the position of each query."""
    return {
        "answers": [{"query": i, **as_plain(a)} for i, a in sorted(asked.answers.items())],
        "failures": [{"query": f.query, "error": f.reason} for f in asked.failures],
    }


def dumps(content: Any) -> str:
    """Return JSON for people and scripts."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    return plain_cell(value.item() if hasattr(value, "item") else value)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


# ── files ──


def check_out(paths: Sequence[str], kinds: Sequence[str]) -> None:
    """Raise, before any work, if an output can't be written."""
    for path in paths:
        if Path(path).suffix.lower() not in kinds:
            raise SettingsError(f"--out must end in {', '.join(kinds)}; got {path!r}.")
        folder = Path(path).resolve().parent
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise SettingsError(f"--out {path!r} can't be written: no such folder. Make it first.")


def write(answer: Explanation, path: str) -> None:
    """Write an answer in the form that the file's name asks for."""
    kind = Path(path).suffix.lower()
    if kind == ".json":
        _whole(path, answer.to_json())
    elif kind == ".csv":
        _whole(path, answer.to_frame().to_csv(index=False))
    elif kind == ".html":
        write_report(answer, path)
    else:
        write_picture(answer, path)


def write_many(asked: Asked, path: str) -> None:
    """Write all answers in the form that the file's name asks for."""
    kind = Path(path).suffix.lower()
    if kind == ".csv":
        _whole(path, many_as_table(asked).to_csv(index=False))
    elif kind == ".parquet":
        _replaced(path, many_as_table(asked).to_parquet)
    elif kind == ".json":
        _whole(path, asked.explanations.to_json())
    else:
        write_report(asked.explanations, path)


def many_as_table(asked: Asked) -> pd.DataFrame:
    """Return one line per answer: query, status, f(query), the row and what is known about it."""
    parts = []
    for i, answer in sorted(asked.answers.items()):
        frame = answer.to_frame()
        meta = {"query": i, "status": answer.status, "query_output": answer.output}
        for k, (name, value) in enumerate(meta.items()):
            frame.insert(k, name if name not in frame.columns else f"{name}_", value)
        parts.append(frame)
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    if asked.failures:
        lost = [{"query": f.query, "status": "error", "error": f.reason} for f in asked.failures]
        table = pd.concat([table, pd.DataFrame(lost)], ignore_index=True)
    return table


def read_answer(path: str) -> Explanation | Explanations:
    """Return the answer or answers in a JSON file that `explain` or `explain-many` wrote."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the answer {path!r} can't be read: {error}.") from error
    if '"kind": "explanations"' in text[:200]:
        return Explanations.from_json(text)
    return Explanation.from_json(text)


def _whole(path: str, text: str) -> None:
    _replaced(path, lambda part: Path(part).write_text(text, encoding="utf-8"))


def _replaced(path: str, write_to: Callable[[str], object]) -> None:
    """Write a file so that there is always a whole one: the old or the new."""
    part = f"{path}.part"
    write_to(part)
    os.replace(part, path)
