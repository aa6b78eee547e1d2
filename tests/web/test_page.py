"""The page in a real browser, used as a visitor would, on two models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from bayescfx.result.explanation import Explanation
from tests.web.browser import CHROMIUM, Viewer, browser, diabetes, houses, serving

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no browser: install chromium to test the page"),
    pytest.mark.xdist_group("browser"),
]


@pytest.fixture(scope="module")
def made() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module", params=[diabetes, pytest.param(houses, marks=pytest.mark.slow)])
def address(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Return the address of a page."""
    write: Callable[[Path], list[str]] = request.param
    folder = tmp_path_factory.mktemp("served")
    with serving(folder, *write(folder)) as found:
        yield found


@pytest.fixture
def viewer(made: Any, address: str) -> Iterator[Viewer]:
    """Return a visitor of the page; at the end the browser has complained about nothing."""
    found = Viewer(made, address)
    yield found
    found.context.close()
    assert not found.complaints


def site(viewer: Viewer) -> Any:
    return httpx.get(f"{viewer.page.url}api/site").json()


def movable(viewer: Viewer) -> str:
    """Return a number that may move."""
    kinds = ("real", "integer")
    found = [f for f in site(viewer)["features"] if f["kind"] in kinds and not f["fixed"]]
    return str(found[0]["name"])


def test_a_row_is_found_drawn_and_edited(viewer: Viewer) -> None:
    known = site(viewer)
    viewer.at("sort-output").click()
    viewer.until(
        "(() => { const v = [...document.querySelectorAll('[data-test=row]')].map(r => "
        "+r.querySelector('data').value); return v.every((y, i) => !i || v[i-1] <= y); })()"
    )
    label = viewer.at("row").nth(2).get_attribute("data-label")
    viewer.at("row").nth(2).click()
    assert label in viewer.at("row-chip").inner_text()
    low, high = known["predictions"]["edges"][10], known["predictions"]["edges"][30]
    viewer.type("range-low", str(low))
    viewer.type("range-high", str(high))
    viewer.at("random-row").click()
    viewer.becomes("row-chip", lambda output: low <= output <= high)
    name = movable(viewer)
    before = viewer.number(viewer.at("row-output"))
    [feature] = [f for f in known["features"] if f["name"] == name]
    start = viewer.page.evaluate("import('/static/state.js').then(m => m.state.row.cells)")
    for value in sorted((feature["low"], feature["high"]), key=lambda end: end != start[name]):
        viewer.type("row-input", str(value), feature=name)
        cells = viewer.page.evaluate("import('/static/state.js').then(m => m.state.row.cells)")
        assert cells[name] == value
        reply = httpx.post(f"{viewer.page.url}api/predict", json={"cells": cells}).json()
        viewer.becomes("row-output", float(reply["output"]).__eq__)
    assert "edited" in viewer.at("row-chip").inner_text()
    viewer.at("row-reset").click()
    viewer.becomes("row-output", lambda output: output == before)


def test_a_target_is_typed_dragged_and_moved_by_keys(viewer: Viewer) -> None:
    viewer.target("+20%")
    assert viewer.at("target-mode").input_value() == "change"
    viewer.at("target-mode").select_option("least")
    handle = viewer.at("target-handle").first
    before = float(handle.get_attribute("aria-valuenow"))
    handle.focus()
    handle.press("ArrowRight")
    moved = float(handle.get_attribute("aria-valuenow"))
    assert moved > before
    box = handle.locator(".grip").bounding_box()
    viewer.page.mouse.move(box["x"] + 8, box["y"] + 8)
    viewer.page.mouse.down()
    viewer.page.mouse.move(box["x"] + 60, box["y"] + 8, steps=6)
    viewer.page.mouse.up()
    dragged = float(handle.get_attribute("aria-valuenow"))
    assert dragged > moved
    assert viewer.at("target-text").input_value().startswith(">=")
    viewer.at("target-mode").select_option("between")
    assert viewer.at("target-handle").count() == 2
    viewer.target("nonsense")
    viewer.at("target-meaning").filter(has_text="must be like").wait_for()
    assert viewer.at("run").is_disabled()


def test_limits_of_the_cards_hold_in_every_answer(viewer: Viewer) -> None:
    name = movable(viewer)
    viewer.target("+8%")
    viewer.at("tab-space").click()
    card = viewer.at("feature-card", feature=name)
    viewer.at("lock", card).click()
    others = [f["name"] for f in site(viewer)["features"] if not f["fixed"] and f["name"] != name]
    free = viewer.at("feature-card", feature=others[0])
    viewer.at("direction-up", free).check(force=True)
    viewer.at("max-changes").select_option("2")
    assert viewer.run() in ("reached", "best_guess", "unreachable")
    shown = {c.get_attribute("data-feature") for c in viewer.at("change").all()}
    assert name not in shown
    assert all(viewer.at("change", one).count() <= 2 for one in viewer.at("answer-card").all())


def test_a_search_is_watched_and_stopped(viewer: Viewer) -> None:
    viewer.target("-99%")
    viewer.settings(method="bayes-cfx", budget="3000", seed="5")
    viewer.at("run").click()
    viewer.at("progress").wait_for()
    viewer.at("reachable").first.wait_for()
    viewer.until(
        "/[1-9][0-9]* (of|rows)/.test(document.querySelector('[data-test=progress]').innerText)"
    )
    viewer.at("stop").first.click()
    viewer.ended()
    assert viewer.at("answer-card").count() >= 1


def test_answers_are_kept_compared_and_survive_a_reload(viewer: Viewer) -> None:
    viewer.target("+10%")
    viewer.settings(seed="11", n="3")
    assert viewer.run() == "reached"
    cards = viewer.at("answer-card").count()
    assert cards >= 2
    viewer.at("bookmark").first.click()
    viewer.until(
        "document.querySelector('[data-test=bookmark]').getAttribute('aria-pressed') === 'true'"
    )
    viewer.at("compare").nth(0).click()
    viewer.at("compare").nth(1).click()
    viewer.at("compare-table").wait_for()
    viewer.at("compare-chart").locator("svg").first.wait_for()
    kept = [viewer.at(name).first.inner_text() for name in ("row-chip", "answer-sentence")]
    viewer.page.wait_for_timeout(500)
    viewer.page.reload()
    viewer.at("answer-card").first.wait_for()
    viewer.becomes("row-chip", lambda _: True)
    again = [viewer.at(name).first.inner_text() for name in ("row-chip", "answer-sentence")]
    assert (again, viewer.at("answer-card").count()) == (kept, cards)
    assert viewer.at("target-text").input_value() == "+10%"
    assert viewer.at("bookmark").first.get_attribute("aria-pressed") == "true"
    viewer.at("history").click()
    viewer.at("history-item").first.wait_for()
    assert viewer.at("bookmark-item").count() >= 1
    viewer.at("history-open").first.click()
    viewer.ended()


def test_a_proven_answer_has_badges_ranges_and_a_menu(viewer: Viewer) -> None:
    viewer.target("+10%")
    viewer.settings(seed="14", n="2")
    assert viewer.run() == "reached"
    for badge in viewer.at("proof").all():
        assert badge.inner_text().startswith("proven ")
    cards = viewer.at("answer-card").all()
    assert viewer.at("proof").count() == 1 + len(cards)
    for card in cards:
        text = viewer.at("valid-ranges", card).inner_text()
        assert text.startswith("Stays valid with ")
        for change in viewer.at("change", card).all():
            assert change.get_attribute("data-feature") in text
    requests: list[str] = []
    viewer.page.on("request", lambda sent: requests.append(sent.url))
    title = viewer.at("menu").locator("summary")
    title.click()
    viewer.at("menu-line").first.wait_for()
    for line in viewer.at("menu-line").all():
        features, cost, changes = line.locator("th, td").all_inner_texts()
        assert features
        assert changes
        assert float(cost.removesuffix(" (not proven)")) > 0
    title.click()
    title.click()
    viewer.at("menu-line").first.wait_for()
    assert sum(url.endswith("/menu") for url in requests) == 1


def test_choices_and_their_notes_are_written_as_text(viewer: Viewer) -> None:
    write = (
        "menu => Promise.all([import('/static/menu.js'), import('/static/dom.js')]).then("
        "([m, { h }]) => h('div', null, m.menuTable(menu)).innerText)"
    )
    empty = {"lines": [], "notes": ["Cannot reach it alone (proven): bmi."]}
    text = viewer.page.evaluate(write, empty)
    assert "No feature and no pair is known to reach the target." in text
    assert "Cannot reach it alone (proven): bmi." in text
    names = {"lines": [["<b>bmi</b> alone", "4.51", "bmi 36.6 → 24.1"]], "notes": []}
    assert "<b>bmi</b> alone" in viewer.page.evaluate(write, names)


def test_unproven_answers_have_no_menu(viewer: Viewer) -> None:
    viewer.target("+10%")
    viewer.settings(method="random", budget="100", seed="15")
    viewer.run()
    assert viewer.at("proof").count() == 0
    assert viewer.at("menu").count() == 0


def test_answers_fit_any_width(viewer: Viewer) -> None:
    viewer.target("+10%")
    viewer.settings(seed="11", n="3")
    assert viewer.run() == "reached"
    viewer.at("menu").locator("summary").click()
    viewer.at("menu-line").first.wait_for()
    for number in (0, 1):
        viewer.at("compare").nth(number).click()
    viewer.at("compare-table").wait_for()
    for width in (1440, 1024, 390):
        viewer.page.set_viewport_size({"width": width, "height": 900})
        viewer.page.wait_for_timeout(300)
        assert viewer.page.evaluate("document.documentElement.scrollWidth") <= width


def test_what_if_begins_at_an_answer_and_shows_the_curve(viewer: Viewer) -> None:
    viewer.target("+10%")
    viewer.settings(seed="12")
    assert viewer.run() == "reached"
    output = viewer.number(viewer.at("answer-output").first)
    viewer.at("whatif-start").first.click()
    viewer.at("curve-chart").locator("svg").first.wait_for()
    viewer.page.wait_for_timeout(500)
    assert viewer.number(viewer.at("whatif-value")) == output
    name = movable(viewer)
    slider = viewer.at("whatif-line", feature=name).locator("input[type=range]")
    slider.press("Home")
    viewer.becomes("whatif-value", lambda now: now != output)
    viewer.at("use-as-row").click()
    viewer.page.wait_for_timeout(300)
    assert "edited" in viewer.at("row-chip").inner_text()


def test_unreachable_screen_relaxes_binding_constraints(viewer: Viewer) -> None:
    name = {f["name"] for f in site(viewer)["features"]} & {"area", "bmi"}
    viewer.target("+45%")
    viewer.at("tab-space").click()
    for card in viewer.at("feature-card").all():
        if card.get_attribute("data-feature") not in name:
            viewer.at("lock", card).click()
    assert viewer.run() != "reached" or viewer.at("answer-card").count()
    if viewer.at("unreachable").count():
        assert viewer.at("nearest").inner_text()
        if viewer.at("relax").count():
            with viewer.page.expect_request("**/api/questions") as sent:
                viewer.at("relax").first.click()
            assert sent.value.post_data_json["space"] != {}
            viewer.ended()


def test_every_export_is_a_file(viewer: Viewer) -> None:
    viewer.target("+6%")
    viewer.settings(seed="13", budget="300")
    viewer.run()
    menu = viewer.at("export-menu")
    for form in ("json", "csv", "html", "md", "py", "sh", "toml"):
        if not menu.evaluate("e => e.open"):
            menu.locator("summary").click()
        with viewer.page.expect_download() as found:
            viewer.at(f"export-{form}").click()
        path = Path(found.value.path())
        assert path.stat().st_size > 100, form
        if form == "json":
            assert Explanation.from_json(path.read_text()).seed == 13


@pytest.mark.parametrize("width", [1280, 1024, 768])
def test_page_fits_any_width(made: Any, address: str, width: int) -> None:
    viewer = Viewer(made, address, width=width, color_scheme="dark" if width == 1024 else "light")
    for tab in ("tab-row", "tab-space", "tab-whatif"):
        viewer.at(tab).click()
        viewer.page.wait_for_timeout(150)
        wide, seen = viewer.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= seen
    unnamed = viewer.page.evaluate(
        "[...document.querySelectorAll('input, select, textarea, button')].filter(e => "
        "e.offsetParent && !(e.labels?.length || e.ariaLabel || e.title || e.innerText.trim() || "
        "e.getAttribute('aria-labelledby'))).map(e => e.outerHTML.slice(0, 120))"
    )
    assert unnamed == []
    assert not viewer.complaints
    viewer.context.close()


def test_texts_of_the_data_are_only_text(viewer: Viewer) -> None:
    assert viewer.page.locator("i:text('Bonn')").count() == 0
