"""Answer questions with treecf, in its own environment: ``python peer_treecf.py REQUEST``.

The request is a JSON file with the model's file, the scales, limits and grids of the features, and
the accepted outputs of each query. One JSON line per question is printed.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import treecf


def make_explainer(request: dict[str, Any]) -> Any:
    """Return treecf's explainer with the same scales, limits and grids as ours."""
    model = pickle.loads(Path(request["model"]).read_bytes())  # written by `exact`
    names = request["names"]
    constraints = []
    policies: dict[str, Any] = {}
    for name, low, high, step in zip(
        names, request["low"], request["high"], request["step"], strict=True
    ):
        constraints.append(treecf.Range(name, low, high))
        if step > 0:
            policies[name] = treecf.Grid(step)
    return treecf.Explainer(
        model,
        constraints=constraints,
        normalizers=dict(zip(names, request["scale"], strict=True)),
        value_policy=policies,
    )


def answer(explainer: Any, question: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """Return treecf's answer to one question and its CPU seconds."""
    target = treecf.Target.raw(range=tuple(question["accepted"]))
    begin = time.process_time()
    found = explainer.explain(
        np.array(question["query"], dtype=np.float64),
        target,
        backend="exact",
        time_budget_s=request["seconds"],
        sparsity_weight=request["per_change"],
        node_budget=10**9,
        seed=0,
    )
    seconds = time.process_time() - begin
    record = {"row": question["row"], "proof": found.proof, "seconds": seconds}
    if isinstance(found, treecf.Counterfactual):
        record["distance"] = found.distance
        record["n_changed"] = found.n_changed
        record["answer"] = found.x_cf.tolist()
    return record


def main(path: str) -> None:
    """Answer all questions of a request; the first one twice, and timed the second time."""
    request = json.loads(Path(path).read_text())
    explainer = make_explainer(request)
    questions = request["questions"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the proof says whether the search was complete
        answer(explainer, questions[0], request)
        for question in questions:
            print(json.dumps(answer(explainer, question, request)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
