"""`demo`: the main job on real data."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import bayescfx as cfx
from bayescfx.cli.answers import exit_code
from bayescfx.cli.progress_lines import show_progress
from bayescfx.errors import SettingsError
from bayescfx.requests.answer_files import Answers, write_answers
from bayescfx.requests.console import Console
from bayescfx.requests.texts import number_text

#: The program that `demo` runs and shows.
DEMO = """\
import bayescfx as cfx
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = X.rename(columns={'s5': 'log_triglycerides', 's6': 'glucose'})
model = GradientBoostingRegressor(random_state=0).fit(X, y)
space = (
    cfx.Space.from_data(X)
    .allow("bmi", "bp", "log_triglycerides", "glucose")
    .only_down("bmi", "bp", "log_triglycerides", "glucose")
    .between({"bmi": (18.5, None)})
    .max_changes(2)
)
answer = cfx.explain(
    model, X.iloc[114], space, cfx.decrease(percent=25), rng=0
)
print(answer)
"""


TARGET = cfx.decrease(percent=25)
PATIENT = 114


def demo(options: Namespace, console: Console) -> int:
    """Show the main job on real data, from the model to the report."""
    folder = Path(options.folder or ".")
    if not folder.is_dir():
        raise SettingsError(f"--folder must be a folder; got {options.folder!r}. Make it first.")
    names = _prepare()
    console.write(_introduction(names["X"], names["model"]))
    query = names["X"].iloc[PATIENT]
    with show_progress(console) as on_step:
        answer = cfx.explain(names["model"], query, names["space"], TARGET, rng=0, on_step=on_step)
    console.write(str(answer))
    _write_files(answer, folder, console)
    console.write(f"\nThe same in Python:\n\n{DEMO}")
    return exit_code([answer.status])


def _prepare() -> dict[str, Any]:
    """Return the data, the model and the space that the program makes, by name."""
    names: dict[str, Any] = {}
    before_question, _, _ = DEMO.partition("answer = ")
    try:
        exec(before_question, names)
    except ImportError as error:
        raise cfx.MissingExtraError(
            "the demo needs scikit-learn: pip install scikit-learn."
        ) from error
    return names


def _introduction(X: Any, model: Any) -> str:
    """Return the question in words."""
    outputs = model.predict(X)
    low = number_text(outputs.min(), 3)
    high = number_text(outputs.max(), 3)
    now = number_text(outputs[PATIENT])
    return (
        f"Data: {len(X)} people with diabetes, {X.shape[1]} measurements each. A gradient-boosting "
        f"model predicts how far\nthe disease gets within a year ({low} to {high}).\n\n"
        f"For patient {PATIENT} it predicts {now}. What would have to change for it to be at least "
        "25 % lower, if only\nbody mass index (not below 18.5), blood pressure, triglycerides and "
        "glucose may fall, two of them at most?\n"
    )


def _write_files(answer: cfx.Explanation, folder: Path, console: Console) -> None:
    """Write a picture and a report, if the libraries for them are installed."""
    picture = folder / "bayescfx-demo.png"
    page = folder / "bayescfx-demo.html"
    answers = Answers.of(answer)
    try:
        write_answers(answers, str(picture))
        write_answers(answers, str(page))
        console.write(f"\nPicture: {picture}\nReport:  {page}")
    except cfx.MissingExtraError as error:
        console.note(str(error))
