"""Options and space from settings files."""

from __future__ import annotations

import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.requests.constraints import read_verbs
from tests.cli.shell import Shell

SETTINGS = """\
model = "m.txt"
data = "X.csv"
target = "+25%"
budget = 30
seed = 1

[features]
age = "integer"

[features.bmi]
step = 0.5

[space]
fix = ["sex"]
only_up = ["age"]
max_changes = 2
require = ["bmi <= age"]

[space.between]
bmi = [18, 40]
glucose = ["low", "middle"]

[space.cost]
per_change = 3
"""


def test_a_settings_file_holds_options_and_space(shell: Shell) -> None:
    nested = shell.folder / "shared"
    nested.mkdir()
    (nested / "s.toml").write_text(
        SETTINGS.replace('"m.txt"', '"../m.txt"').replace('"X.csv"', '"../X.csv"')
    )
    words = ("--settings", "shared/s.toml", "--query", "3", "--json", "--quiet")
    ran = shell("explain", *words)
    assert ran.code in (0, 3)
    (found,) = ran.content["counterfactuals"]
    assert ran.content["seed"] == 1
    assert found["row"]["sex"] == "female"
    assert found["row"]["age"] >= 24
    assert "bmi" not in found["changes"] or found["row"]["bmi"] * 2 % 1 == 0
    assert found["cost"] == pytest.approx(found["distance"] + 3 * found["n_changes"])
    cheaper = shell("explain", *words, "--cost", "per_change=0")
    (found,) = cheaper.content["counterfactuals"]
    assert found["cost"] == found["distance"]


def test_the_command_line_goes_first_and_adds_to_the_space(shell: Shell) -> None:
    (shell.folder / "s.toml").write_text(SETTINGS)
    words = ("--settings", "s.toml", "--query", "3", "--json", "--quiet")
    ran = shell("explain", *words, "--seed", "2", "--target", "+20%", "--fix", "glucose,bmi")
    assert (ran.content["seed"], ran.content["target"]) == (2, "+20 %")
    assert set(ran.content["counterfactuals"][0]["changes"]) <= {"age"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("budgt = 3", r"has an unknown name 'budgt'. Did you mean 'budget'?"),
        ('budget = "x"', "'budget' in 'bad.toml' must be a whole number; got 'x'."),
        ("budget = true", "'budget' in 'bad.toml' must be a whole number; got True."),
        ("[space]\nfx = []", "[space] in 'bad.toml' has an unknown name 'fx'. Did you mean 'fix'?"),
        ("[space]\nfix = 'a'", "'space.fix' in 'bad.toml' must be a list of names; got 'a'."),
        ("on_fault = 'foo'", "error: --on-fault must be 'raise' or 'skip'; got 'foo'."),
        ("budget = ", "the settings file 'bad.toml' must be TOML; got"),
        ("trust_pickle = true", "'trust_pickle' must not be in a settings file, because it decid"),
        (
            "model = 'os:getcwd'",
            "'model' must not be in a settings file, because it decides what",
        ),
        ("[space.derive]\nbmi = 'os:x'", "'space.derive' must not be in a settings file, because"),
        ("[features]\nbmi = 3", "--kind of 'bmi' must be one of 'real', 'integer', 'ordinal'"),
        ("[features]\nbmi = [1]", "--kind of 'bmi' must be one of 'real', 'integer', 'ordinal'"),
        ("[features]\nbm = 'real'", "--kind names no column 'bm'. Did you mean 'bmi'?"),
        ("[features.bmi]\nstp = 1", "features.bmi must have only kind, low, high, step; got 'stp"),
        ("[space.between]\nbmi = [1]", "--between for 'bmi' must be a pair (low, high); got [1]."),
        ("[space.between]\nsex = 3", "--between for 'sex' must be a list of levels; got 3."),
        ("[space.between]\nsex = ['mal']", "'sex' has no level 'mal'. Did you mean 'male'? Lev"),
        (
            "[space.cost]\nweigt = 1",
            "'space.cost' in 'bad.toml' must have only per_change, per_feature",
        ),
        (
            "[space.near_data]\nq = 1",
            "'space.near_data' in 'bad.toml' must have only quantile; got",
        ),
    ],
)
def test_a_bad_settings_file_is_one_line(text: str, message: str, shell: Shell) -> None:
    (shell.folder / "bad.toml").write_text(text + "\n")
    words = ("--model", "m.txt", "--data", "X.csv", "--query", "3", "--target", "150")
    assert message in shell.fails("explain", "--settings", "bad.toml", *words)


def test_a_settings_file_that_is_not_there_is_one_line(shell: Shell) -> None:
    message = shell.fails("explain", "--settings", "no.toml", "--query", "3")
    assert "the settings file 'no.toml' can't be read: No such file" in message


@pytest.mark.parametrize("option", ["model", "data", "query", "target"])
def test_missing_options_are_errors(option: str, shell: Shell) -> None:
    given = {"model": "m.txt", "data": "X.csv", "query": "3", "target": "150"}
    words = [w for name, value in given.items() if name != option for w in (f"--{name}", value)]
    assert f"--{option} must be given; got none. Add --{option}, or {option} = … to the" in (
        shell.fails("explain", *words)
    )


def test_steps_are_given_as_text_and_in_a_file(shell: Shell) -> None:
    (shell.folder / "steps.toml").write_text("[space]\nsteps = { bmi = 2.5 }\n")
    words = ("--query", "3", "--target", "+2%", "--allow", "bmi", "--json")
    for given in (("--step", "bmi=2.5"), ("--settings", "steps.toml")):
        (found,) = shell.explain(*words, *given).content["counterfactuals"]
        assert found["row"]["bmi"] % 2.5 == 0


def test_constraints_as_text_become_what_python_takes() -> None:
    space = cfx.Space.from_data(pd.DataFrame({"a": [1, 2], "red": [0, 1], "blue": [1, 0]}))
    printed = {
        "groups": {"colour": "red, blue"},
        "between": {"a": "1:"},
        "move": {"a": "-1.5:2"},
        "steps": {"a": "2"},
        "fix": ["a"],
    }
    assert read_verbs(space, printed) == {
        "groups": {"colour": ["red", "blue"]},
        "between": {"a": (1, None)},
        "move": {"a": (-1.5, 2)},
        "steps": {"a": 2},
        "fix": ["a"],
    }


def test_diverse_answers_from_a_file_and_the_command_line(shell: Shell) -> None:
    (shell.folder / "s.toml").write_text(SETTINGS.split("[features]")[0] + "n = 2\n")
    (shell.folder / "d.toml").write_text(
        SETTINGS.split("[features]")[0] + "n = 2\ndiverse = true\n"
    )
    words = ("--query", "3", "--target", "+5%", "--budget", "400", "--json", "--quiet")
    typed = shell("explain", "--settings", "s.toml", *words, "--diverse")
    in_file = shell("explain", "--settings", "d.toml", *words)
    assert typed.content["counterfactuals"] == in_file.content["counterfactuals"]
    changed = [set(found["changes"]) for found in typed.content["counterfactuals"]]
    assert len(changed) == 2
    assert sum(map(len, changed)) == len(set.union(*changed))
