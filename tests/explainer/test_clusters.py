"""The same answers from Dask and Ray, also when a worker is killed; they are not everywhere."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from tests.conftest import codes

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]
joblib = pytest.importorskip("joblib")


def table(n: int) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(0).normal(size=(n, 3)), columns=list("abc"))


def ask(model: Any, n: int) -> list[Any]:
    X = table(n)
    how: Any = {"budget": 8, "rng": 0, "method": "random"}
    many = cfx.explain_many(model, X, cfx.Space.from_data(X), cfx.at_least(1.0), **how)
    return [codes(answer) for answer in many]


def plain(rows: Any) -> Any:
    return rows["a"] + 2 * rows["b"] - rows["c"]


def test_a_dask_cluster_survives_the_loss_of_a_worker(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    mark = str(tmp_path / "killed")

    def deadly(rows: Any) -> Any:
        if rows["a"].iloc[0] > 1.0 and not os.path.exists(mark):
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return rows["a"] + 2 * rows["b"] - rows["c"]

    here = ask(plain, 640)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        assert ask(deadly, 640) == here
    assert Path(mark).exists()


def test_partitions_of_a_dask_frame_are_answered_as_one_table() -> None:
    frames = pytest.importorskip("dask.dataframe")
    X = table(100)
    given: Any = (plain, cfx.Space.from_data(X), cfx.at_least(1.0))
    meta = cfx.explain_partition(X[:0], *given)
    many = frames.from_pandas(X, npartitions=3)
    told = many.map_partitions(cfx.explain_partition, *given, budget=8, rng=0, meta=meta)
    found = told.compute(scheduler="synchronous")
    assert found.index.tolist() == X.index.tolist()
    first = cfx.explain_partition(X[: len(many.partitions[0])], *given, budget=8, rng=0)
    assert found["output"].tolist()[: len(first)] == first["output"].tolist()


def test_ray_gives_the_same_answers() -> None:
    ray = pytest.importorskip("ray")
    register_ray: Any = importlib.import_module("ray.util.joblib").register_ray

    def model(rows: Any) -> Any:
        return rows["a"] + 2 * rows["b"] - rows["c"]

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        register_ray()
        with joblib.parallel_config(backend="ray", n_jobs=2):
            there = ask(model, 1000)
    finally:
        ray.shutdown()
    assert there == ask(model, 1000)


def test_partitions_of_a_spark_frame_are_answered_as_one_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sql = pytest.importorskip("pyspark.sql")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # else whatever comes first in the path
    X = table(100)
    given: Any = (plain, cfx.Space.from_data(X), cfx.at_least(1.0))
    empty = cfx.explain_partition(X[:0], *given)

    def told(frames: Any) -> Any:
        for frame in frames:
            yield cfx.explain_partition(frame, *given, budget=8, rng=0)

    spark = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    session = spark.getOrCreate()
    try:
        found = session.createDataFrame(X).repartition(2).mapInPandas(told, schema(empty))
        lines = found.toPandas()
    finally:
        session.stop()
    assert len(lines) == 100
    assert set(lines["status"]) == {"reached"}


def schema(empty: pd.DataFrame) -> str:
    """Return the columns of answers as Spark writes them."""
    kinds = {"f": "double", "i": "bigint", "b": "boolean"}
    return ", ".join(f"`{name}` {kinds.get(d.kind, 'string')}" for name, d in empty.dtypes.items())
