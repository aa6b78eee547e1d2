"""docs/reproduction.md and its appendix: claims of the paper, our figures and verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from experiments import compare, environment
from experiments.claims import RULES, Claim

Part = tuple[str, ModuleType, Mapping[str, Any]]  # short name, experiment, its result

HEAD = """\
# Reproduction of the paper

*Counterfactual Explanations for Arbitrary Regression Models* (Spooner, Dervovic, Long, Shepard,
Chen, Magazzeni; 2021). This page is written by `make reproduce`: numbers are in
`experiments/results/*.json`, code in `experiments/`, one readable script per result; long tables
and variants are in the [details](reproduction-details.md). Numbers of definitions, theorems,
figures and tables are those of the paper's source.
"""

DETAILS = """\
# Reproduction: details

Variants and long tables behind the [reproduction](reproduction.md), written by the same run.
"""

SETTING = """\
## "As in the paper": what differs

The paper's code is not public, and it leaves out the rows and features behind Figure 3, the number
of boosting rounds, the taxi trip's coordinates, GPyOpt's settings, the number of seeds, and whether
features are whole numbers in the search. Where a figure depends on one of these, its section says
so. "As in the paper" means a surrogate of the model's output with RBF kernel and zero mean, EI-CFX
alone, no local steps, no giving up. What is still ours:

* **Priors.** Hyperparameters maximise the posterior, not the likelihood: one lengthscale per
  feature with LogNormal(√2 + ½ log d, √3) on the unit box, noise with LogNormal(−4, 1) and at least
  1e-6, output scale with LogNormal(log 4 + 0.49, 0.7), both relative to the outputs' mean square.
  They are learnt again with every row up to 24, then whenever the rows have grown by a quarter.
* **Inputs** are scaled to the unit box of the limits; where the space has at least 33 data rows, a
  coordinate is half position, half rank among these. Weekdays lie on a circle.
* **Outputs** are divided by their root mean square, not centred.
* **Log EI.** EI-CFX and the EI of *Bayes* are maximised as logarithms, by ascents from several
  starts; a logarithm is highest where EI is. No row is proposed twice.
* **Starts.** Two rows beside the query, data rows if there are any, else random ones; none in the
  composition example. GPyOpt begins with five random rows.
* **Steps of trees.** Close to known rows nothing is proposed: within 3 % of the box, up to a tenth
  where close rows have equal outputs, less the more rows there are; nor where close rows lie on
  either side of the target.
* **Tidy rows.** A change below a hundredth of a feature's scale is taken back.
* **End.** A search ends when it is within its tolerance of the target; its best counts for the rest
  of the budget, in which f(q) is one call. There is no cost of moving where the paper has none.
* **L-BFGS-B** starts at the query, as in the paper, and when a climb ends again at a random row;
  differences are 1e-4 of a feature's range. **Random search** draws no row twice.
"""

TAIL = """\
## How to run it

```sh
make reproduce                                # everything, into docs/reproduction.md
make reproduce-oldest                         # again with the oldest supported versions; compares
python -m experiments --only adult taxi       # some of it
python -m experiments --quick --out look      # small versions, elsewhere
python -m experiments compare A B             # two results folders; 1 if a verdict differs
```

It uses every core (`--jobs`) and needs no network if the data folder is there. The same results are
the same bytes, for any number of processes.

Data: `BAYESCFX_DATA` (or `--data`) names a folder with `adult.csv.gz` and `nyc_taxi.csv.gz` (or
Kaggle's `train.csv`). Without the first, Adult is fetched from OpenML by scikit-learn, cached, and
checked against a checksum; a missing file gets an error that says where to get it and where to put
it.
"""


def write(parts: Sequence[Part], folder: Path, page: Path, missing: Sequence[str] = ()) -> str:
    """Write page and appendix of the results in `folder`; return the text of the page."""
    claims = claims_of(parts)
    texts = {
        page: [
            HEAD,
            *_absent(missing),
            summary(parts),
            *(module.tell(result) for _, module, result in parts),
            SETTING,
            compare.tell(compare.load(folder), claims),
            TAIL,
            environment.tell(
                environment.load(folder), {name: seeds(result) for name, _, result in parts}
            ),
        ],
        page.with_name("reproduction-details.md"): [
            DETAILS,
            *(module.details(result) for _, module, result in parts if hasattr(module, "details")),
        ],
    }
    page.parent.mkdir(parents=True, exist_ok=True)
    for path, sections in texts.items():
        path.write_text("\n".join(sections), encoding="utf-8")
    return "\n".join(texts[page])


def seeds(result: Any) -> int | None:
    """Return the largest number of seeds in a result, or None."""
    items = result.items() if isinstance(result, Mapping) else ()
    found = [value if key == "seeds" else seeds(value) for key, value in items]
    return max((count for count in found if count is not None), default=None)


def claims_of(parts: Sequence[Part]) -> list[Claim]:
    """Return every claim, in the order of the experiments."""
    return [claim for _, module, result in parts for claim in module.claims(result)]


def summary(parts: Sequence[Part]) -> str:
    """Return the table of claims, the verdicts by section, and the rules of the verdicts."""
    claims = claims_of(parts)
    count = Counter(claim.verdict for claim in claims)
    counts = ", ".join(f"{count[word]} {word}" for word in RULES)
    rows = "\n".join(
        f"| {claim.where} | {claim.paper} | {claim.ours} | {_bold(claim.verdict)} | {claim.why} |"
        for claim in claims
    )
    rules = "\n".join(f"* **{word}**: {rule}." for word, rule in RULES.items())
    return f"""\
## What holds

{len(claims)} claims: {counts}.

| claim | the paper | ours | verdict | why |
|---|---|---|---|---|
{rows}

The words, by one rule each; intervals are bootstrapped over independent units (queries, functions,
trips; draws or seeds where there is one scene or one trip, which its section says), and where
nothing is random a figure has none. A threshold is named where the claim has none of its own.

{rules}

| section | {" | ".join(RULES)} |
|---|{"---|" * len(RULES)}
{chr(10).join(_counts(part) for part in parts)}
"""


def _counts(part: Part) -> str:
    """Return the number of claims of a section with each verdict, as a table row."""
    _, module, result = part
    title = module.tell(result).partition("\n")[0].removeprefix("## ")
    count = Counter(claim.verdict for claim in claims_of([part]))
    cells = (str(count[word]) if count[word] else "" for word in RULES)
    return f"| [{title}](#{anchor(title)}) | {' | '.join(cells)} |"


def anchor(title: str) -> str:
    """Return the anchor that Markdown gives a heading."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -")
    return kept.replace(" ", "-")


def _bold(word: str) -> str:
    """Return the verdict, in bold unless it confirms the paper."""
    return word if word in ("reproduced", "proved") else f"**{word}**"


def _absent(missing: Sequence[str]) -> list[str]:
    """Return a warning if results are missing: a partial page must not look complete."""
    if not missing:
        return []
    return [f"> **Incomplete: no results yet for {', '.join(missing)}.** Run `make reproduce`.\n"]
