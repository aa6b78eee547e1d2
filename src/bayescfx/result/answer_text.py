"""An explanation as text: the target, the changes, the verdict and the figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Decimal
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from bayescfx.potentials import Intervals
from bayescfx.potentials.class_targets import Becomes, Flips
from bayescfx.potentials.targets import Shift
from bayescfx.result.counterfactual import OPTIMAL_BEFORE_ROUNDING
from bayescfx.result.kept_values import kept_texts
from bayescfx.result.valid_range import ranges_text
from bayescfx.result.wording import (
    LABEL_LINE,
    ROUNDING,
    Output,
    aligned,
    both,
    cell,
    count,
    intervals,
    labels_move,
    moves,
    name_of,
    number,
    number_apart,
    percent,
    plausibility,
)

if TYPE_CHECKING:
    from bayescfx.result.binding_constraint import BindingConstraint
    from bayescfx.result.counterfactual import Counterfactual
    from bayescfx.result.explanation import Explanation

#: Why a search stopped; continues "The search stopped because …".
REASONS = {
    "nothing nearer expected": "no lower cost is expected",
    "proven": "no lower cost is possible",
    "budget": "the budget is spent",
    "timeout": "the time limit was reached",
    "interrupted": "it was interrupted",
    "fault": "the model failed",
    "converged": "it converged",
    "exhausted": "every allowed row was scored",
    "already met": "the query already meets the target",
    "unreachable": "the target seems out of reach",
}
#: The direction of a change, in words; `reach` has that of its sign.
DIRECTIONS = {"increase": "above", "decrease": "below", "change": "below or above"}
#: How many times as much an answer costs at most because its numbers are short decimals.
MOST_ROUNDING = 1.0101
#: Costs that differ by less, as a share, are the same: proofs round their bounds down.
SAME_COST = 1e-6
#: How the words of a binding constraint begin that names no constraint of the user.
DATA_RANGE = "data range of "


def answer_lines(answer: Explanation) -> list[str]:
    """Return the lines of an answer as printed."""
    changes = [f"  {line}" for line in _change_lines(answer)]
    texts = [verdict(answer), *kept_texts(answer), *valid_texts(answer), facts(answer)]
    menu = [] if answer.menu is None else ["", str(answer.menu)]
    return [target(answer), "", *changes, "", *texts, *menu]


def target(answer: Explanation) -> str:
    """Return ``Target: prediction at most 203.5 (25 % below 271.4)``."""
    output = Output.of(answer.about)
    write = compared(answer, answer.best)
    now = output.number(write(answer.output))
    reference = f"now {now}"
    if isinstance(answer.target, Shift):
        size, unit = answer.target.size
        way = DIRECTIONS.get(answer.target.kind, "above" if size > 0.0 else "below")
        amount = f"{number(abs(size))}{unit}"
        reference = f"{amount} {way} {now}"
    wanted = output.number(intervals(answer.wanted, write))
    return f"Target: {_label_words(answer)}{output} {wanted} ({reference})"


def _label_words(answer: Explanation) -> str:
    """Return ``predicted label good, `` for a target of labels; empty for others."""
    asked = answer.target
    if isinstance(asked, Flips):
        return f"any label but {asked.predicted(answer.output)}, "
    if isinstance(asked, Becomes) and asked.probability is None:
        return f"{LABEL_LINE} {asked.label}, "
    return ""


def wanted(answer: Explanation) -> str:
    """Return the outputs asked for, told apart from the query's and the best answer's."""
    return intervals(answer.wanted, compared(answer, answer.best))


def compared(answer: Explanation, found: Counterfactual) -> Callable[[float], str]:
    """Return how to write the outputs that readers compare: now, wanted, and of an answer.

    They get as many digits as tell them apart. If the target is reached, rounding errors don't
    count.
    """
    others = [answer.output, found.output, *chain.from_iterable(answer.wanted)]
    return partial(number_apart, others=others, rounding=ROUNDING if found.valid else 0.0)


def _change_lines(answer: Explanation) -> list[str]:
    """Return the changes as an aligned table: one column, or one for each counterfactual."""
    if len(answer.counterfactuals) > 1:
        head, lines = change_table(answer)
        return aligned([head, *lines], "<" + ">" * (len(head) - 1))
    output = Output.of(answer.about)
    changes = answer.best.changes
    write = compared(answer, answer.best)
    if not changes:
        return ["no change", f"{output}  {output.number(write(answer.output))}"]
    follows = answer.best.follows
    names = sorted(changes, key=follows.__contains__)  # derived features come last
    rows = [(name_of(name, follows), *both(*changes[name])) for name in names]
    rows.append((str(output), write(answer.output), output.number(write(answer.best.output))))
    if answer.labels:
        before, after = map(str, answer.labels[:2])
        rows.append((LABEL_LINE, before, after))
    left = aligned([[name, first] for name, first, _ in rows], "<>")
    return [f"{text} → {second}" for text, (_, _, second) in zip(left, rows, strict=True)]


def change_table(answer: Explanation) -> tuple[list[str], list[list[str]]]:
    """Return head and lines of a table: what changes, now and in each counterfactual."""
    found = answer.counterfactuals
    head = ["", "now", *(f"answer {k}" for k in range(1, len(found) + 1))]
    lines = changed_cells(answer)
    lines.append(["target reached", "", *("yes" if c.valid else "no" for c in found)])
    if len(found) > 1:
        lines += _figures(found)
    return head, lines


def _figures(found: Sequence[Counterfactual]) -> list[list[str]]:
    """Return the costs of several counterfactuals and, if any is proven, what is proven."""
    costs = ["cost", "", *(number(c.cost, 3) for c in found)]
    distances = ["distance", "", *(number(c.distance, 3) for c in found)]
    proofs = ["proven", "", *(c.proof or "no" for c in found)]
    return [costs, distances, proofs] if found[0].proof else [costs, distances]


def changed_cells(answer: Explanation) -> list[list[str]]:
    """Return a line per changed feature, then the prediction: name, now, each counterfactual."""
    found = answer.counterfactuals
    before: dict[Any, Any] = {}
    follows: set[Any] = set()
    for counterfactual in found:
        before |= {name: pair[0] for name, pair in counterfactual.changes.items()}
        follows |= counterfactual.follows.keys()
    lines = []
    for name, old in sorted(before.items(), key=lambda item: item[0] in follows):
        new = [_new_cell(counterfactual, name) for counterfactual in found]
        lines.append([name_of(name, follows), cell(old), *new])
    after = [compared(answer, c)(c.output) for c in found]
    return [
        *lines,
        [Output.of(answer.about).label, compared(answer, answer.best)(answer.output), *after],
        *([[LABEL_LINE, *map(str, answer.labels)]] if answer.labels else []),
    ]


def _new_cell(counterfactual: Counterfactual, name: Any) -> str:
    """Return the new cell of a feature in a counterfactual; ``-`` if it does not change."""
    pair = counterfactual.changes.get(name)
    return "-" if pair is None else both(*pair)[1]


def valid_texts(answer: Explanation) -> list[str]:
    """Return where each counterfactual stays valid, a sentence for each of which it is known."""
    found = answer.counterfactuals
    subjects = [f"Answer {k} stays" for k in range(1, len(found) + 1)]
    if len(found) == 1:
        subjects = ["Stays"]
    pairs = zip(found, subjects, strict=True)
    return [valid_text(each, subject) for each, subject in pairs if each.valid_ranges]


def valid_text(counterfactual: Counterfactual, subject: str = "Stays") -> str:
    """Return ``Stays valid with bmi 29.4 to 31.5, or bp 101 to 105.``; empty if not known."""
    ranges = counterfactual.valid_ranges
    return f"{subject} valid with {ranges_text(ranges)}." if ranges else ""


def facts(answer: Explanation) -> str:
    """Return plausibility, cost and the rows scored, in one line."""
    parts = []
    best = answer.best
    if best.changes:
        if best.plausibility is not None:
            parts.append(f"Plausibility: {plausibility(best.plausibility)}.")
        bounds = [] if answer.bound is None else [answer.bound]
        cost = number_apart(best.cost, bounds, 3, rounding=SAME_COST)
        parts.append(cost_text(cost, best.distance, best.n_changes))
    parts.append(f"Scored {count(answer.n_evaluations, 'row')} ({answer.method}).")
    if answer.about.get("note"):
        parts.append(answer.about["note"])
    return "  ".join(parts)


def cost_text(cost: str, distance: float, n_changes: int) -> str:
    """Return the cost and its parts: ``Cost 2.66 (distance 2.26, 2 changes).``."""
    changes = count(n_changes, "change")
    return f"Cost {cost} (distance {number(distance, 3)}, {changes})."


def sentence(answer: Explanation) -> str:
    """Return the best answer: ``bmi 32.1 → 27.4: prediction 214 → 171, target 171``."""
    output = Output.of(answer.about)
    outputs = [answer.output, answer.best.output] if answer.best.changes else [answer.output]
    write = compared(answer, answer.best)
    moved = output.number(" → ".join(map(write, outputs)))
    wanted = output.number(intervals(answer.wanted, write))
    labels = f" ({labels_move(*answer.labels[:2])})" if answer.labels else ""
    return f"{best_moves(answer)}: {output} {moved}{labels}, target {wanted}"


def best_moves(answer: Explanation) -> str:
    """Return the changes of the best counterfactual as a list."""
    if answer.stopped == "already met":
        return "already meets the target"
    return moves(answer.best.changes, answer.best.follows)


def verdict(answer: Explanation) -> str:
    """Return how the search ended, and whether fewer counterfactuals were found than asked for."""
    ending = _ending(answer)
    n_found = len(answer.counterfactuals)
    if n_found >= answer.n_wanted or answer.stopped == "already met":
        return ending
    is_cut = answer.stopped in ("budget", "timeout", "interrupted", "fault")
    reason = "no other was found" if is_cut else "no other differs enough"
    return f"{ending} Found {n_found} of {answer.n_wanted} answers; {reason}."


def _ending(answer: Explanation) -> str:
    """Return how the search ended; facts and estimates are kept apart."""
    if answer.stopped == "already met":
        if answer.reached:
            return "The query already meets the target."
        return "The query already meets the target, but breaks a rule. Nothing was searched."
    reason = REASONS.get(answer.stopped, answer.stopped)
    if answer.reached:
        return f"Target reached. {_optimality(answer, reason)}"
    known = " ".join([_outputs_seen(answer), *_binding(answer), *_jump(answer)])
    if answer.stopped == "exhausted":
        return f"Target out of reach: {reason}. {known}"
    return " ".join([_estimate(answer, reason), *_probability(answer), known])


def _optimality(answer: Explanation, reason: str) -> str:
    """Return what is proven about the cost of the best answer, or why the search stopped."""
    if answer.proof == "optimal":
        return "Proven optimal: no allowed change with a lower cost reaches it."
    if answer.proof == OPTIMAL_BEFORE_ROUNDING and answer.bound is not None:
        bound = number_apart(answer.bound, [answer.best.cost], 3, rounding=SAME_COST)
        share = _percent_more(answer.best.cost, answer.bound)
        why = "short decimals"
        if answer.best.cost > MOST_ROUNDING * answer.bound:
            why = "short decimals, and changes that are large enough to notice,"
        return (
            f"Proven optimal before rounding: no allowed change costs less than {bound}; {why} "
            f"add {share}."
        )
    if answer.proof is not None and answer.bound is not None:
        bound = number_apart(answer.bound, [answer.best.cost], 3, rounding=SAME_COST)
        return f"Proven {answer.proof} of the optimum: no allowed change costs less than {bound}."
    return f"The search stopped because {reason}."


def _percent_more(cost: float, bound: float) -> str:
    """Return by how much a cost exceeds a bound, rounded up to one digit: ``0.4 %``."""
    share = Decimal(100.0 * (cost / bound - 1.0))
    digit = share.quantize(Decimal(1).scaleb(share.adjusted()), rounding=ROUND_CEILING)
    return f"{digit.normalize():f} %"


def _estimate(answer: Explanation, reason: str) -> str:
    """Return whether the target is out of reach, or how far off the best row is."""
    if answer.proof == "out of reach":
        return "Target out of reach: proven. No allowed row reaches it."
    if answer.status == "unreachable":
        return "Target probably out of reach (estimated from the scored rows, not proven)."
    if answer.stopped == "unreachable":  # but the verdict over all rows gives it a chance
        reason = "it saw no way to the target"
    distance = number(miss(answer.best.output, answer.wanted))
    return (
        f"Target not reached; this best guess misses it by {distance}. "
        f"The search stopped because {reason}."
    )


def _probability(answer: Explanation) -> list[str]:
    """Return the estimated probability that the target can be reached, if there is one."""
    if answer.probability_reachable is None or answer.proof == "out of reach":
        return []
    chance = percent(answer.probability_reachable)
    return [f"Estimated probability that it can be reached: {chance}."]


def _outputs_seen(answer: Explanation) -> str:
    """Return the range of the outputs of allowed rows."""
    if math.isnan(answer.reachable[0]):
        return "No allowed row was scored."
    return f"Outputs seen: {' to '.join(seen(answer))}."


def seen(answer: Explanation) -> tuple[str, str]:
    """Return the least and the largest output seen, told apart from the outputs asked for."""
    low, high = answer.reachable
    ends = [low, high, *chain.from_iterable(answer.wanted)]
    return number_apart(low, ends), number_apart(high, ends)


def _binding(answer: Explanation) -> list[str]:
    """Return which constraints keep the target away, and how that is known."""
    texts = []
    if answer.no_single_constraint:
        texts.append("Removing a single constraint does not make it reachable (computed).")
    if not answer.binding:
        return texts
    first = answer.binding[0]
    if first.evidence == "guess":
        listed = "; ".join(each.words for each in answer.binding)
        return [*texts, f"{_means(answer.binding)} might bring it closer (a guess): {listed}."]
    ends = tuple(chain.from_iterable(answer.wanted))
    write = partial(number_apart, others=[answer.best.output, *ends])
    shown = [f"{each.words} ({each.shown_by(write)})" for each in answer.binding]
    one_of = "one of these constraints" if len(shown) > 1 else "this constraint"
    if answer.no_single_constraint:
        one_of = "one of these pairs" if len(shown) > 1 else "two constraints together"
    effect = "make it reachable" if first.makes_reachable else "bring it closer"
    how = " (checked)" if first.evidence == "checked" else ""
    return [*texts, f"Removing {one_of} would {effect}{how}: {'; '.join(shown)}."]


def _means(binding: tuple[BindingConstraint, ...]) -> str:
    """Return what might bring the target closer, given the binding constraints."""
    if all(each.words.startswith(DATA_RANGE) for each in binding):
        return "Only values beyond the data"
    if len(binding) == 1:
        return "Relaxing this constraint"
    return "Relaxing any of these constraints"


def _jump(answer: Explanation) -> list[str]:
    """Return the outputs on either side of a target that the model may jump across."""
    if answer.jump is None:
        return []
    ends = [*answer.jump, *chain.from_iterable(answer.wanted)]
    below, above = (number_apart(output, ends) for output in answer.jump)
    return [
        f"Nearest outputs on either side: {below} and {above}; the model may jump across the "
        "target. Ask for at least or at most so much, or for a wider range."
    ]


def miss(output: float, wanted: Intervals) -> float:
    """Return the distance of an output from the nearest wanted one; nan without any."""
    if math.isnan(output):
        return math.nan
    distances = [max(low - output, output - high, 0.0) for low, high in wanted]
    return min(distances, default=math.nan)
