"""Blocks in workers, on whatever engine joblib is told to use: processes, threads, a cluster."""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from itertools import islice, takewhile
from multiprocessing.pool import RemoteTraceback  # type: ignore[attr-defined]  # no stub
from typing import Any

import numpy as np

from bayescfx.errors import ModelError, SpaceWarning, WorkerError, optional
from bayescfx.evaluations.data import Evaluations
from bayescfx.explainer.blocks import Block, Done, Job, work
from bayescfx.search.threads import one_thread
from bayescfx.search.turns import Halt


def count_workers(n_jobs: int | None) -> int:
    """Return how many workers `n_jobs` means here; None is what joblib was told, if anything."""
    if n_jobs == 1 or (n_jobs is None and "joblib" not in sys.modules):
        return 1
    return int(_needed("joblib").effective_n_jobs(n_jobs))


def _needed(library: str) -> Any:
    return optional(library, "`n_jobs` needs", "parallel")


def in_workers(job: Job, blocks: Iterable[Block], crew: int, halt: Halt) -> Iterator[Done]:
    """Yield what comes of blocks as they finish; those of a lost worker are tried again.

    Blocks are taken a few for each worker at a time, so that memory does not grow with their
    number.
    """
    backend, _ = _needed("joblib.parallel").get_active_backend()
    shared = getattr(backend, "supports_sharedmem", False)
    kind = _Threads if shared else _Dask if hasattr(backend, "client") else _Processes
    engine = kind(job, backend, crew)
    pending = iter(blocks)
    while not halt.called and (wave := list(islice(pending, 32 * crew))):
        yield from _surviving(engine, wave, crew, halt)


def _surviving(engine: Any, wave: list[Block], crew: int, halt: Halt) -> Iterator[Done]:
    """Run a wave of blocks; after the loss of a worker go on with those that are not done."""
    waiting = {block.first: block for block in wave}
    tries: Counter[int] = Counter()
    while waiting and not halt.called:
        # Who was there twice when workers were lost is tried alone: so it is known who does it.
        suspects = [block for block in waiting.values() if tries[block.first] > 1]
        part = suspects[:1] or list(waiting.values())
        try:
            with closing(engine.run(takewhile(lambda _: not halt.called, part))) as dones:
                for done in dones:
                    del waiting[done.first]
                    yield done
        except Exception as error:
            if not _is_loss(error):
                raise
            left = [block.first for block in part if block.first in waiting]
            tries.update(left[: 2 * crew])  # as many have been begun
            first = left[0] if left else -1
            if suspects and tries[first] > 2:
                last = first + len(waiting[first].wishes) - 1
                raise WorkerError(
                    f"workers were lost three times with the queries at positions {first} to "
                    f"{last}: {type(error).__name__}. Give each more memory, or look at what the "
                    "model does with these rows; what was answered is in `.explanations`."
                ) from error


def _is_loss(error: BaseException) -> bool:
    """Return whether an error means that a worker is gone, and not that its work is wrong."""
    losses = {
        *("BrokenProcessPool", "BrokenExecutor", "TerminatedWorkerError"),  # processes
        *("KilledWorker", "CancelledError", "FutureCancelledError", "CommClosedError"),  # Dask
        *("RayActorError", "WorkerCrashedError", "ObjectLostError", "OutOfMemoryError"),  # Ray
    }
    return any(kind.__name__ in losses for kind in type(error).__mro__)


class _Threads:
    """Workers that share our memory: nothing travels."""

    def __init__(self, job: Job, backend: Any, crew: int) -> None:
        self.job, self.backend, self.crew = job, backend, crew

    def run(self, blocks: Iterator[Block]) -> Iterator[Done]:
        """Yield what comes of blocks, whichever is first."""
        # The limit is taken once for all: threads that set and restore it cross each other.
        with one_thread():
            yield from self._each(partial(_learning, self.job), ((b, Halt()) for b in blocks))

    def _each(self, call: Callable[..., Any], blocks: Iterator[Any]) -> Iterator[Any]:
        joblib, how = _needed("joblib"), "list"
        if self.backend.supports_return_generator:
            how = "generator_unordered"
        pool = joblib.Parallel(n_jobs=self.crew, return_as=how, batch_size=1)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*tasks", UserWarning)  # that nobody waits for
            yield from pool(joblib.delayed(call)(*given) for given in blocks)


class _Processes(_Threads):
    """Workers elsewhere: the job is pickled once, and each worker keeps it."""

    def __init__(self, job: Job, backend: Any, crew: int) -> None:
        super().__init__(job, backend, crew)
        self.cloudpickle = _needed("cloudpickle")
        try:
            content = self.cloudpickle.dumps(job.for_workers())
        except Exception as error:
            raise ModelError(
                "`model` must be able to travel to other processes, as must the space and its "
                f"rules; pickling says {type(error).__name__}: {error}. Use n_jobs=1, or threads: "
                "with joblib.parallel_config(backend='threading')."
            ) from error
        self.digest = hashlib.sha256(content).hexdigest()
        # As an array: loky maps it into the memory of its workers if it is large.
        self.parcel: Any = np.frombuffer(content, dtype=np.uint8)
        if type(backend).__module__.startswith("ray."):
            self.parcel = optional("ray", "this backend needs").put(self.parcel)

    def run(self, blocks: Iterator[Block]) -> Iterator[Done]:
        """Yield what comes of blocks, whichever is first."""
        bare = (self.cloudpickle.dumps(replace(block, regions=None)) for block in blocks)
        packed = ((self.digest, self.parcel, content) for content in bare)
        yield from map(_unpacked, self._each(_served, packed))


class _Dask(_Processes):
    """Workers of a Dask cluster; it is asked itself, since joblib waits for lost ones for ever."""

    sent: Any = None

    def _each(self, call: Callable[..., Any], blocks: Iterator[Any]) -> Iterator[Any]:
        distributed, client = optional("distributed", "this backend needs"), self.backend.client
        if self.sent is None or self.sent.status != "finished":  # each worker has a copy
            self.sent = client.scatter(self.parcel, broadcast=True, hash=False)
        waiting = (client.submit(call, d, self.sent, packed, pure=False) for d, _, packed in blocks)
        running = distributed.as_completed(list(islice(waiting, 2 * self.crew)))
        try:
            for future in running:
                yield future.result()
                for new in islice(waiting, 1):
                    running.add(new)
        finally:
            client.cancel(list(running.futures))


_held: dict[str, Job] = {}  # in a worker: the last job, by its digest
_lock = threading.Lock()


def _served(digest: str, parcel: Any, packed: bytes) -> bytes:
    """Work on a block in a worker."""
    import cloudpickle

    with _lock:  # a worker may have threads
        if digest not in _held:
            if not isinstance(parcel, np.ndarray):
                parcel = optional("ray", "this backend needs").get(parcel)
            _held.clear()
            _held[digest] = pickle.loads(memoryview(parcel))
            one_thread()  # for good: there are other workers beside this one
            _end_with(_held[digest].parent)
        job = _held[digest]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = _learning(job, pickle.loads(packed), Halt(elsewhere=True))
    done.answers = {i: answer.without_context() for i, answer in done.answers.items()}
    told = {
        (str(w.message), w.category, w.filename, w.lineno)
        for w in caught
        if not issubclass(w.category, SpaceWarning)  # told before
    }
    trace = ""
    if done.fault is not None:
        trace = "".join(traceback.format_exception(done.fault))
        done.fault = _portable(done.fault)
    content: bytes = cloudpickle.dumps((done, told, trace))
    return content


@cache
def _end_with(parent: int | None) -> None:
    """Let this process end soon after the one that has started it, if that sends the work."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)  # as if killed, too: nobody waits for an answer

    if os.getppid() == parent:
        threading.Thread(target=watch, daemon=True).start()


def _learning(job: Job, block: Block, halt: Halt) -> Done:
    """Work on a block, and hand over what the model said."""
    store = Evaluations() if job.store.file is None else job.store
    done = work(job, block, store, halt)
    done.twice = halt.twice if halt.elsewhere else None
    if job.keep and store.file is None:
        done.learnt = store.learnt()
    return done


def _portable(fault: Exception) -> Exception:
    """Return an error without what does not travel."""
    import cloudpickle

    vars(fault).pop("evaluations", None)
    try:
        same: Exception = pickle.loads(cloudpickle.dumps(fault))
    except Exception:
        return ModelError(f"`model` raised {type(fault).__name__}: {fault}")
    return same


def _unpacked(packed: bytes) -> Done:
    """Return what came of a block in a worker, and tell what it was told."""
    done: Done
    done, told, trace = pickle.loads(packed)
    for message, category, file, line in told:
        warnings.warn_explicit(message, category, file, line)
    if done.fault is not None:
        done.fault.__cause__ = RemoteTraceback(f"\n{trace}")
    return done
