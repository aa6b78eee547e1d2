"""Draw the pictures of the page that the docs show: ``python -m tests.web.pictures``."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.pages import ROOT
from tests.web.browser import Viewer, browser, diabetes, serving

SHOTS = ("row", "answers", "what-if", "out-of-reach")  # of the whole page, in this order
MENU = "menu"  # a part of the page, between the second and the third
FOLDER = ROOT / "docs" / "figures" / "web-page"


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, browser() as made:
        folder = Path(place)
        with serving(folder, *diabetes(folder), "--fix", "sex", "--only-up", "age") as address:
            viewer = Viewer(made, address, height=1100)

            names = iter(SHOTS)

            def shoot() -> None:
                viewer.page.evaluate("scrollTo(0, 0)")
                viewer.page.wait_for_timeout(600)
                viewer.page.screenshot(path=str(FOLDER / f"{next(names)}.png"))

            viewer.target("-20%")
            shoot()
            assert viewer.run() == "reached"
            shoot()
            viewer.at("menu").locator("summary").click()
            viewer.at("menu-line").first.wait_for()
            viewer.at("menu").screenshot(path=str(FOLDER / f"{MENU}.png"))
            viewer.at("whatif-start").first.click()
            viewer.at("curve-chart").locator("svg").first.wait_for()
            shoot()
            viewer.at("tab-space").click()
            viewer.at("max-changes").select_option("1")
            box = viewer.at("limit-low-box", viewer.at("feature-card", feature="bmi"))
            box.fill("29")
            box.press("Tab")
            viewer.target("-60%")
            viewer.run()
            shoot()


if __name__ == "__main__":
    main()
