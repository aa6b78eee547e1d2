"""`demo`: a model, a question in plain words, the answer, and the Python for the same."""

from __future__ import annotations

import importlib
from argparse import Namespace
from pathlib import Path
from typing import Any

import bayescfx as cfx
from bayescfx.cli.answers import as_text, exit_code
from bayescfx.cli.console import Console
from bayescfx.cli.pictures import write_picture, write_report
from bayescfx.cli.progress import Progress
from bayescfx.cli.settings import SettingsError
from bayescfx.errors import MissingExtraError
from bayescfx.result import wording

PATIENT = 114
BUDGET = 60
NAMES = {"s5": "log_triglycerides", "s6": "glucose"}

CODE = f"""\
import bayescfx as cfx
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = X.rename(columns={NAMES!r})
model = GradientBoostingRegressor(random_state=0).fit(X, y)
space = (
    cfx.Space.from_data(X)
    .allow("bmi", "bp", "log_triglycerides", "glucose")
    .only_down("bmi", "bp", "log_triglycerides", "glucose")
    .between({{"bmi": (18.5, None)}})
    .max_changes(2)
)
answer = cfx.explain(
    model, X.iloc[{PATIENT}], space, cfx.decrease(percent=25), budget={BUDGET}, rng=0
)
print(answer)
"""


def demo(options: Namespace, console: Console) -> int:
    """Show the main job on real data, from the model to the report."""
    folder = Path(options.folder)
    if not folder.is_dir():
        raise SettingsError(f"--folder must be a folder; got {options.folder!r}. Make it first.")
    X, model, space = _prepared()
    patient = X.iloc[PATIENT]
    outputs = model.predict(X)
    now = wording.number(float(outputs[PATIENT]))
    low, high = (wording.number(float(end), 3) for end in (outputs.min(), outputs.max()))
    console.answer(
        f"Data: {len(X)} people with diabetes, {X.shape[1]} measurements each. A gradient-boosting "
        f"model predicts how far\nthe disease gets within a year ({low} to {high}).\n\n"
        f"For patient {PATIENT} it predicts {now}. What would have to change for that to be 25 % "
        "lower, if only\nbody mass index (not below 18.5), blood pressure, triglycerides and "
        "glucose may fall, two of them at most?\n"
    )
    progress = Progress(console, BUDGET)
    try:
        answer = cfx.explain(
            model,
            patient,
            space,
            cfx.decrease(percent=25),
            budget=BUDGET,
            rng=0,
            on_step=progress,
        )
    finally:
        progress.close()
    console.answer(as_text(answer))
    _files(answer, folder, console)
    console.answer(f"\nThe same in Python:\n\n{CODE}")
    return exit_code([answer])


def _prepared() -> tuple[Any, Any, cfx.Space]:
    """Return data, model and space, as `CODE` makes them."""
    try:
        datasets = importlib.import_module("sklearn.datasets")
        ensemble = importlib.import_module("sklearn.ensemble")
    except ImportError as error:
        raise MissingExtraError("the demo needs scikit-learn: pip install scikit-learn.") from error
    X, y = datasets.load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X = X.rename(columns=NAMES)
    model = ensemble.GradientBoostingRegressor(random_state=0).fit(X, y)
    space = (
        cfx.Space.from_data(X)
        .allow("bmi", "bp", "log_triglycerides", "glucose")
        .only_down("bmi", "bp", "log_triglycerides", "glucose")
        .between({"bmi": (18.5, None)})
        .max_changes(2)
    )
    return X, model, space


def _files(answer: cfx.Explanation, folder: Path, console: Console) -> None:
    """Write picture and report; without matplotlib say how to get them."""
    picture, page = folder / "bayescfx-demo.png", folder / "bayescfx-demo.html"
    try:
        write_picture(answer, str(picture))
        write_report(answer, str(page))
    except MissingExtraError as error:
        console.note(str(error))
        return
    console.answer(f"\nPicture: {picture}\nReport:  {page}")
