"""Answer questions with OCEAN, in its own environment: ``python peer_ocean.py REQUEST``.

The request is a JSON file with the file of a forest, the rows of its table, and for each question
the query and the class to reach. One JSON line per question is printed.
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
import pandas as pd
from ocean import ConstraintProgrammingExplainer
from ocean.feature import parse_features


def answer(explainer: Any, question: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return OCEAN's answer to one question and its CPU seconds."""
    begin = time.process_time()
    found = explainer.explain(
        np.array(question["query"], dtype=np.float64),
        y=question["label"],
        norm=1,
        max_time=seconds,
        num_workers=1,
        random_seed=0,
    )
    record = {
        "row": question["row"],
        "seconds": time.process_time() - begin,
        "proof": explainer.get_solving_status().lower(),
    }
    if found is not None:
        record["answer"] = found.to_numpy().tolist()
    return record


def main(path: str) -> None:
    """Answer all questions of a request; the first one twice, and timed the second time."""
    request = json.loads(Path(path).read_text())
    rows = pd.DataFrame(request["rows"], columns=request["names"])
    _, mapper = parse_features(rows, scale=False)
    model = pickle.loads(Path(request["model"]).read_bytes())  # written by `exact`
    begin = time.process_time()
    explainer = ConstraintProgrammingExplainer(model, mapper=mapper)
    print(json.dumps({"reading": time.process_time() - begin}), flush=True)
    questions = request["questions"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the status says whether the search was complete
        answer(explainer, questions[0], request["seconds"])
        for question in questions:
            print(json.dumps(answer(explainer, question, request["seconds"])), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
