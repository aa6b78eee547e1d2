"""What Figure 4 and its table say, from their numbers alone."""

from __future__ import annotations

from typing import Any

from experiments.adult import READINGS

MAIN, OTHER = READINGS

# The table of Figure 4: mean change of age, capital change, hours per week.
PAPER = {
    "Random": (18.4, -25270.0, 10.9),
    "L-BFGS-B": (15.3, -1060.0, 12.3),
    "Bayes": (16.3, 54590.0, 10.2),
    "Bayes-CFX": (16.8, -24890.0, 4.2),
}


def tell(result: dict[str, Any]) -> str:
    """Return the section of the report."""
    main, other = result["readings"][MAIN], result["readings"][OTHER]
    return f"""\
## Figure 4 and its table: Adult income

Preprocessing and logistic regression of the appendix: {main["rows"]:,} rows, holdout accuracy
{main["accuracy"]:.3f} (paper: about 0.85; {other["accuracy"]:.3f} with gain + loss).
{main["queries"]} queries with age < 30 and f(q) ≥ 0.9, {main["seeds"]} seeds, {result["budget"]}
calls (f(q) included); free: age, capital change, hours per week, as a box of the data's ranges. The
paper's search knows no verdict, so its Bayes-CFX has ours switched off here. (In a first run it was
on: 13 of 180 searches were given up wrongly, and the mean potential ended at 0.969.)

| method | calls to 99 %, median | at 99 % by call 8 / 15 / 30 | mean potential at call 10 / 30 |
|---|---|---|---|
{_speed(main)}

![Figure 4](figures/fig4_adult.png)

{_claims(result)}

### The verdict beside brute force

{_verdicts(result)}

### The table of mean changes

| method | age: paper / ours | capital change: paper / ours | hours per week: paper / ours |
|---|---|---|---|
{_changes(main)}

With gain + loss ({other["queries"]} queries, {other["seeds"]} seed):

| method | age: paper / ours | capital change: paper / ours | hours per week: paper / ours |
|---|---|---|---|
{_changes(other)}

{_reading_verdict(main, other)}
"""


def _speed(main: dict[str, Any]) -> str:
    lines = []
    for name, s in main["methods"].items():
        median = "not in 30" if s["median_calls"] is None else f"{s['median_calls']:g}"
        solved, mean = s["solved"], s["potential"]["mean"]
        lines.append(
            f"| {name} | {median} | {solved[7]:.0%} / {solved[14]:.0%} / {solved[29]:.0%} | "
            f"{mean[9]:.3f} / {mean[29]:.3f} |"
        )
    return "\n".join(lines)


def _changes(part: dict[str, Any]) -> str:
    lines = []
    for name, s in part["methods"].items():
        ours, theirs = s["mean_change"], PAPER.get(name)
        cells = []
        for k, form in enumerate(("+.1f", "+,.0f", "+.1f")):
            paper = "–" if theirs is None else format(theirs[k], form)
            cells.append(f"{paper} / {format(ours[k], form)}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _claims(result: dict[str, Any]) -> str:
    """Compare the paper's sentences with what was measured."""
    main = result["readings"][MAIN]
    mean = {name: main["methods"][name]["potential"]["mean"] for name in PAPER}
    last = {name: values[-1] for name, values in mean.items()}
    order = sorted(PAPER, key=lambda name: -last[name])
    best = order[0] == "Bayes-CFX" or last["Bayes-CFX"] >= last[order[0]] - 0.001
    told = ", ".join(f"{name} {last[name]:.4f}" for name in order)
    # a lead that is smaller than a standard error is none
    margin = main["methods"]["Bayes-CFX"]["potential"]["se"][-1]
    level = [name for name in order if name != "Bayes-CFX" and last[name] > last["Bayes-CFX"]]
    first = "holds" if best else "**does not hold**"
    if level and best:
        first += f", level with {', '.join(level)} (standard error {margin:.4f})"
    return "\n".join(
        [
            '* *"Bayes-CFX converges after few queries to the highest potential of the four '
            f'methods"*: {first}. Mean potential at call {result["budget"]}: {told}; calls to '
            f"99 %, median: {_medians(main)}.",
            _random_beats(result, last),
            _gradient(mean),
            _hours(main),
        ]
    )


def _medians(main: dict[str, Any]) -> str:
    medians = {name: main["methods"][name]["median_calls"] for name in PAPER}
    return ", ".join(
        f"{name} {'not in 30' if m is None else f'{m:g}'}" for name, m in medians.items()
    )


def _random_beats(result: dict[str, Any], last: dict[str, float]) -> str:
    claim = '* *"Random search … outperforming naïve Bayesian optimisation and L-BFGS-B"*: '
    above = [name for name in ("Bayes", "L-BFGS-B") if last[name] > last["Random"]]
    below = [name for name in ("Bayes", "L-BFGS-B") if last[name] <= last["Random"]]
    if not above:
        return f"{claim}holds."
    text = f"{claim}**contradicts the paper** for {' and '.join(above)} "
    text += f"({', '.join(f'{n} {last[n]:.3f}' for n in (*above, 'Random'))}). "
    if below:
        text += f"For {' and '.join(below)} it holds. "
    if "Bayes" in above:
        text += _plainer(result["plain"])
    return text


def _plainer(plain: dict[str, Any]) -> str:
    """Say what plainer searches do: perhaps the paper's was weak for reasons of its own."""
    ends, random = {name: way["mean"][-1] for name, way in plain["ways"].items()}, plain["random"]
    told = ", ".join(f"{name} {value:.3f}" for name, value in ends.items())
    weak = [name for name, value in ends.items() if value <= random and name.startswith("EI on")]
    text = (
        "We tried whether that is a matter of how the naïve search is made: one lengthscale by "
        "maximum likelihood, plain EI, five random rows to begin with, as packages of the time did "
        f"it ({plain['queries']} of the queries, one seed). Mean potential at the last call: "
        f"{told}; random search has {random:.3f} on the same queries. "
    )
    if weak:
        return text + (
            f"So a naïve search can be no better than random ({', '.join(weak)}), and which one it "
            "is depends on the units of the inputs and the fit, which the paper does not give."
        )
    return text + "So we could not make a naïve search that is weaker than random search."


def _gradient(mean: dict[str, list[float]]) -> str:
    return (
        '* *"The performance of L-BFGS-B was surprisingly poor, which could be due to convergence '
        'to a local optimum or limited memory"*: three features need no memory. The slope of every '
        "EP potential at the query is 0 by definition, and a climb that begins there has nothing "
        f"to go by: mean potential {mean['L-BFGS-B'][4]:.3f} at call 5 and "
        f"{mean['L-BFGS-B'][9]:.3f} at call 10, random search {mean['Random'][4]:.3f} and "
        f"{mean['Random'][9]:.3f}. Ours then starts again at random rows."
    )


def _hours(main: dict[str, Any]) -> str:
    hours = {n: abs(s["mean_change"][2]) for n, s in main["methods"].items() if n in PAPER}
    least = min(hours, key=lambda name: hours[name])
    verdict = "holds" if least == "Bayes-CFX" else f"**does not hold** (here {least})"
    told = ", ".join(f"{name} {value:.1f}" for name, value in hours.items())
    return (
        f'* *"Bayes-CFX incurs the smallest change in hours per week"*: {verdict}; size of the '
        f"mean change: {told}. No method is told to stay near the query, and in a mean up and down "
        "cancel: such a table does not say how good a method is."
    )


def _verdicts(result: dict[str, Any]) -> str:
    main, fewer = result["readings"][MAIN], result["verdict"]
    searches = main["queries"] * main["seeds"]
    wrong = ", ".join(
        f"{name} {s['wrongly_unreachable']}"
        for name, s in main["methods"].items()
        if name.startswith("Bayes-CFX")
    )
    pairs = list(zip(fewer["reachable"], fewer["status"], strict=True))
    can = [status for reachable, status in pairs if reachable]
    cannot = [status for reachable, status in pairs if not reachable]
    return (
        f"Brute force over the box says that {main['unreachable']} of {main['queries']} queries "
        f"can't reach {result['target']:g} (within the search's tolerance). Of {searches} searches "
        f'each, those for reachable targets that end as "unreachable": {wrong}. So that there is '
        "something to find, the same "
        f"with {' and '.join(fewer['free'])} alone (library defaults, one seed): brute force says "
        f"that {len(cannot)} of {len(pairs)} can't; of these {cannot.count('unreachable')} are "
        f'called "unreachable", {cannot.count("best_guess")} end as "best guess" and '
        f'{cannot.count("reached")} as "reached". Of the {len(can)} that can, '
        f"{can.count('reached')} are reached, {can.count('best_guess')} end as best guess and "
        f"{can.count('unreachable')} are wrongly called unreachable."
    )


def _reading_verdict(main: dict[str, Any], other: dict[str, Any]) -> str:
    """Say which reading of "capital change" the paper's table supports.

    Random search has no settings: its mean changes depend on the box and on the queries only.
    """
    readings = {MAIN: main, OTHER: other}
    miss = {name: _miss(part) for name, part in readings.items()}
    told = "; ".join(
        f"with {_minus(name)} the {part['queries']} queries average "
        f"{part['mean_query'][1]:,.0f}, at most "
        f"{part['mean_query'][1] - part['limits'][1][0]:,.0f} can be lost, and random search is "
        f"off the paper's three numbers by {miss[name]:.1f} standard errors (root mean square)"
        for name, part in readings.items()
    )
    best = min(miss, key=lambda name: miss[name])
    clear = miss[best] < 0.67 * max(miss.values())
    return (
        '**Which "capital change"?** The caption says "the sum of capital gain and capital loss". '
        "Random search has no settings, so its row is the one to compare: "
        f"{told}. The table {'supports' if clear else 'is slightly nearer to'} "
        f"**{_minus(best)}**{'' if clear else ', which decides little'}."
    )


def _miss(part: dict[str, Any]) -> float:
    """Return how far random search's mean changes are from the paper's, in standard errors."""
    random = part["methods"]["Random"]
    scores = [
        (ours - paper) / (sd / part["queries"] ** 0.5)
        for ours, sd, paper in zip(
            random["mean_change"], random["sd_change"], PAPER["Random"], strict=True
        )
    ]
    return float((sum(z**2 for z in scores) / len(scores)) ** 0.5)


def _minus(reading: str) -> str:
    return reading.replace("-", "−")
