"""A browser that looks at the page, if this machine has one."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Yield the browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as made:
        found = made.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield found
        finally:
            found.close()


class Viewer:
    """A visitor of the page, with the complaints of the browser."""

    def __init__(self, made: Any, address: str, **how: Any) -> None:
        size = {"width": how.pop("width", 1280), "height": how.pop("height", 900)}
        self.context = made.new_context(viewport=size, **how)
        self.page: Any = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.complaints: list[str] = []
        self.page.on("console", lambda m: self._note(m.type, m.text))
        self.page.on("pageerror", lambda error: self._note("error", str(error)))
        self.page.goto(address)
        self.at("row").first.wait_for()

    def _note(self, kind: str, text: str) -> None:
        refused = "the server responded with a status of 4" in text  # and the page says so itself
        if kind in ("error", "warning") and not refused:
            self.complaints.append(text)

    def until(self, holds: str) -> None:
        """Wait until an expression of JavaScript holds."""
        for _ in range(600):
            if self.page.evaluate(holds):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(holds)

    def at(self, name: str, inside: Any = None, **which: str) -> Any:
        """Return the elements with a test hook, perhaps of one feature or number."""
        more = "".join(f'[data-{key}="{value}"]' for key, value in which.items())
        return (inside or self.page).locator(f'[data-test="{name}"]{more}')

    def number(self, where: Any) -> float:
        """Return a number that is shown, with all its digits; nan where there is none yet."""
        read = "e => (e.tagName === 'DATA' ? e : e.querySelector('data'))?.value ?? 'nan'"
        return float(where.first.evaluate(read))

    def becomes(self, name: str, holds: Callable[[float], bool]) -> None:
        """Wait until a number that is shown is as expected."""
        for _ in range(200):
            output = self.number(self.at(name))
            if output == output and holds(output):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(self.at(name).first.inner_text())

    def type(self, name: str, text: str, **which: str) -> None:
        """Type into a field, and leave it."""
        field = self.at(name, **which).first
        field.fill(text)
        field.press("Tab")

    def target(self, text: str) -> None:
        """Type a target, and wait until the server has parsed it."""

        def about(response: Any) -> bool:  # not the response to an earlier target
            reply = response.request.post_data if response.url.endswith("/api/target") else None
            return bool(reply and json.loads(reply)["target"] == text)

        with self.page.expect_response(about):
            self.type("target-text", text)

    def ended(self) -> str:
        """Wait for the end of a search; return the status."""
        shown = self.at("answer").or_(self.at("unreachable")).or_(self.at("failed"))
        shown.first.wait_for(timeout=120_000)
        return str(self.at("badge").first.get_attribute("data-status"))

    def run(self) -> str:
        """Ask, and wait for the answer."""
        self.at("run").click()
        return self.ended()

    def settings(self, **values: str) -> None:
        """Change budget, seed and the like."""
        fold = self.at("settings").locator("summary")
        fold.click()
        for name, value in values.items():
            field = self.at(f"set-{name}")
            if field.evaluate("e => e.tagName") == "SELECT":
                field.select_option(value)
            else:
                self.type(f"set-{name}", value)
        fold.click()


@contextlib.contextmanager
def serving(folder: Path, *words: str) -> Iterator[str]:
    """Yield the address of a page that `bayescfx serve` shows from a process of its own."""
    command = [sys.executable, "-m", "bayescfx", "serve", "--port", "0", "--quiet", *words]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, env=env
    ) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)


def diabetes(folder: Path) -> list[str]:
    """Write the embedded data and a scikit-learn model; return the words that serve them."""
    import joblib
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import HistGradientBoostingRegressor

    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    names = {"s1": "tc", "s2": "ldl", "s3": "hdl", "s4": "tch", "s5": "ltg", "s6": "glu"}
    X = X.rename(columns=names).assign(sex=X["sex"].astype(int))
    X.to_csv(folder / "diabetes.csv", index=False)
    joblib.dump(HistGradientBoostingRegressor(max_iter=60).fit(X, y), folder / "diabetes.joblib")
    words = ["--model", "diabetes.joblib", "--trust-pickle", "--data", "diabetes.csv"]
    return [*words, "--output-name", "progression", "--title", "Diabetes after a year"]


def houses(folder: Path) -> list[str]:
    """Write a LightGBM model with categories, dates and missing cells, and its data."""
    import lightgbm
    import numpy as np

    rng, n = np.random.default_rng(3), 400
    X = pd.DataFrame(
        {
            "house": [f"H{k:03d}" for k in range(n)],
            "area": rng.integers(40, 260, n),
            "rooms": rng.integers(1, 8, n),
            "quality": rng.choice(["poor", "fair", "good", "very good"], n),
            "town": rng.choice(["Ulm", "Köln", "<i>Bonn</i>", "Aachen & Eupen"], n),
            "garden": rng.random(n) < 0.4,
            "distance": np.where(rng.random(n) < 0.1, np.nan, np.round(rng.gamma(2, 3, n), 1)),
        }
    )
    worth = {"poor": 0, "fair": 20, "good": 45, "very good": 80}
    y = 1.4 * X["area"] + X["quality"].map(worth) + 30 * X["garden"] - 2 * X["distance"].fillna(6)
    Z = X.drop(columns="house").astype({"quality": "category", "town": "category"})
    model = lightgbm.LGBMRegressor(n_estimators=80, num_leaves=15, verbose=-1, n_jobs=1)
    model.fit(Z, y).booster_.save_model(str(folder / "houses.txt"))
    X.to_csv(folder / "houses.csv", index=False)
    words = ["--model", "houses.txt", "--data", "houses.csv", "--id", "house", "--fix", "town"]
    words += ["--kind", "quality=poor < fair < good < very good", "--output-name", "price"]
    return [*words, "--unit", "k€", "--title", "What is a house worth?"]
