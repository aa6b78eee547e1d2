"""Answers, targets, numbers and tables as text, for clients that show them."""

from __future__ import annotations

from bayescfx.errors import TARGET_SYNTAX
from bayescfx.models.class_scores import answering as target_of_output
from bayescfx.models.class_scores import output_name
from bayescfx.potentials.target_text import parse_call, parse_target
from bayescfx.result.answer_text import compared as output_writer
from bayescfx.result.answer_text import sentence as answer_sentence
from bayescfx.result.answer_text import valid_text
from bayescfx.result.kept_values import kept_text
from bayescfx.result.wording import aligned, number_apart, pair_apart, proof_state
from bayescfx.result.wording import count as count_text
from bayescfx.result.wording import intervals as wanted_text
from bayescfx.result.wording import move as move_text
from bayescfx.result.wording import moves as changes_text
from bayescfx.result.wording import number as number_text

__all__ = [
    "TARGET_SYNTAX",
    "aligned",
    "answer_sentence",
    "changes_text",
    "count_text",
    "kept_text",
    "move_text",
    "number_apart",
    "number_text",
    "output_name",
    "output_writer",
    "pair_apart",
    "parse_call",
    "parse_target",
    "proof_state",
    "target_of_output",
    "valid_text",
    "wanted_text",
]
