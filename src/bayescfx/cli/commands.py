"""The commands: each takes its options and the console, and returns the exit code."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import warnings
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

import bayescfx as cfx
from bayescfx.cli import answers
from bayescfx.cli.asking import Asked, Subject, ask, make_subject, naming, scoring, who
from bayescfx.cli.console import Console, about, describe, progress
from bayescfx.cli.goals import parse_target
from bayescfx.cli.options import Settings, assignment, gather
from bayescfx.cli.reading import cells_of, read_chunks, read_query, read_text
from bayescfx.cli.spaces import value_of
from bayescfx.cli.streaming import stream
from bayescfx.errors import BayesCFXError, EvaluationsError, SettingsError, SpaceWarning
from bayescfx.potentials import Target
from bayescfx.result import wording

#: What `demo` shows.
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
    low, high = (wording.number(float(end), 3) for end in (outputs.min(), outputs.max()))
    console.answer(
        f"Data: {len(X)} people with diabetes, {X.shape[1]} measurements each. A gradient-boosting "
        f"model predicts how far\nthe disease gets within a year ({low} to {high}).\n\n"
        f"For patient 114 it predicts {wording.number(float(outputs[114]))}. What would have to "
        "change for that to be 25 % lower, if only\nbody mass index (not below 18.5), blood "
        "pressure, triglycerides and glucose may fall, two of them at most?\n"
    )
    target = cfx.decrease(percent=25)
    with progress(console) as bar:
        answer = cfx.explain(model, X.iloc[114], names["space"], target, rng=0, on_step=bar)
    console.answer(answers.as_text(answer))
    picture, page = folder / "bayescfx-demo.png", folder / "bayescfx-demo.html"
    try:
        for path in (picture, page):
            answers.write(Asked({0: answer}, single=True), str(path))
        console.answer(f"\nPicture: {picture}\nReport:  {page}")
    except cfx.MissingExtraError as error:
        console.say("note", str(error))
    console.answer(f"\nThe same in Python:\n\n{DEMO}")
    return answers.exit_code([answer.status])


def explain(options: Namespace, console: Console) -> int:
    """Answer one question."""
    settings, target, subject = _question(options, "query", console)
    cells, name = read_query(settings.query, subject.data, subject.reading)
    names = None if name is None else pd.Index([name], name=settings.id)
    asked = Asked({}, names=names, single=True)
    asked = ask(subject, {0: subject.fit(cells)}, target, settings, console, asked)
    answer = asked.answers[0]
    plain = {**answers.named(names, 0), **answers.as_plain(answer)}
    code, _ = _handed_out(asked, options.out, answers.as_text(answer), plain, console)
    if asked.fault is None:
        return code
    told = f"after {answer.n_evaluations} rows: {describe(asked.fault)} The answer is the best of"
    return _failed(asked.fault, f"{told} what was known by then.", console, code)


def predict(options: Namespace, console: Console) -> int:
    """Score a row changed by hand."""
    settings = gather(options)
    settings.need("model", "data", "query")
    target = None if settings.target is None else parse_target(settings.target)
    subject = make_subject(settings, console)
    cells, _ = read_query(settings.query, subject.data, subject.reading)
    space, query, model = subject.space, subject.fit(cells), scoring(subject, settings, console)
    said = dict(assignment("--set", text, empty=True) for text in options.set)
    changes, _ = subject.reading.row({name: text or None for name, text in said.items()})
    with about("set"):
        for name in [name for name, value in changes.items() if isinstance(value, str)]:
            changes[name] = value_of(space.features[space.name(name)], changes[name])
        found = cfx.what_if(model, query, changes, space, target, tolerance=settings.tolerance)
    found = replace(found, about=naming(settings))
    console.answer(str(found), answers.what_if_as_plain(found, space.schema.places))
    return 3 if found.reached is False else 0


def explain_many(options: Namespace, console: Console) -> int:
    """Answer one question for each row of a file; what is answered is written at once."""
    settings, target, subject = _question(options, "queries", console)
    with contextlib.closing(read_chunks(settings.queries, 1001, how=subject.reading)) as chunks:
        table = next(chunks)
    if len(table) > 1000 or settings.jobs is not None:
        return stream(subject, target, settings, options.out, console)
    names = None if settings.id is None else table.index
    counted = f"of {len(table)} queries"
    queries, refused = _queries(subject, subject.numbers(table), settings, console)

    def keep(asked: Asked) -> None:
        quick = [path for path in options.out if path.endswith((".json", ".csv", ".parquet"))]
        answers.write_all(asked, quick, rescue=False)

    asked = ask(subject, queries, target, settings, console, Asked({}, refused, names=names), keep)
    lost = [i for i in queries if i not in asked.answers]
    why = "interrupted" if asked.fault is None else "the model failed"
    failures = refused | dict.fromkeys(lost, f"not answered: {why} before")
    asked = replace(asked, failures=failures)
    text, plain = answers.many_as_text(asked), answers.many_as_plain(asked)
    code, where = _handed_out(asked, options.out, text, plain, console)
    if asked.fault is not None:
        told = f"half-way: {describe(asked.fault)} {len(asked.answers)} {counted} have answers,"
        told += f" the last ones from what was known by then.{where}"
        return _failed(asked.fault, told, console, code or 2 * bool(failures))
    if lost:
        told = f"interrupted: {len(asked.answers)} {counted} have answers."
        console.say("error", told + where)
        return 130
    if failures:
        first = min(failures)
        told = f"{len(failures)} {counted} can't be asked; the first is {who(first, names)}:"
        console.say("error", f"{told} {failures[first]} The others have answers.{where}")
    return 2 if failures else code


def _question(options: Namespace, what: str, console: Console) -> tuple[Settings, Target, Subject]:
    settings = gather(options)
    settings.need("model", "data", what, "target")
    if settings.timeout is not None and not settings.timeout >= 0:
        raise SettingsError(f"--timeout must be seconds >= 0; got {settings.timeout!r}.")
    if settings.seed < 0:
        raise SettingsError(f"--seed must be a whole number >= 0; got {settings.seed!r}.")
    return settings, parse_target(settings.target), make_subject(settings, console)


def _handed_out(
    asked: Asked, paths: list[str], text: str, plain: Any, console: Console
) -> tuple[int, str]:
    """Write answers to files and to the console; return the exit code, and where they are."""
    lost = answers.write_all(asked, paths)
    console.answer(text, plain)
    for path, why in lost.items():
        console.say("error", f"{path!r} can't be written: {why}")
    written = [path for path in paths if path not in lost]
    where = f" They are in {', '.join(written)}." if written else ""
    code = answers.exit_code(answer.status for answer in asked.answers.values())
    return 2 if lost else code, where


def _failed(fault: BaseException, told: str, console: Console, code: int) -> int:
    """Say how the model or the store failed; what was reached before is an answer all the same."""
    what = "store" if isinstance(fault, EvaluationsError) else "model"
    again = "when there is room" if what == "store" else "when the model answers"
    told = f"the {what} failed {told} Run the command again {again};"
    kind = "error" if code else "warning"
    console.say(kind, f"{told} with --evaluations FILE it goes on from there.")
    return 2 * bool(code)


def _queries(
    subject: Subject, table: pd.DataFrame, settings: Settings, console: Console
) -> tuple[dict[int, dict[str, Any]], dict[int, str]]:
    """Return the rows of the file by position, and why others can't be asked."""
    names = None if settings.id is None else table.index
    rows, refused, said = dict[int, dict[str, Any]](), dict[int, str](), dict[int, str]()
    for i in range(len(table)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SpaceWarning)
            try:
                rows[i] = subject.fit(cells_of(table, i))
            except BayesCFXError as error:
                refused[i] = describe(error)
        if caught:
            said[i] = str(caught[0].message)
    if said:
        first = min(said)
        others = f" (and {len(said) - 1} more rows)" if len(said) > 1 else ""
        console.say("warning", f"{who(first, names)} of the queries{others}: {said[first]}")
    if not rows:
        which = "" if names is None else f"; {who(0, names)}"
        raise SettingsError(f"no row of {settings.queries!r} can be asked{which}: {refused[0]}")
    return rows, refused


def report(options: Namespace, console: Console) -> int:
    """Write an answer as a page, or in other forms."""
    paths = options.out or [str(Path(options.answer).with_suffix(".html"))]
    told = naming(options) | dict(assignment("--about", text) for text in options.about or ())
    text = read_text(options.answer, "the answer")
    many = '"kind": "explanations"' in text[:200]
    found: Any = cfx.Explanations.from_json(text) if many else cfx.Explanation.from_json(text)
    each = [replace(a, about={**a.about, **told}) for a in (found if many else [found])]
    asked = Asked(dict(enumerate(each)), names=_names(found), single=not many)
    for path in paths:
        answers.write(asked, path)
    console.answer("\n".join(paths), paths)
    return 0


def _names(found: cfx.Explanation | cfx.Explanations) -> pd.Index[Any] | None:
    """Return what queries are called, if it is more than their numbers."""
    if isinstance(found, cfx.Explanation):
        column = found.about.get(wording.ID)
        return None if column is None else pd.Index([found.about.get("row", "")], name=column)
    index = found.index
    if index.equals(pd.RangeIndex(len(index))) and index.name is None:
        return None
    return index.to_flat_index().rename("id") if None in index.names else index


def reproduce(options: Namespace, console: Console) -> int:
    """Run the paper's experiments, which live beside the package in its repository."""
    places = (Path.cwd(), Path(cfx.__file__).resolve().parents[2])
    root = next((p for p in places if (p / "experiments" / "__main__.py").is_file()), None)
    if root is None:
        told = "the paper's experiments are in the repository, not in the package. Clone it, and"
        raise SettingsError(f"{told} run `bayescfx reproduce` or `make reproduce` there.")
    words = ["--quick"] if options.quick else []
    words += ["--only", *options.experiments] if options.experiments else []
    for flag, folder in (("--out", options.out), ("--data", options.data)):
        words += [] if folder is None else [flag, str(Path(folder).resolve())]
    console.say("note", f"running the experiments in {root}.")
    done = subprocess.run([sys.executable, "-m", "experiments", *words], cwd=root, check=False)
    return done.returncode
