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
from bayescfx.requests.plain_values import number_text

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


def demo(options: Namespace, console: Console) -> int:
    """Show the main job on real data, from the model to the report."""
    folder = Path(options.folder or ".")
    if not folder.is_dir():
        raise SettingsError(f"--folder must be a folder; got {options.folder!r}. Make it first.")
    names: dict[str, Any] = {}
    prepare, _, _ = DEMO.partition("answer = ")
    try:
        exec(prepare, names)
    except ImportError as error:
        told = "the demo needs scikit-learn: pip install scikit-learn."
        raise cfx.MissingExtraError(told) from error
    X, model = names["X"], names["model"]
    outputs = model.predict(X)
    low, high = (number_text(end, 3) for end in (outputs.min(), outputs.max()))
    console.write(
        f"Data: {len(X)} people with diabetes, {X.shape[1]} measurements each. A gradient-boosting "
        f"model predicts how far\nthe disease gets within a year ({low} to {high}).\n\n"
        f"For patient 114 it predicts {number_text(outputs[114])}. What would have to "
        "change for that to be 25 % lower, if only\nbody mass index (not below 18.5), blood "
        "pressure, triglycerides and glucose may fall, two of them at most?\n"
    )
    target = cfx.decrease(percent=25)
    with show_progress(console) as bar:
        answer = cfx.explain(model, X.iloc[114], names["space"], target, rng=0, on_step=bar)
    console.write(str(answer))
    picture, page = folder / "bayescfx-demo.png", folder / "bayescfx-demo.html"
    try:
        for path in (picture, page):
            write_answers(Answers(explanations={0: answer}, is_single=True), str(path))
        console.write(f"\nPicture: {picture}\nReport:  {page}")
    except cfx.MissingExtraError as error:
        console.note(str(error))
    console.write(f"\nThe same in Python:\n\n{DEMO}")
    return exit_code([answer.status])
