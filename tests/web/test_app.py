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
from bayescfx.cli import main
from bayescfx.potentials.target_text import parse_target
from bayescfx.web.questions import QuestionQueue
from bayescfx.web.relaxation import relax
from bayescfx.web.request_forms import Constraints
from tests.web.browser import serving
from tests.web.conftest import ask, ended, make_queue, row, served


def scored(files: Path, *cells: Any) -> list[float]:
    model = joblib.load(files / "model.joblib")
    columns = ["age", "bmi", "smoker", "region", "visits"]
    return [float(y) for y in model.predict(pd.DataFrame(cells)[columns])]


def test_site_describes_features_and_predictions(page: httpx.Client) -> None:
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


def test_edited_row_is_scored_by_the_model(page: httpx.Client, files: Path) -> None:
    query = row(page)["cells"]
    other = {**query, "bmi": 31.5, "smoker": "yes", "age": query["age"] - 1}
    reply = page.post("/api/predict", json={"cells": other}).json()
    assert [reply["output"]] == scored(files, other)
    given = {"cells": other, "query": query, "target": ">= 1", "space": {"fix": ["bmi"]}}
    reply = page.post("/api/predict", json=given).json()
    assert reply["reached"]
    assert reply["broken"] == ["the limits of 'age'", "'bmi' is fixed"]
    changed = sum(other[name] != query[name] for name in query)
    assert reply["n_changes"] == changed
    assert reply["cost"] == pytest.approx(reply["distance"] + 0.2 * changed)
    dear = {**given, "space": {"cost": {"per_change": 3}}}
    reply = page.post("/api/predict", json=dear).json()
    assert reply["cost"] == pytest.approx(reply["distance"] + 3 * changed)
    assert page.get("/api/site").json()["per_change"] == 0.2


def test_cell_may_be_made_missing(page: httpx.Client, files: Path) -> None:
    query = {**row(page)["cells"], "visits": 3.0}
    other = {**query, "visits": None}
    reply = page.post("/api/predict", json={"cells": other, "query": query}).json()
    assert [reply["output"]] == scored(files, {**other, "visits": np.nan})
    assert (reply["n_changes"], reply["cost"]) == (1, None)


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        (">= 150", [[150, None]]),
        ("+20%", [[120, None]]),
        ("=+20%", [[120, 120]]),
        ("[90, 110]", [[90, 110]]),
    ],
)
def test_targets_are_parsed(page: httpx.Client, target: str, wanted: Any) -> None:
    reply = page.post("/api/target", json={"target": target, "output": 100}).json()
    assert [[v if v is None else round(v, 9) for v in ends] for ends in reply["wanted"]] == wanted
    assert reply["met"] == (target == "[90, 110]")


def rows_of(answer: cfx.Explanation) -> Any:
    """Return the counterfactuals of an answer as the page has them."""
    return json.loads(pd.DataFrame(answer.rows).to_json(orient="records"))


def test_answers_on_the_page_can_be_diverse(page: httpx.Client, queue: QuestionQueue) -> None:
    query = row(page)["cells"]
    search: dict[str, Any] = {"budget": 400, "n": 3, "diverse": True}
    reply = ask(page, cells=query, target="+10%", seed=3, **search)["answer"]
    explainer = cfx.Explainer(queue.site.model, queue.site.constrain({}), **search)
    answer = explainer.explain(query, parse_target("+10%"), rng=3)
    assert [c["cells"] for c in reply["counterfactuals"]] == rows_of(answer)
    shared = page.get("/api/site").json()
    assert shared["defaults"]["diverse"] is False


@pytest.mark.parametrize("method", ["auto", "bayes-cfx"])
def test_page_python_and_command_line_give_the_same_answer(
    page: httpx.Client, queue: QuestionQueue, files: Path, tmp_path: Path, method: str
) -> None:
    query = row(page)["cells"]
    search: dict[str, Any] = {
        "budget": 60 if method == "bayes-cfx" else 200,
        "n": 2,
        "method": method,
    }
    space = {"fix": ["smoker"], "max_changes": 2}
    found = ask(page, cells=query, target="+10%", seed=3, space=space, **search)
    reply = found["answer"]
    rows = [c["cells"] for c in reply["counterfactuals"]]

    target = parse_target("+10%")
    explainer = cfx.Explainer(queue.site.model, queue.site.constrain(space), **search)
    answer = explainer.explain(query, target, rng=3)
    assert (found["state"], reply["status"]) == ("done", answer.status) == ("done", "reached")
    assert rows == rows_of(answer)

    path = tmp_path / "answer.json"
    words = ["explain", "--model", str(files / "model.joblib"), "--trust-pickle", "--quiet"]
    words += ["--data", str(files / "people.csv"), "--id", "name", "--query", json.dumps(query)]
    words += ["--only-up", "age", "--fix", "smoker", "--max-changes", "2", "--target", "+10%"]
    words += ["--seed", "3", "-n", "2", "--method", method, "--budget", str(search["budget"])]
    assert main([*words, "--out", str(path)]) == 0
    assert rows == rows_of(cfx.Explanation.from_json(path.read_text()))

    assert [c["output"] for c in reply["counterfactuals"]] == scored(files, *rows)
    assert found["spent"] == reply["n_evaluations"] <= search["budget"]
    assert found["steps"][-1][0] <= search["budget"]
    low, high = found["reachable"]
    assert low <= reply["counterfactuals"][0]["output"] <= high
    for change in reply["counterfactuals"][0]["changes"]:
        assert change["before"] == query[change["name"]]
        assert 0 <= change["start"] <= 1


def test_equal_requests_return_the_same_question(page: httpx.Client) -> None:
    query = row(page)["cells"]
    first, again = (ask(page, cells=query, target="+5%", seed=8) for _ in range(2))
    other = ask(page, cells=query, target="+5%", seed=9)
    assert first["id"] == again["id"] != other["id"]
    assert first["answer"] == again["answer"]


def test_a_cheap_model_is_scored_anew_for_each_question(page: httpx.Client) -> None:
    query = row(page)["cells"]
    fields = {"cells": query, "target": "+5%", "method": "bayes-cfx", "budget": 20}
    first = ask(page, **fields, seed=21)
    ask(page, cells=query, target="+6%", method="random", budget=60)
    page.delete(f"/api/questions/{first['id']}")
    again = ask(page, **fields, seed=21)
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
        found = ask(page, target="+5%", method="random", budget=60)
        with queue.site.evaluations() as shared:
            assert shared is not None
            assert n_listed < len(shared) <= n_listed + found["spent"]
    queue.close()


def test_scored_rows_are_in_the_file_at_once(files: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "known.db")
    queue = make_queue(files, "--evaluations", store)
    with served(queue) as page:
        found = ask(page, target="+5%", budget=50)
    queue.close()
    with cfx.Evaluations.open(store) as known:
        assert len(known) == found["spent"]


def test_a_search_can_be_stopped_and_keeps_the_best(
    page: httpx.Client, queue: QuestionQueue
) -> None:
    fields = {"target": "+90%", "method": "bayes-cfx", "budget": 20_000, "timeout": 60}
    asked = page.post("/api/questions", json={"cells": row(page)["cells"], **fields}).json()
    while not page.get(f"/api/questions/{asked['id']}").json()["steps"]:
        pass
    page.post(f"/api/questions/{asked['id']}/stop")
    found = ended(page, asked["id"])
    assert found["answer"]["stopped"] == "interrupted"
    assert found["answer"]["counterfactuals"]


def test_events_have_each_step_and_the_end(page: httpx.Client) -> None:
    fields = {"target": "+12%", "method": "bayes-cfx", "budget": 25}
    asked = page.post("/api/questions", json={"cells": row(page)["cells"], **fields}).json()
    text = page.get(f"/api/questions/{asked['id']}/events").text
    events = re.findall(r"event: (\w+)\ndata: (.*)\n", text)
    kinds = [kind for kind, _ in events]
    assert (kinds[0], kinds[-1]) == ("snapshot", "end")
    last = json.loads(events[-1][1])
    steps = [json.loads(data)["step"] for kind, data in events if kind == "step"]
    before = len(json.loads(events[0][1])["steps"])
    assert last["steps"][before:] == steps


def test_queue_is_bounded(files: Path) -> None:
    queue = make_queue(files, workers=1, queue=2)
    with served(queue) as page:
        fields = {"cells": row(page)["cells"], "target": "+90%", "method": "bayes-cfx"}
        fields |= {"budget": 20_000, "timeout": 60}
        asked = [page.post("/api/questions", json={**fields, "seed": k}) for k in range(5)]
        codes = [answer.status_code for answer in asked]
        assert codes[:2] == [202, 202]
        assert codes[-1] == 429
        assert asked[-1].json() == {"error": "2 questions wait already. Stop one, or try later."}
        waiting = asked[codes.index(429) - 1].json()
        assert waiting["state"] == "waiting"
        stopped = page.post(f"/api/questions/{waiting['id']}/stop").json()
        assert stopped["error"] == "Stopped before it began."
    queue.close()


def test_bookmarks_are_kept_and_questions_removed(page: httpx.Client) -> None:
    found = ask(page, target="+7%")
    url = f"/api/questions/{found['id']}"
    assert page.put(f"{url}/bookmarks", json={"answers": [1, 0, 1]}).json()["bookmarks"] == [0, 1]
    listed = page.get("/api/questions").json()["questions"]
    assert found["id"] in [question["id"] for question in listed]
    assert "answer" not in listed[0]
    assert page.delete(url).status_code == 204
    assert page.get(url).json() == {"error": f"There is no question {found['id']}."}


def test_curves_are_scored_by_the_model(page: httpx.Client, files: Path) -> None:
    found = ask(page, target="+8%", method="bayes-cfx", budget=40)
    query = found["answer"]["query"]
    for feature in ("age", "bmi", "region"):
        fields = {"cells": query, "feature": feature, "question": found["id"]}
        reply = page.post("/api/curve", json=fields).json()
        rows = [{**query, feature: value} for value in reply["values"]]
        assert reply["model"] == scored(files, *rows)
        assert reply["values"][reply["at"]] == query[feature]
        assert len(reply["mean"]) == len(reply["texts"]) == len(reply["x"]) == reply["n_rows"]
        assert all(np.array(reply["low"]) <= np.array(reply["high"]))
    quiet = page.post("/api/curve", json={"cells": query, "feature": "age", "score": False}).json()
    assert (quiet["model"], quiet["mean"], quiet["n_rows"]) == (None, None, 0)
    blank = {"cells": {**query, "bmi": None}, "feature": "age", "question": found["id"]}
    gap = page.post("/api/curve", json={**blank, "score": False})
    assert (gap.status_code, gap.json()["mean"]) == (200, None)


def test_proven_answers_have_valid_ranges_and_a_menu_on_request(
    page: httpx.Client, files: Path
) -> None:
    found = ask(page, target="+8%", budget=2000, n=1)
    answer = found["answer"]
    best = answer["counterfactuals"][0]
    assert answer["proof"] == best["proof"] == "optimal"
    assert best["valid_text"].startswith("Stays valid with ")
    for change in best["changes"]:
        assert change["name"] in best["valid_text"]
    menu = page.get(f"/api/questions/{found['id']}/menu").json()
    assert all(len(line) == 3 for line in menu["lines"])
    people = pd.read_csv(files / "people.csv").drop(columns="name")
    space = cfx.Space.from_data(people).only_up("age")
    cells = {name: answer["query"][name] for name in space.features}
    expected = cfx.menu(joblib.load(files / "model.joblib"), cells, space, "+8%")
    assert menu["lines"] == expected.lines()
    assert menu["notes"] == expected.notes()


@pytest.mark.parametrize("form", ["json", "csv", "html", "md", "py", "toml", "sh"])
def test_answers_are_written_as_files(page: httpx.Client, form: str, tmp_path: Path) -> None:
    found = ask(page, target="+10%", seed=3, budget=200, space={"between": {"bmi": [20, 40]}})
    best = found["answer"]["counterfactuals"][0]
    reply = page.get(f"/api/questions/{found['id']}/export/{form}")
    assert reply.headers["content-disposition"].startswith("attachment")
    text = reply.text
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


OPERATOR = ["--between", "bmi=20:33", "--move", "age=-5:9", "--step", "bmi=0.5", "--drop", "region"]
OPERATOR += ["--na", "?", "--allow", "age,bmi,smoker", "--max-changes", "2"]


def test_exported_programs_have_the_constraints_of_operator_and_visitor(
    files: Path, tmp_path: Path
) -> None:
    (tmp_path / "linear.py").write_text(
        "def score(rows):\n    return 100 * rows['age'] + 300 * rows['bmi']\n"
    )
    words = [
        "--model",
        "linear:score",
        "--data",
        str(files / "people.csv"),
        "--id",
        "name",
        *OPERATOR,
    ]
    fields = {"between": {"bmi": [10, 60]}, "allow": ["bmi", "smoker", "visits"], "max_changes": 9}
    with serving(tmp_path, *words) as address, httpx.Client(base_url=address, timeout=60) as page:
        cells = row(page, low=0, high=12_000)["cells"]
        refused = {"cells": cells, "target": ">= 1", "space": {"steps": {"bmi": 0.1}}}
        assert page.post("/api/questions", json=refused).status_code == 422
        found = ask(page, cells=cells, target="+5%", space=fields, n=1, budget=60)
        best = found["answer"]["counterfactuals"][0]
        assert set(change["name"] for change in best["changes"]) == {"bmi"}
        reply = {f: page.get(f"/api/questions/{found['id']}/export/{f}").text for f in ("py", "sh")}
    assert tomllib.loads(reply["sh"].split("END")[1].strip("'\n"))["space"]["between"] == {
        "bmi": [20, 33]
    }
    program = reply["sh"].replace("\nbayescfx", f"\n{sys.executable} -m bayescfx")
    for command in ([sys.executable, "-c", reply["py"]], ["sh", "-c", program]):
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        assert f"→ {best['cells']['bmi']:g}" in done.stdout


def test_strict_limits_move_a_row_that_lies_outside(page: httpx.Client) -> None:
    cells = {**row(page)["cells"], "bmi": 36.0}
    limits = {"bmi": [20, 30]}
    kept = ask(page, cells=cells, target="+1%", space={"between": limits, "fix": ["age"]})
    assert kept["error"] is None, kept["error"]
    assert any("'bmi' is 36 (between 20 and 30)" in note for note in kept["notes"])
    for found in kept["answer"]["counterfactuals"]:
        is_kept = "bmi" not in [change["name"] for change in found["changes"]]
        said = "bmi stays at 36, outside its limits (between 20 and 30)."
        assert found["kept_text"] == (said if is_kept else "")
    moved = ask(page, cells=cells, target="-1%", space={"strict_between": limits})
    assert moved["error"] is None, moved["error"]
    for found in moved["answer"]["counterfactuals"]:
        assert 20 <= found["cells"]["bmi"] <= 30
        assert found["kept_text"] == ""
    program = page.get(f"/api/questions/{moved['id']}/export/py").text
    assert ".between({'bmi': [20, 30]}, strict=True)" in program
    text = page.get(f"/api/questions/{moved['id']}/export/toml").text
    assert tomllib.loads(text)["space"]["strict_between"] == {"bmi": [20, 30]}


def test_what_follows_is_shown(files: Path, tmp_path: Path) -> None:
    module = "def score(rows):\n    return 1.0 * rows['age'] + rows['bmi']\n"
    module += "def half(rows):\n    return rows['age'] / 2\n"
    (tmp_path / "halves.py").write_text(module)
    words = ["--model", "halves:score", "--data", str(files / "people.csv"), "--id", "name"]
    words += ["--drop", "region", "--na", "?", "--derive-residual", "bmi=halves:half"]
    words += ["--kind", "bmi=real"]
    with serving(tmp_path, *words) as address, httpx.Client(base_url=address, timeout=60) as page:
        cells = row(page)["cells"]
        found = ask(page, cells=cells, target="+5%", n=1, budget=60, seed=0)
        url = f"/api/questions/{found['id']}/export"
        program, command = (page.get(f"{url}/{form}").text for form in ("py", "sh"))
        new = {**cells, "age": cells["age"] + 2}
        tried = page.post("/api/predict", json={"cells": new, "query": cells}).json()
    assert "--derive-residual bmi=halves:half" in command
    assert ".derive('bmi', ..., residual=True)  # halves:half" in program
    best = found["answer"]["counterfactuals"][0]
    assert best["n_changes"] == 1
    assert [(c["name"], c["derived"]) for c in best["changes"]] == [("age", False), ("bmi", True)]
    assert "(bmi follows: " in best["sentence"]
    added = best["cells"]["age"] - cells["age"]
    assert best["cells"]["bmi"] == pytest.approx(cells["bmi"] + added / 2)
    assert best["changes"][1]["after"] == best["cells"]["bmi"]
    assert [text.split(" →")[0] for text in tried["follows"]] == [f"bmi follows: {cells['bmi']}"]
    assert tried["n_changes"] == 1


def test_constraints_of_operator_and_visitor_are_intersected(files: Path, tmp_path: Path) -> None:
    cost = "cost = { per_change = 2.0, per_feature = { age = 2 } }"
    (tmp_path / "operator.toml").write_text(f"[space]\nnear_data = {{ quantile = 0.8 }}\n{cost}\n")
    queue = make_queue(files, "--settings", str(tmp_path / "operator.toml"))
    fields = {"near_data": True, "cost": {"per_feature": {"bmi": 3}}}
    with served(queue) as page:
        found = ask(page, target="+5%", space=fields, budget=30)
        url = f"/api/questions/{found['id']}/export"
        reply, program = tomllib.loads(page.get(f"{url}/toml").text), page.get(f"{url}/py").text
    queue.close()
    assert reply["space"]["near_data"] == {"quantile": 0.8}
    assert reply["space"]["cost"] == {"per_change": 2.0, "per_feature": {"age": 2, "bmi": 3.0}}
    assert ".near_data(data, quantile=0.8)" in program


def test_relaxing_a_binding_constraint_brings_the_target_nearer(page: httpx.Client) -> None:
    fields = {"between": {"bmi": [20, 24.0]}, "fix": ["smoker"]}
    query = row(page, sort="bmi")["cells"]
    found = ask(page, cells=query, target="+60%", space=fields, budget=2000, seed=1)
    assert found["status"] != "reached"
    bound = [one for one in found["answer"]["binding"] if one["relax"] is not None]
    assert bound
    looser = ask(page, cells=query, target="+60%", space=bound[0]["relax"], budget=2000, seed=1)
    before, after = (f["answer"]["counterfactuals"][0]["output"] for f in (found, looser))
    assert after > before


@pytest.mark.parametrize(
    ("words", "constraints", "relaxed_to"),
    [
        ("at most 2 changes", {"max_changes": 2}, {"max_changes": 3}),
        ("'bmi' being fixed", {"fix": ["age", "bmi"]}, {"fix": ["age"]}),
        ("'bmi' being fixed", {"allow": ["age"]}, {"allow": ["age", "bmi"]}),
        ("limit on 'bmi'", {"between": {"bmi": [20, 24]}}, {}),
        ("limit on 'bmi' (at most 24)", {"between": {"bmi": [20, 24]}, "only_up": ["bmi"]}, {}),
        ("rule 'age <= bmi'", {"require": ["age <= bmi"]}, {}),
        ("limit on 'age' (at least 30)", {}, None),
        ("data range of 'age' (up to 79)", {}, {"between": {"age": [18, 91]}}),
    ],
)
def test_each_constraint_of_the_visitor_can_be_relaxed(
    queue: QuestionQueue, words: str, constraints: dict[str, Any], relaxed_to: Any
) -> None:
    given = Constraints(**constraints).given()
    [reply] = relax([cfx.BindingConstraint(words, "guess")], given, queue.site.constrain)
    assert reply["relax"] == relaxed_to
    assert (reply["action"] is None) == (relaxed_to is None)


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
    reply = page.post(f"/api/{path}", json=body)
    assert reply.status_code == status
    assert error in reply.json()["error"]
    assert "Traceback" not in reply.text


@pytest.mark.parametrize("fields", [{"require": ["age <="]}, {"fix": ["weight"]}, {"cost": {}}])
def test_constraints_are_checked_before_the_search(page: httpx.Client, fields: Any) -> None:
    cells = row(page)["cells"]
    reply = page.post("/api/questions", json={"cells": cells, "target": "+5%", "space": fields})
    assert reply.status_code == (202 if fields == {"cost": {}} else 422)


def fails(rows: Any) -> Any:
    raise RuntimeError("out of order at /secret/place")


def test_errors_of_the_model_are_reported_without_paths(files: Path) -> None:
    queue = make_queue(files)

    with served(queue) as page:
        cells = row(page)["cells"]
        object.__setattr__(queue.site.subject.loaded.model, "predict", fails)
        found = ask(page, cells=cells, target="+5%")
        reply = page.post("/api/predict", json={"cells": cells})
    assert found["state"] == "failed"
    assert reply.status_code == 422
    for error in (found["error"], reply.json()["error"]):
        assert error.startswith("the model failed: RuntimeError: out of order at …")
        assert "secret" not in error
    queue.close()
