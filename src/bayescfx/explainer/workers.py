"""Blocks in workers, on the backend of joblib: processes, threads, a Dask or a Ray cluster."""

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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import cache
from itertools import islice, takewhile
from multiprocessing.pool import RemoteTraceback  # type: ignore[attr-defined]  # no stub
from typing import Any

import numpy as np

from bayescfx.errors import ModelError, SpaceWarning, WorkerError, optional
from bayescfx.evaluations.data import Evaluations
from bayescfx.explainer.batches import Batch, answer_block
from bayescfx.explainer.block import Block
from bayescfx.search.turns import Interrupt, one_thread

#: Blocks that are handed out at a time for each worker, so that memory does not grow with their
#: number.
_BLOCKS_PER_WORKER = 32
#: How often a block is tried together with others, and alone, when workers are lost.
_TRIES_TOGETHER = 2
_TRIES_ALONE = 1

#: Names of the errors that mean that a worker was lost.
_LOSSES = {
    "processes": ("BrokenProcessPool", "BrokenExecutor", "TerminatedWorkerError"),
    "Dask": ("KilledWorker", "CancelledError", "FutureCancelledError", "CommClosedError"),
    "Ray": ("RayActorError", "WorkerCrashedError", "ObjectLostError", "OutOfMemoryError"),
}


def count_workers(n_jobs: int | None) -> int:
    """Return the number of workers that `n_jobs` means; None is joblib's own configuration."""
    if n_jobs is None:
        return _count_configured_workers()
    return 1 if n_jobs == 1 else int(_require("joblib").effective_n_jobs(int(n_jobs)))


def _count_configured_workers() -> int:
    """Return the number of workers that joblib is configured to use; 1 if it is not in use."""
    if "joblib" not in sys.modules:
        return 1
    return int(_require("joblib").effective_n_jobs(None))


def _require(library: str) -> Any:
    return optional(library, "`n_jobs` needs", "parallel")


def in_workers(
    call: Block, blocks: Iterable[Block], n_workers: int, interrupt: Interrupt
) -> Iterator[Batch]:
    """Yield the answers to blocks as they finish; blocks of a lost worker are tried again."""
    backend, _ = _require("joblib.parallel").get_active_backend()
    engine = _engine_for(backend)(call, backend, n_workers)
    pending = iter(blocks)
    while not interrupt.is_requested:
        wave = list(islice(pending, _BLOCKS_PER_WORKER * n_workers))
        if not wave:
            return
        yield from _run_with_retries(engine, wave, n_workers, interrupt)


def _engine_for(backend: Any) -> type[_Threads]:
    """Return the class that runs blocks on a backend of joblib."""
    if getattr(backend, "supports_sharedmem", False):
        return _Threads
    return _Dask if hasattr(backend, "client") else _Processes


def _run_with_retries(
    engine: _Threads, wave: list[Block], n_workers: int, interrupt: Interrupt
) -> Iterator[Batch]:
    """Run some blocks; after the loss of a worker go on with those that are not done."""
    waiting = {block.first: block for block in wave}
    n_losses: Counter[int] = Counter()
    while waiting and not interrupt.is_requested:
        part = _next_part(waiting, n_losses)
        try:
            yield from _run_part(engine, part, waiting, interrupt)
        except Exception as error:
            if not _is_loss(error):
                raise
            left = [block for block in part if block.first in waiting]
            n_losses.update(block.first for block in left[: 2 * n_workers])  # begun by then
            _check_losses(left, n_losses, error)


def _run_part(
    engine: _Threads, part: list[Block], waiting: dict[int, Block], interrupt: Interrupt
) -> Iterator[Batch]:
    """Yield the answers to some blocks as they finish; they do not wait any longer."""
    running: Any = engine.run(takewhile(lambda _: not interrupt.is_requested, part))
    with closing(running) as batches:
        for batch in batches:
            del waiting[batch.first]
            yield batch


def _next_part(waiting: Mapping[int, Block], n_losses: Mapping[int, int]) -> list[Block]:
    """Return the blocks to try next, all that wait or one that may have cost two workers.

    A block that was running at two losses is tried alone, to find the one to blame.
    """
    for first, block in waiting.items():
        if n_losses[first] >= _TRIES_TOGETHER:
            return [block]
    return list(waiting.values())


def _check_losses(left: list[Block], n_losses: Mapping[int, int], error: Exception) -> None:
    """Raise if the first of the blocks that are left was tried often enough."""
    for block in left[:1]:
        if n_losses[block.first] >= _TRIES_TOGETHER + _TRIES_ALONE:
            raise _lost(block, error) from error


def _lost(block: Block, error: Exception) -> WorkerError:
    """Return the error for a block with which workers are lost every time."""
    last = block.first + len(block.rows) - 1
    return WorkerError(
        f"workers were lost three times with the queries at positions {block.first} to "
        f"{last}: {type(error).__name__}. Give each worker more memory, or look at what the "
        "model does with these rows; the answers so far are in `.explanations`."
    )


def _is_loss(error: BaseException) -> bool:
    """Return whether an error means that a worker is gone, not that its work failed."""
    losses = {name for names in _LOSSES.values() for name in names}
    return any(kind.__name__ in losses for kind in type(error).__mro__)


class _Threads:
    """Workers that share the memory of this process: nothing is sent."""

    def __init__(self, call: Block, backend: Any, n_workers: int) -> None:
        self.call = call
        self.backend = backend
        self.n_workers = n_workers

    def run(self, blocks: Iterator[Block]) -> Iterator[Batch]:
        """Yield the answers to blocks as they finish."""
        # The limit is set once for all: threads that set and restore it would interfere.
        with one_thread():
            tasks = ((block, Interrupt()) for block in blocks)
            yield from self._run_tasks(_answer_in_worker, tasks)

    def _run_tasks(self, function: Callable[..., Any], tasks: Iterator[Any]) -> Iterator[Any]:
        joblib = _require("joblib")
        can_stream = self.backend.supports_return_generator
        pool = joblib.Parallel(
            n_jobs=self.n_workers,
            return_as="generator_unordered" if can_stream else "list",
            batch_size=1,
        )
        with warnings.catch_warnings():
            # joblib warns about tasks that are abandoned when a call is interrupted.
            warnings.filterwarnings("ignore", ".*tasks", UserWarning)
            yield from pool(joblib.delayed(function)(*task) for task in tasks)


class _Processes(_Threads):
    """Workers in other processes: the call is pickled once, and each worker keeps it."""

    def __init__(self, call: Block, backend: Any, n_workers: int) -> None:
        super().__init__(call, backend, n_workers)
        self.cloudpickle = _require("cloudpickle")
        try:
            content = self.cloudpickle.dumps(call.for_workers())
        except Exception as error:
            raise ModelError(
                "`model`, the space and its rules must be picklable to be sent to other processes; "
                f"pickling raised {type(error).__name__}: {error}. Use n_jobs=1, or threads: "
                "with joblib.parallel_config(backend='threading')."
            ) from error
        self.digest = hashlib.sha256(content).hexdigest()
        # An array, because loky maps a large one into the memory of its workers.
        self.parcel: Any = np.frombuffer(content, dtype=np.uint8)
        if type(backend).__module__.startswith("ray."):
            self.parcel = optional("ray", "this backend needs").put(self.parcel)

    def run(self, blocks: Iterator[Block]) -> Iterator[Batch]:
        """Yield the answers to blocks as they finish."""
        tasks = (
            (
                self.digest,
                self.parcel,
                self.cloudpickle.dumps(block.queries()),
            )
            for block in blocks
        )
        for content in self._run_tasks(_serve, tasks):
            yield _unpack(content)


class _Dask(_Processes):
    """Workers of a Dask cluster, used directly: joblib waits for lost ones without end."""

    sent: Any = None

    def _run_tasks(self, function: Callable[..., Any], tasks: Iterator[Any]) -> Iterator[Any]:
        distributed = optional("distributed", "this backend needs")
        client = self.backend.client
        self._send_call(client)
        waiting = (
            client.submit(function, digest, self.sent, block, pure=False)
            for digest, _, block in tasks
        )
        running = distributed.as_completed(list(islice(waiting, 2 * self.n_workers)))
        try:
            for future in running:
                yield future.result()
                for new in islice(waiting, 1):
                    running.add(new)
        finally:
            client.cancel(list(running.futures))

    def _send_call(self, client: Any) -> None:
        """Send each worker a copy of the call, unless the last one is still there."""
        if self.sent is None or self.sent.status != "finished":
            self.sent = client.scatter(self.parcel, broadcast=True, hash=False)


_calls: dict[str, Block] = {}  # in a worker: the last call, by its digest
_lock = threading.Lock()


def _serve(digest: str, parcel: Any, packed: bytes) -> bytes:
    """Answer a block in a worker process."""
    import cloudpickle

    call = _load_call(digest, parcel)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        batch = _answer_in_worker(replace(call, **pickle.loads(packed)), Interrupt())
    answers = {i: answer.without_context() for i, answer in batch.answers.items()}
    notes = {
        (str(w.message), w.category, w.filename, w.lineno)
        for w in caught
        if not issubclass(w.category, SpaceWarning)  # issued before the search
    }
    trace = ""
    fault = batch.fault
    if fault is not None:
        trace = "".join(traceback.format_exception(fault))
        fault = _make_portable(fault)
    content: bytes = cloudpickle.dumps((replace(batch, answers=answers, fault=fault), notes, trace))
    return content


def _load_call(digest: str, parcel: Any) -> Block:
    """Return the call in a worker, unpickled once."""
    with _lock:  # a worker may have threads
        if digest not in _calls:
            if not isinstance(parcel, np.ndarray):
                parcel = optional("ray", "this backend needs").get(parcel)
            _calls.clear()
            _calls[digest] = pickle.loads(memoryview(parcel))
            one_thread()  # for good: other workers run beside this one
            _exit_with_parent(_calls[digest].parent)
        return _calls[digest]


@cache
def _exit_with_parent(parent: int | None) -> None:
    """Let this process exit soon after the one that started it, if that sent the call."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)  # the parent may have been killed

    if os.getppid() == parent:
        threading.Thread(target=watch, daemon=True).start()


def _answer_in_worker(block: Block, interrupt: Interrupt) -> Batch:
    """Answer a block, and hand over the rows that were scored."""
    is_in_memory = block.evaluations.file is None
    evaluations = Evaluations() if is_in_memory else block.evaluations
    batch = answer_block(block, evaluations, interrupt)
    if block.keeps_rows and is_in_memory:
        batch = replace(batch, scored=evaluations.packed())
    return batch


def _make_portable(fault: Exception) -> Exception:
    """Return an error without what can't be pickled."""
    import cloudpickle

    fault.__dict__.pop("evaluations", None)
    try:
        portable: Exception = pickle.loads(cloudpickle.dumps(fault))
    except Exception:
        return ModelError(f"`model` raised {type(fault).__name__}: {fault}")
    return portable


def _unpack(content: bytes) -> Batch:
    """Return the answers of a worker, and issue the warnings that it caught."""
    batch: Batch
    batch, notes, trace = pickle.loads(content)
    for message, category, file, line in notes:
        warnings.warn_explicit(message, category, file, line)
    if batch.fault is not None:
        batch.fault.__cause__ = RemoteTraceback(f"\n{trace}")
    return batch
