"""Answers, targets, numbers and tables as text, for clients that show them."""

from __future__ import annotations

from functools import partial

from bayescfx.digits import ROUNDING, number_apart, pair_apart
from bayescfx.errors import TARGET_SYNTAX
from bayescfx.potentials import Intervals
from bayescfx.potentials.target_text import parse_call, parse_target
from bayescfx.result.answer_text import compared as output_writer
from bayescfx.result.answer_text import sentence as answer_sentence
from bayescfx.result.answer_text import valid_text
from bayescfx.result.wording import aligned, proof_state
from bayescfx.result.wording import count as count_text
from bayescfx.result.wording import intervals as wanted_text
from bayescfx.result.wording import moves as changes_text
from bayescfx.result.wording import number as number_text

__all__ = [
    "TARGET_SYNTAX",
    "aligned",
    "answer_sentence",
    "changes_text",
    "count_text",
    "number_text",
    "output_writer",
    "pair_apart",
    "parse_call",
    "parse_target",
    "proof_state",
    "target_text",
    "valid_text",
    "wanted_text",
]


def target_text(wanted: Intervals, output: float) -> str:
    """Return the outputs asked for in words, told apart from the output of the query."""
    others = [output, *(end for pair in wanted for end in pair)]
    return wanted_text(wanted, partial(number_apart, others=others, rounding=ROUNDING))
