"""A model in its own process: hangs and crashes are faults, and nothing is left behind."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.deadline import Deadline, time_limit
from bayescfx.errors import OutOfTime
from bayescfx.models import isolated as module
from bayescfx.models.isolated import Isolated, isolated
from tests.conftest import ZERO, cloud, cube, plane


class Odd(Exception):
    """An error that can't be made again from its text."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"odd {one} {two}")


def moody(rows: Any) -> Any:
    """Return a plane, but for rows that ask for trouble."""
    print("printed while scoring")  # noqa: T201  must not get into the answers
    mood = float(np.asarray(rows, dtype=float)[0, 0])
    if mood == 1:
        time.sleep(600)
    elif mood == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    elif mood == 3:
        os._exit(3)
    elif mood == 4:
        raise LookupError("no such row")
    elif mood == 5:
        raise Odd(1, 2)
    elif mood == 6:
        warnings.warn("careful", RuntimeWarning, stacklevel=1)
    elif mood == 7:
        raise SystemExit("enough")
    elif mood == 8:
        return np.ones(10**10)
    elif mood == 9:
        return np.array([lambda: 0] * len(rows))
    return plane(rows)


def asked(model: Isolated, mood: float) -> Any:
    return model(np.array([[mood, 1.0, 0.5]]))


@pytest.mark.parametrize(
    ("mood", "kind", "message"),
    [
        (1, cfx.ModelError, r"`model` gave no answer within 0\.5 s, in its own process\."),
        (
            2,
            cfx.ModelError,
            r"`model` was ended by SIGKILL \(out of memory\?\), in its own process",
        ),
        (3, cfx.ModelError, r"`model` ended with exit code 3, in its own process"),
        (4, LookupError, "no such row"),
        (5, cfx.ModelError, r"`model` raised Odd: odd 1 2\."),
        (7, cfx.ModelError, r"`model` raised SystemExit: enough\."),
        (9, Exception, "pickle"),
    ],
)
def test_a_hang_or_a_crash_is_a_fault_and_the_next_call_is_answered(
    mood: int, kind: type[Exception], message: str
) -> None:
    with isolated(moody, timeout=0.5) as model:
        with pytest.raises(kind, match=message):
            asked(model, mood)
        assert asked(model, 0.25).tolist() == [1.0]


def test_an_error_names_the_line_that_raised_it() -> None:
    with isolated(moody) as model, pytest.raises(LookupError) as caught:
        asked(model, 4)
    inside, outside = caught.value.__notes__
    assert "in moody" in inside
    assert "in _answer" not in inside  # the model's own lines
    assert outside.startswith("while evaluating row {0: 4.0")


def test_warnings_arrive() -> None:
    with isolated(moody) as model, pytest.warns(RuntimeWarning, match="careful") as caught:
        assert asked(model, 6).tolist() == [12.5]
    assert Path(caught[0].filename).name == Path(__file__).name


@pytest.mark.skipif(sys.platform != "linux", reason="other systems don't keep this limit")
def test_memory_can_be_limited() -> None:
    with isolated(moody, memory="2GB") as model:
        with pytest.raises(MemoryError, match="Unable to allocate"):
            asked(model, 8)
        assert asked(model, 0.25).tolist() == [1.0]


def hole(rows: Any) -> Any:
    """Return a plane; crash where a is large, or hang."""
    a = np.asarray(rows, dtype=float)[:, 0]
    if (a > 0.9).any():
        time.sleep(600)
    if (a > 0.6).any():
        os.kill(os.getpid(), signal.SIGSEGV)
    return plane(rows)


def leaving(rows: Any) -> Any:
    """Hang, and leave a process behind that is in no group of ours."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(20)
        os._exit(0)
    time.sleep(600)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Unix only")
def test_a_hang_ends_in_time_even_if_a_child_survives() -> None:
    start = time.monotonic()
    with (
        isolated(leaving, timeout=1) as model,
        pytest.raises(cfx.ModelError, match="gave no answer within 1 s"),
    ):
        model(np.zeros((1, 2)))
    assert time.monotonic() - start < 15


def test_hangs_and_crashes_can_be_skipped() -> None:
    ask = {"query": ZERO, "space": cube(), "target": cfx.at_least(1.2), "rng": 0}
    with isolated(hole, timeout=0.3) as model:
        with pytest.raises(cfx.ModelError, match="in its own process"):
            cfx.explain(model, budget=25, **ask)  # type: ignore[arg-type]
        answer = cfx.explain(model, budget=25, on_fault="skip", **ask)  # type: ignore[arg-type]
    assert answer.reached
    assert answer.best.row["a"] <= 0.6
    assert np.isnan(answer.evaluations.outputs).any()
    assert answer.verify(plane)


def tiring(rows: Any) -> Any:
    """Return a plane; hang where a has moved."""
    if (np.asarray(rows, dtype=float)[:, 0] != 0.25).any():
        time.sleep(600)
    return plane(rows)


@pytest.mark.parametrize("most", [60.0, None])
def test_the_time_of_a_search_ends_the_waiting_for_a_process(most: float | None) -> None:
    with isolated(tiring, timeout=most) as model:
        model(np.full((1, 3), 0.25))  # a process takes its time to start
        start = time.monotonic()
        answer = cfx.explain(model, ZERO, cube(), cfx.at_least(1.2), budget=25, rng=0, timeout=1.0)
    assert answer.stopped == "timeout"
    assert time.monotonic() - start < 30
    before = time_limit.set(Deadline.after(0.5))
    try:
        with (
            isolated(tiring, timeout=most) as model,
            pytest.raises(
                OutOfTime, match=r"`model` gave no answer within .* s, in its own process"
            ),
        ):
            model(np.ones((1, 3)))
    finally:
        time_limit.reset(before)


def test_frames_estimators_and_model_attributes_pass_through() -> None:
    from sklearn.linear_model import LogisticRegression  # not for every process

    frame = pd.DataFrame(cloud(), columns=list("abc"))
    clf = LogisticRegression().fit(frame, frame["a"] > 0.5)
    plain = cfx.probability(clf, True)
    with isolated(plain) as model:
        assert (model.link, model.name, model.local) == (plain.link, plain.name, True)
        np.testing.assert_array_equal(model(frame), plain(frame))
        here = cfx.explain(plain, ZERO, cube(), cfx.at_least(0.6), rng=0, prove=False)
        there = cfx.explain(model, ZERO, cube(), cfx.at_least(0.6), rng=0, prove=False)
    assert there.best.changes == here.best.changes
    assert there.n_evaluations == here.n_evaluations


def test_what_a_model_returns_is_judged_as_ever() -> None:
    with (
        isolated(np.sqrt) as model,
        pytest.raises(cfx.ModelError, match=r"returned shape \(2, 3\) for 2 rows"),
    ):
        model(np.ones((2, 3)))


def test_threads_take_turns_and_a_copy_has_another_process() -> None:
    found: dict[int, Any] = {}
    with isolated(plane) as model:

        def ask(k: int) -> None:
            found[k] = model(np.full((1, 3), float(k)))[0]

        threads = [threading.Thread(target=ask, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == {k: 2.0 * k for k in range(8)}
        copy = pickle.loads(pickle.dumps(model))
        assert copy(np.ones((1, 3))).tolist() == [2.0]
        assert pid(copy) != pid(model)
        copy.close()


def pid(model: Isolated) -> int:
    process: Any = model.predict._process  # type: ignore[attr-defined]  # a Worker
    return int(process.pid)


def alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def gone(number: int) -> bool:
    """Wait until a process has ended."""
    end = time.monotonic() + 30
    while alive(number) and time.monotonic() < end:
        time.sleep(0.02)
    return not alive(number)


def test_the_process_ends_with_the_model() -> None:
    model = isolated(plane)
    asked(model, 0.25)
    first = pid(model)
    model.close()
    assert gone(first)
    asked(model, 0.25)  # starts another
    second = pid(model)
    del model
    gc.collect()
    assert gone(second)


SCRIPT = """
import os, signal, sys, time
import numpy as np
import bayescfx as cfx

print("once")
factor = 3.0

def model(rows):
    if rows[0, 0] > 5:
        time.sleep(600)
    return factor * rows[:, 0]

remote = cfx.isolated(model, timeout=None)
print(remote(np.ones((1, 2)))[0], remote.predict._process.pid, flush=True)
"""


@pytest.mark.parametrize("work", ["", "remote(np.full((1, 2), 9.0))"], ids=["idle", "busy"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_the_process_ends_with_the_program_that_started_it(
    tmp_path: Path, work: str, how: signal.Signals
) -> None:
    # A script without `if __name__ == "__main__"`, with a function and a global of its own.
    script = tmp_path / "script.py"
    script.write_text(f"{SCRIPT}\n{work}\nsys.stdin.read()\n")
    program = subprocess.Popen(
        [sys.executable, script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with program:
        assert program.stdout is not None
        assert program.stdout.readline() == "once\n"
        output, number = program.stdout.readline().split()
        assert output == "3.0"
        program.send_signal(how)
        assert gone(int(number))


def test_functions_typed_at_a_prompt_travel() -> None:
    completed = subprocess.run(
        [sys.executable, "-i", "-q"],
        input="import bayescfx as cfx, numpy as np\ndef f(X): return X[:, 0] + 1\n\n"
        "cfx.isolated(f)(np.ones((1, 2)))\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "array([2.])" in completed.stdout


def test_without_cloudpickle_the_error_gives_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_pickler", lambda: pickle.dumps)
    with pytest.raises(cfx.ModelError, match=r"must be picklable .*Install cloudpickle"):
        isolated(lambda rows: rows[:, 0])
    main: Any = sys.modules["__main__"]
    monkeypatch.setattr(main, "typed", plane, raising=False)
    monkeypatch.setattr(plane, "__module__", "__main__")
    monkeypatch.setattr(plane, "__qualname__", "typed")
    with pytest.raises(cfx.ModelError, match=r"must be loadable .*AttributeError.*cloudpickle\."):
        asked(isolated(plane), 0.25)


@pytest.mark.parametrize("timeout", [0, -1, "1", np.nan, 1e300])
def test_a_timeout_must_be_seconds(timeout: Any) -> None:
    with pytest.raises(cfx.SettingsError, match="`timeout` must be None or seconds > 0; got"):
        isolated(plane, timeout=timeout)


@pytest.mark.parametrize("memory", [0, -1, "2", "GB", "2 potatoes", 1e300])
def test_memory_must_be_bytes(memory: Any) -> None:
    with pytest.raises(cfx.SettingsError, match="`memory` must be None, bytes or"):
        isolated(plane, memory=memory)
