"""The JSON behind the page: rows, predictions, questions, answers, files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import httpx
import joblib
import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.requests.target_text import parse_target
from bayescfx.web.forms import Constraints
from bayescfx.web.questions import QuestionQueue
from bayescfx.web.relaxation import relax
from tests.web.browser import serving
from tests.web.conftest import ask, ended, make_queue, row, served


def scored(files: Path, *cells: Any) -> list[float]:
    model = joblib.load(files / "model.joblib")
    columns = ["age", "bmi", "smoker", "region", "visits"]
    return [float(y) for y in model.predict(pd.DataFrame(cells)[columns])]


def test_the_site_tells_what_the_form_needs(page: httpx.Client) -> None:
    site = page.get("/api/site").json()
    features = {feature["name"]: feature for feature in site["features"]}
    assert list(features) == ["age", "bmi", "smoker", "region", "visits"]
    assert [name for name, feature in features.items() if feature["missing"]] == ["visits"]
    assert features["age"]["kind"] == "integer"
    assert features["bmi"]["step"] == 0.1
    assert features["smoker"]["levels"] == ["no", "yes"]
    assert sum(features["region"]["histogram"]["counts"]) == 200
    assert (site["n_rows"], site["id"], site["local"]) == (200, "name", True)
    assert sum(site["predictions"]["counts"]) == 100


def test_rows_are_found_sorted_and_scored_by_the_model(page: httpx.Client, files: Path) -> None:
    found = page.get("/api/rows", params={"sort": "(output)", "limit": 200}).json()
    outputs = [line["output"] for line in found["rows"]]
    assert found["total"] == len(outputs) == 100
    assert outputs == sorted(outputs)
    assert outputs == scored(files, *(line["cells"] for line in found["rows"]))
    down = page.get("/api/rows", params={"sort": "age", "descending": True}).json()["rows"]
    assert [line["cells"]["age"] for line in down] == sorted(
        (line["cells"]["age"] for line in down), reverse=True
    )
    named = page.get("/api/rows", params={"search": found["rows"][3]["label"]}).json()
    assert [line["label"] for line in named["rows"]] == [found["rows"][3]["label"]]
    low, high = outputs[10], outputs[20]
    some = page.get("/api/rows", params={"low": low, "high": high, "limit": 1}).json()
    assert some["total"] == sum(low <= y <= high for y in outputs)
    assert (
        low <= page.get("/api/random", params={"low": low, "high": high}).json()["output"] <= high
    )
    assert page.get("/api/random", params={"low": 1e9}).status_code == 404


def test_a_row_by_hand_is_scored_as_the_model_does(page: httpx.Client, files: Path) -> None:
    query = row(page)["cells"]
    other = {**query, "bmi": 31.5, "smoker": "yes", "age": query["age"] - 1}
    told = page.post("/api/predict", json={"cells": other}).json()
    assert [told["output"]] == scored(files, other)
    given = {"cells": other, "query": query, "target": ">= 1", "space": {"fix": ["bmi"]}}
    told = page.post("/api/predict", json=given).json()
    assert told["reached"]
    assert told["broken"] == ["the limits of 'age'", "'bmi' is fixed"]


def test_a_cell_may_be_made_missing_by_hand(page: httpx.Client, files: Path) -> None:
    query = {**row(page)["cells"], "visits": 3.0}
    other = {**query, "visits": None}
    told = page.post("/api/predict", json={"cells": other, "query": query}).json()
    assert [told["output"]] == scored(files, {**other, "visits": np.nan})


@pytest.mark.parametrize(
    ("target", "wanted"),
    [(">= 150", [[150, None]]), ("+20%", [[120, 120]]), ("[90, 110]", [[90, 110]])],
)
def test_targets_are_understood(page: httpx.Client, target: str, wanted: Any) -> None:
    told = page.post("/api/target", json={"target": target, "output": 100}).json()
    assert [[v if v is None else round(v, 9) for v in ends] for ends in told["wanted"]] == wanted
    assert told["met"] == (target == "[90, 110]")


def test_an_answer_is_what_explain_says(
    page: httpx.Client, queue: QuestionQueue, files: Path
) -> None:
    fresh = make_queue(files, "--only-up", "age")
    query = row(page)["cells"]
    asked = {"cells": query, "target": ">= +10%", "seed": 3, "budget": 200, "n": 2}
    found = ask(page, **asked, space={"fix": ["smoker"], "max_changes": 2})
    space = fresh.site.space.fix("smoker").max_changes(2)
    wish = parse_target(">= +10%")
    answer = cfx.explain(fresh.site.model, query, space, wish, budget=200, n=2, rng=3)
    fresh.close()
    told = found["answer"]
    assert (found["state"], told["status"]) == ("done", answer.status) == ("done", "reached")
    rows = [c["cells"] for c in told["counterfactuals"]]
    assert rows == json.loads(answer.rows.to_json(orient="records"))  # type: ignore[union-attr]  # a frame
    assert [c["output"] for c in told["counterfactuals"]] == scored(files, *rows)
    assert found["spent"] == told["n_evaluations"] <= 200
    assert found["steps"][-1][0] <= 200
    low, high = found["reachable"]
    assert low <= told["counterfactuals"][0]["output"] <= high
    for change in told["counterfactuals"][0]["changes"]:
        assert change["before"] == query[change["name"]]
        assert 0 <= change["start"] <= 1


def test_the_same_question_has_the_same_answer(page: httpx.Client) -> None:
    query = row(page)["cells"]
    first, again = (ask(page, cells=query, target=">= +5%", seed=8) for _ in range(2))
    other = ask(page, cells=query, target=">= +5%", seed=9)
    assert first["id"] == again["id"] != other["id"]
    assert first["answer"] == again["answer"]


def test_a_cheap_model_is_scored_anew_for_each_question(page: httpx.Client) -> None:
    query = row(page)["cells"]
    wish = {"cells": query, "target": ">= +5%", "method": "bayes-cfx", "budget": 20}
    first = ask(page, **wish, seed=21)
    ask(page, cells=query, target=">= +6%", method="random", budget=60)
    page.delete(f"/api/questions/{first['id']}")
    again = ask(page, **wish, seed=21)
    assert again["id"] != first["id"]
    assert again["answer"]["counterfactuals"] == first["answer"]["counterfactuals"]
    assert not page.get("/api/site").json()["shares_evaluations"]


def test_questions_share_the_rows_of_an_expensive_model(files: Path) -> None:
    queue = make_queue(files, model="tests.web.conftest:linear")
    n_listed = len(queue.site.listed)
    with served(queue) as page:
        assert page.get("/api/site").json()["shares_evaluations"]
        with queue.site.evaluations() as shared:
            assert shared is not None
            assert len(shared) == n_listed
        found = ask(page, target=">= +5%", method="random", budget=60)
        with queue.site.evaluations() as shared:
            assert shared is not None
            assert n_listed < len(shared) <= n_listed + found["spent"]
    queue.close()


def test_what_the_model_says_is_in_the_file_at_once(files: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "known.db")
    queue = make_queue(files, "--evaluations", store)
    with served(queue) as page:
        found = ask(page, target=">= +5%", budget=50)
    queue.close()
    with cfx.Evaluations.open(store) as known:
        assert len(known) == found["spent"]


def test_a_search_can_be_stopped_and_keeps_the_best(
    page: httpx.Client, queue: QuestionQueue
) -> None:
    wish = {"target": ">= +90%", "method": "bayes-cfx", "budget": 20_000, "timeout": 60}
    asked = page.post("/api/questions", json={"cells": row(page)["cells"], **wish}).json()
    while not page.get(f"/api/questions/{asked['id']}").json()["steps"]:
        pass
    page.post(f"/api/questions/{asked['id']}/stop")
    found = ended(page, asked["id"])
    assert found["answer"]["stopped"] == "interrupted"
    assert found["answer"]["counterfactuals"]


def test_events_tell_each_step_and_the_end(page: httpx.Client) -> None:
    wish = {"target": ">= +12%", "method": "bayes-cfx", "budget": 25}
    asked = page.post("/api/questions", json={"cells": row(page)["cells"], **wish}).json()
    text = page.get(f"/api/questions/{asked['id']}/events").text
    events = re.findall(r"event: (\w+)\ndata: (.*)\n", text)
    kinds = [kind for kind, _ in events]
    assert (kinds[0], kinds[-1]) == ("snapshot", "end")
    last = json.loads(events[-1][1])
    steps = [json.loads(data)["step"] for kind, data in events if kind == "step"]
    before = len(json.loads(events[0][1])["steps"])
    assert last["steps"][before:] == steps


def test_only_so_many_wait(files: Path) -> None:
    queue = make_queue(files, workers=1, queue=2)
    with served(queue) as page:
        wish = {"cells": row(page)["cells"], "target": ">= +90%", "method": "bayes-cfx"}
        wish |= {"budget": 20_000, "timeout": 60}
        asked = [page.post("/api/questions", json={**wish, "seed": k}) for k in range(5)]
        codes = [answer.status_code for answer in asked]
        assert codes[:2] == [202, 202]
        assert codes[-1] == 429
        assert asked[-1].json() == {"error": "2 questions wait already. Stop one, or try later."}
        waiting = asked[codes.index(429) - 1].json()
        assert waiting["state"] == "waiting"
        stopped = page.post(f"/api/questions/{waiting['id']}/stop").json()
        assert stopped["error"] == "Stopped before it began."
    queue.close()


def test_bookmarks_are_kept_and_questions_forgotten(page: httpx.Client) -> None:
    found = ask(page, target=">= +7%")
    url = f"/api/questions/{found['id']}"
    assert page.put(f"{url}/bookmarks", json={"answers": [1, 0, 1]}).json()["bookmarks"] == [0, 1]
    listed = page.get("/api/questions").json()["questions"]
    assert found["id"] in [question["id"] for question in listed]
    assert "answer" not in listed[0]
    assert page.delete(url).status_code == 204
    assert page.get(url).json() == {"error": f"There is no question {found['id']}."}


def test_curves_are_the_models_own(page: httpx.Client, files: Path) -> None:
    found = ask(page, target=">= +8%", method="bayes-cfx", budget=40)
    query = found["answer"]["query"]
    for feature in ("age", "bmi", "region"):
        wish = {"cells": query, "feature": feature, "question": found["id"]}
        told = page.post("/api/curve", json=wish).json()
        rows = [{**query, feature: value} for value in told["values"]]
        assert told["model"] == scored(files, *rows)
        assert told["values"][told["at"]] == query[feature]
        assert len(told["mean"]) == len(told["texts"]) == len(told["x"]) == told["n_rows"]
        assert all(np.array(told["low"]) <= np.array(told["high"]))
    quiet = page.post("/api/curve", json={"cells": query, "feature": "age", "score": False}).json()
    assert (quiet["model"], quiet["mean"], quiet["n_rows"]) == (None, None, 0)
    blank = {"cells": {**query, "bmi": None}, "feature": "age", "question": found["id"]}
    gap = page.post("/api/curve", json={**blank, "score": False})
    assert (gap.status_code, gap.json()["mean"]) == (200, None)


@pytest.mark.parametrize("form", ["json", "csv", "html", "md", "py", "toml", "sh"])
def test_answers_are_written_as_files(page: httpx.Client, form: str, tmp_path: Path) -> None:
    found = ask(page, target=">= +10%", seed=3, budget=200, space={"between": {"bmi": [20, 40]}})
    best = found["answer"]["counterfactuals"][0]
    told = page.get(f"/api/questions/{found['id']}/export/{form}")
    assert told.headers["content-disposition"].startswith("attachment")
    text = told.text
    if form == "json":
        assert cfx.Explanation.from_json(text).best.output == best["output"]
    elif form == "py":
        done = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        assert best["output_text"] in done.stdout
    elif form == "sh":
        words = text.replace("\nbayescfx", f"\n{sys.executable} -m bayescfx")
        done = subprocess.run(
            ["sh", "-c", words], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        assert best["output_text"] in done.stdout
    elif form == "toml":
        assert tomllib.loads(text)["space"]["between"] == {"bmi": [20, 40]}
    else:
        assert best["output_text"] in text


HOUSE = ["--between", "bmi=20:33", "--move", "age=-5:9", "--step", "bmi=0.5", "--drop", "region"]
HOUSE += ["--na", "?", "--allow", "age,bmi,smoker", "--max-changes", "2"]


def test_programs_ask_what_the_page_asked_under_the_rules_of_the_house(
    files: Path, tmp_path: Path
) -> None:
    (tmp_path / "linear.py").write_text(
        "def score(rows):\n    return 100 * rows['age'] + 300 * rows['bmi']\n"
    )
    words = ["--model", "linear:score", "--data", str(files / "people.csv"), "--id", "name", *HOUSE]
    wish = {"between": {"bmi": [10, 60]}, "allow": ["bmi", "smoker", "visits"], "max_changes": 9}
    with serving(tmp_path, *words) as address, httpx.Client(base_url=address, timeout=60) as page:
        cells = row(page, low=0, high=12_000)["cells"]
        refused = {"cells": cells, "target": ">= 1", "space": {"steps": {"bmi": 0.1}}}
        assert page.post("/api/questions", json=refused).status_code == 422
        found = ask(page, cells=cells, target=">= +5%", space=wish, n=1, budget=60)
        best = found["answer"]["counterfactuals"][0]
        assert set(change["name"] for change in best["changes"]) == {"bmi"}
        told = {f: page.get(f"/api/questions/{found['id']}/export/{f}").text for f in ("py", "sh")}
    assert tomllib.loads(told["sh"].split("END")[1].strip("'\n"))["space"]["between"] == {
        "bmi": [20, 33]
    }
    program = told["sh"].replace("\nbayescfx", f"\n{sys.executable} -m bayescfx")
    for command in ([sys.executable, "-c", told["py"]], ["sh", "-c", program]):
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        assert f"→ {best['cells']['bmi']:g}" in done.stdout


def test_wishes_of_house_and_page_are_exported_as_one(files: Path, tmp_path: Path) -> None:
    cost = "cost = { weight = 2.0, per_feature = { age = 2 } }"
    (tmp_path / "house.toml").write_text(f"[space]\nnear_data = {{ quantile = 0.8 }}\n{cost}\n")
    queue = make_queue(files, "--settings", str(tmp_path / "house.toml"))
    wish = {"near_data": True, "cost": {"per_feature": {"bmi": 3}}}
    with served(queue) as page:
        found = ask(page, target=">= +5%", space=wish, budget=30)
        url = f"/api/questions/{found['id']}/export"
        told, program = tomllib.loads(page.get(f"{url}/toml").text), page.get(f"{url}/py").text
    queue.close()
    assert told["space"]["near_data"] == {"quantile": 0.8}
    assert told["space"]["cost"] == {"weight": 2.0, "per_feature": {"age": 2, "bmi": 3.0}}
    assert ".near_data(data, quantile=0.8)" in program


def test_what_keeps_a_target_away_is_relaxed_by_a_click(page: httpx.Client) -> None:
    wish = {"between": {"bmi": [20, 24.0]}, "fix": ["smoker"]}
    query = row(page, sort="bmi")["cells"]
    found = ask(page, cells=query, target="+60%", space=wish, budget=2000, seed=1)
    assert found["status"] != "reached"
    bound = [one for one in found["answer"]["binding"] if one["relax"] is not None]
    assert bound
    looser = ask(page, cells=query, target="+60%", space=bound[0]["relax"], budget=2000, seed=1)
    before, after = (f["answer"]["counterfactuals"][0]["output"] for f in (found, looser))
    assert after > before


@pytest.mark.parametrize(
    ("words", "wishes", "relaxed_to"),
    [
        ("at most 2 changes", {"max_changes": 2}, {"max_changes": 3}),
        ("'bmi' being fixed", {"fix": ["age", "bmi"]}, {"fix": ["age"]}),
        ("'bmi' being fixed", {"allow": ["age"]}, {"allow": ["age", "bmi"]}),
        ("limit on 'bmi' (at most 24)", {"between": {"bmi": [20, 24]}, "only_up": ["bmi"]}, {}),
        ("rule 'age <= bmi'", {"require": ["age <= bmi"]}, {}),
        ("limit on 'age' (at least 30)", {}, None),
        ("the data's own range of 'age' (up to 79)", {}, {"between": {"age": [18, 91]}}),
    ],
)
def test_each_limit_of_the_page_can_be_lifted(
    queue: QuestionQueue, words: str, wishes: dict[str, Any], relaxed_to: Any
) -> None:
    given = Constraints(**wishes).given()
    [told] = relax([words], given, queue.site.constrain)
    assert told["relax"] == relaxed_to
    assert (told["action"] is None) == (relaxed_to is None)


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        ("target", {"target": "more", "output": 1}, 422, "the target must be like"),
        ("predict", {"cells": {"age": 3}}, 422, "bmi"),
        ("predict", {"cells": {}, "more": 1}, 422, "more: Extra inputs are not permitted."),
        ("curve", {"cells": {}, "feature": "x"}, 404, "There is no feature 'x'."),
        ("questions", {"cells": {}, "target": "1", "budget": 10**9}, 422, "budget: "),
        ("questions", {"cells": {"age": "old"}, "target": "1"}, 422, ""),
    ],
)
def test_errors_are_one_sentence(
    page: httpx.Client, path: str, body: Any, status: int, error: str
) -> None:
    told = page.post(f"/api/{path}", json=body)
    assert told.status_code == status
    assert error in told.json()["error"]
    assert "Traceback" not in told.text


@pytest.mark.parametrize("wish", [{"require": ["age <="]}, {"fix": ["weight"]}, {"cost": {}}])
def test_wishes_are_checked_before_a_search_begins(page: httpx.Client, wish: Any) -> None:
    cells = row(page)["cells"]
    told = page.post("/api/questions", json={"cells": cells, "target": "+5%", "space": wish})
    assert told.status_code == (202 if wish == {"cost": {}} else 422)


def fails(rows: Any) -> Any:
    raise RuntimeError("out of order at /secret/place")


def test_a_model_that_fails_says_so(files: Path) -> None:
    queue = make_queue(files)

    with served(queue) as page:
        cells = row(page)["cells"]
        object.__setattr__(queue.site.subject.loaded.model, "predict", fails)
        found = ask(page, cells=cells, target="+5%")
        told = page.post("/api/predict", json={"cells": cells})
    assert found["state"] == "failed"
    assert told.status_code == 422
    for error in (found["error"], told.json()["error"]):
        assert error.startswith("the model failed: RuntimeError: out of order at …")
        assert "secret" not in error
    queue.close()
