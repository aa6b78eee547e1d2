"""docs/reproduction.md: for each result the paper's value, ours, and why they differ."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from experiments.results import REPORT

HEAD = """\
# Reproduction of the paper

*Counterfactual Explanations for Arbitrary Regression Models* (Spooner, Dervovic, Long, Shepard,
Chen, Magazzeni; 2021). This page is written by `make reproduce`; numbers are in
`experiments/results/*.json`, code in `experiments/`, one readable script per result. Searches go
through the public API of `bayescfx`, seeds are fixed, and running it twice gives the same bytes
(tested with small versions).

The paper's own code is not public, and it leaves out: the rows and features behind Figure 2, the
number of boosting rounds, the taxi trip's coordinates, GPyOpt's settings, the number of seeds, and
whether features are continuous or whole numbers in the search. Where a number depends on one of
these, its section says so. "As in the paper" means a surrogate with RBF kernel and zero mean on the
model's output.
"""

TAIL = """\
## How to run it

```sh
make reproduce                                # everything, into docs/reproduction.md
python -m experiments --only adult taxi       # some of it
python -m experiments --quick --out look      # small versions, elsewhere
```

It uses every core (`--jobs`) and needs no network if the data folder is there.

Data: `BAYESCFX_DATA` (or `--data`) names a folder with `adult.csv.gz` and `nyc_taxi.csv.gz` (or
Kaggle's `train.csv`). Without the first, Adult is fetched from OpenML by scikit-learn, cached, and
checked against a checksum; a missing file gets an error that says where to get it and where to put
it.
"""


def write(
    parts: Sequence[tuple[ModuleType, Mapping[str, Any]]],
    path: Path = REPORT,
    missing: Sequence[str] = (),
) -> str:
    """Write the report of what was run, say what was not, and return the text."""
    sections = [module.tell(result) for module, result in parts]
    text = "\n".join([HEAD, *_absent(missing), summary(sections), *sections, TAIL])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return text


def _absent(missing: Sequence[str]) -> list[str]:
    """Return a warning if results are missing: a partial page must not look complete."""
    if not missing:
        return []
    return [f"> **Incomplete: no results yet for {', '.join(missing)}.** Run `make reproduce`.\n"]


def summary(sections: Sequence[str]) -> str:
    """Return a list of the results, contradictions first."""
    against, others = [], []
    for section in sections:
        title = section.splitlines()[0].removeprefix("## ")
        link = f"[{title}](#{anchor(title)})"
        notes = _notes(section)
        if notes:
            against += [f"* {link}: {note}" for note in notes]
        else:
            others.append(link)
    lines = ["## At a glance", ""]
    if against:
        lines += ["**Where we contradict the paper, or find less than it says:**", "", *against, ""]
    if others:
        lines += [f"No contradiction found: {'; '.join(others)}.", ""]
    return "\n".join(lines)


_MARKS = ("**Contradicts", "**contradicts", "**Weaker", "**does not hold", "**no**")
_LONG = 110  # characters from which on a note is not given another sentence


def _notes(section: str) -> list[str]:
    """Return the first sentences from each mark of disagreement on."""
    found = []
    for paragraph in re.split(r"\n\s*\n|\n(?=[*|] )", section):
        text = re.sub(r"\n(> ?)?", " ", paragraph)
        marks = [text.find(mark) for mark in _MARKS if mark in text]
        if not marks:
            continue
        # a bullet is told from its start: the mark follows what it is about
        sentences = text[0 if text.startswith("* ") else min(marks) :].split(". ")
        note = sentences.pop(0)
        while sentences and len(note) < _LONG:
            note += ". " + sentences.pop(0)
        found.append(re.sub(r"\*+", "", note).strip(" .:>") + ".")
    return found


def anchor(title: str) -> str:
    """Return the anchor that Markdown gives a heading."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -")
    return kept.replace(" ", "-")
