"""The parsers: texts that broke them before, and ten seconds of atheris in `make test-all`."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bayescfx.errors import BayesCFXError
from tests.fuzz.atheris_parsers import SEEDS, parsers, survive

WHOLE = '"b c": 1, "d": "x", "o": "low"}'


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        ("rules", "a* `b c`c2 <= 7"),
        ("rules", "a <= 1" + " -> a <= 1" * 3000),
        ("rules", "not " * 400 + "a <= 1"),
        ("queries", "²"),
        ("queries", "9" * 5000),
        ("queries", "[" * 100_000),
        ("queries", '{"d": [1, 2]}'),
        ("queries", '{"a": 1, "b c": 1, "d": "x", "o": []}'),
        ("queries", f'{{"a": {"9" * 400}, {WHOLE}'),
        ("settings", "a=" + "[" * 100_000),
        ("settings", "budget=" + "9" * 5000),
        ("settings", f"model='{'x' * 5000}'"),
    ],
)
def test_a_text_that_broke_a_parser_before_is_read_or_refused(parser: str, text: str) -> None:
    survive(parsers()[parser], text)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="needs atheris")
@pytest.mark.parametrize("parser", SEEDS)
def test_a_parser_raises_documented_errors_only(parser: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz.atheris_parsers", parser, "-max_total_time=10"]
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    done = subprocess.run(
        [*command, f"-artifact_prefix={tmp_path}/", "-verbosity=0"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.filterwarnings("ignore::bayescfx.SpaceWarning")
@pytest.mark.parametrize("parser", SEEDS)
def test_the_first_text_of_a_parser_is_read(parser: str) -> None:
    for seed in SEEDS[parser]:
        text = seed if isinstance(seed, str) else seed()
        parsers()[parser](text)


def test_an_undocumented_error_is_detected() -> None:
    def broken(text: str) -> object:
        raise LookupError(text)

    def refusing(text: str) -> object:
        raise BayesCFXError(f"it must be something else; got {text}.")

    survive(refusing, "x")
    with pytest.raises(LookupError):
        survive(broken, "x")
