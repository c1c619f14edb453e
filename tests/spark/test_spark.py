"""Spark: the results of one machine, from any number of ranks, and through faults."""

import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyspark", reason='no pyspark: pip install "crowdwise[spark]"')
if shutil.which("java") is None:
    pytest.skip("no Java, which Spark needs", allow_module_level=True)

from numpy.testing import assert_allclose, assert_array_equal
from pyspark import cloudpickle
from pyspark.ml import Pipeline, PipelineModel
from pyspark.sql import SparkSession

from crowdwise import aggregate
from crowdwise.cli import main
from crowdwise.errors import AnnotationError, FileError, ParameterError
from crowdwise.io import read
from crowdwise.spark import CrowdAggregator, CrowdAggregatorModel
from crowdwise.spark import crowd as spark_crowd
from crowdwise.spark.files import read_files

pytestmark = pytest.mark.spark
FEW_STEPS = {"max_iter": 5, "tol": 0.0}


JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # quick to start
OPTIONS = {
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.sql.codegen.wholeStage": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
    "spark.driver.memory": "512m",
    "spark.log.level": "OFF",
}


def start(master):
    """A session of Spark; the processes of Python that it starts are those of these tests."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(master)
    for name, value in OPTIONS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors cannot import it
    return session


@pytest.fixture(scope="module")
def spark():
    """Two ranks, processes of their own, in one Java machine; a task may fail three times."""
    session = start("local[2,4]")
    yield session
    session.stop()


@pytest.fixture(scope="module", autouse=True)
def small_buckets():
    """Buckets of a few hundred annotations, so that small crowds have several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_crowd, "CELLS_PER_BLOCK", 256)
        yield


@pytest.fixture(scope="module")
def votes(voters):
    frame = voters.annotations.to_frame()
    return frame.astype({"task": str, "worker": str}).sample(frac=1.0, random_state=0)


@pytest.fixture(scope="module")
def frame(spark, votes):
    return spark.createDataFrame(votes).cache()


def as_pandas(found):
    return found.toArrow().to_pandas(maps_as_pydicts="strict")


def labels_of(found):
    return as_pandas(found).set_index("task").sort_index()


@pytest.fixture(scope="module")
def fitted(frame):
    """A few steps of Dawid-Skene on two ranks."""
    return CrowdAggregator(aggregate.DawidSkene(**FEW_STEPS), numRanks=2).fit(frame)


def test_one_machine_and_any_number_of_ranks_agree(frame, votes, fitted):
    local = aggregate.DawidSkene(**FEW_STEPS).fit(votes)
    one, steps = (
        CrowdAggregator(aggregate.DawidSkene(**FEW_STEPS), numRanks=n, form=form).fit(frame)
        for n, form in ((1, "barrier"), (2, "steps"))
    )
    for other in (one, steps):
        assert fitted.method.objective_ == other.method.objective_  # the same bits
        assert_array_equal(fitted.method.confusion_, other.method.confusion_)
    assert_allclose(fitted.method.confusion_, local.confusion_, rtol=1e-9)
    found = labels_of(fitted.transform(frame))
    expected = local.probas_.sort_index()
    assert found["label"].tolist() == local.labels_.sort_index().tolist()
    assert_allclose(found["probability"], expected.max(axis=1), rtol=1e-9)
    maps = pd.DataFrame(found["distribution"].tolist(), index=found.index)
    assert_allclose(maps[expected.columns], expected, rtol=1e-9)
    workers = as_pandas(fitted.workers).set_index("worker")
    assert_allclose(workers["skill"], local.skills_.loc[workers.index], rtol=1e-9)


def test_more_ranks_than_can_run_at_once_are_not_begun(frame, fitted):
    asked = CrowdAggregator(aggregate.DawidSkene(**FEW_STEPS), numRanks=64)
    with pytest.warns(UserWarning, match=r"numRanks=64, but Spark runs 2 tasks at once"):
        found = asked.fit(frame)
    assert_array_equal(found.method.confusion_, fitted.method.confusion_)


def test_the_default_answer_is_that_of_one_machine(frame, votes):
    few = {"base": aggregate.IBCC(max_iter=2, tol=0.0), "n_bags": 1}
    local = aggregate.BayesBag(**few).fit(votes)
    barrier, steps = (
        CrowdAggregator(aggregate.BayesBag(**few), numRanks=2, form=form).fit(frame)
        for form in ("barrier", "steps")
    )
    for name in ("confusion_", "prior_", "weights_"):
        found = getattr(barrier.method, name)
        assert_array_equal(found, getattr(steps.method, name))  # the same bits
        assert_allclose(found, getattr(local, name), rtol=1e-9)
    assert barrier.method.dependence_ == local.dependence_
    found = labels_of(barrier.transform(frame))
    assert found["label"].tolist() == local.labels_.sort_index().tolist()
    expected = local.probas_.sort_index().max(axis=1)
    assert_allclose(found["probability"], expected, rtol=1e-9)


def test_what_is_learned_of_each_task_stays_with_it(spark, frame, votes, tmp_path):
    local = aggregate.GLAD(**FEW_STEPS).fit(votes)
    model = CrowdAggregator(aggregate.GLAD(**FEW_STEPS), numRanks=2).fit(frame)
    assert_allclose(model.method.log_odds_, local.log_odds_, rtol=1e-9)
    ease = as_pandas(model.tasks).set_index("task")["log_ease"].str[0]
    assert_allclose(ease.loc[local.tasks_], local.log_ease_, rtol=1e-9)
    model.save(str(tmp_path / "model"))
    for some in (model, CrowdAggregatorModel.load(str(tmp_path / "model"))):
        found = labels_of(some.transform(frame))
        expected = local.probas_.sort_index().max(axis=1)
        assert_allclose(found["probability"], expected, rtol=1e-9)
    new = votes[votes["task"].isin(local.tasks_[:5])].copy()
    new["task"] = "new " + new["task"]
    found = labels_of(model.transform(spark.createDataFrame(new)))
    expected = local.predict_proba(new).sort_index().max(axis=1)  # of average ease
    assert_allclose(found["probability"], expected, rtol=1e-9)


class Deadly(aggregate.DawidSkene):
    """Kills a process in the middle of the first fit; counts the sweeps of every attempt."""

    folder: ClassVar[str]
    whom: ClassVar[str]

    def _fit(self, engine):
        home, sweep = Path(self.folder), type(engine)._load
        rank, seen = engine.group.rank, []

        def load(own, edges):
            seen.append(edges)
            if rank == 1 and len(seen) == 3 * len(own.cells) and not (home / "killed").exists():
                (home / "killed").touch()
                os.kill(victim(self.whom), signal.SIGKILL)
                time.sleep(60)  # the end of its executor ends this process
            return sweep(own, edges)

        type(engine)._load = load
        try:
            found = super()._fit(engine)
        finally:
            type(engine)._load = sweep
        (home / f"sweeps-{rank}").write_text(str(len(seen) // len(engine.cells)))
        return found


def victim(whom):
    """The number of the Python worker that asks, or of the executor that has started it."""
    if whom == "worker":
        return os.getpid()
    daemon = os.getppid()
    return int(Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()[1])


def check_after_a_kill(whom, frame, fitted, tmp_path):
    Deadly.folder, Deadly.whom = str(tmp_path), whom
    found = CrowdAggregator(Deadly(**FEW_STEPS)).fit(frame)
    assert (tmp_path / "killed").exists()
    assert found.method.objective_ == fitted.method.objective_
    assert_array_equal(found.method.confusion_, fitted.method.confusion_)
    sweeps = [int((tmp_path / f"sweeps-{rank}").read_text()) for rank in (0, 1)]
    assert max(sweeps) < fitted.method.n_iter_  # the first sums were not made again


def test_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(frame, fitted, tmp_path):
    check_after_a_kill("worker", frame, fitted, tmp_path)


def test_rows_that_are_no_annotations_count_as_on_one_machine(spark, votes):
    weight = np.random.default_rng(0).choice([0.0, 0.5, 2.0], len(votes))
    odd = pd.DataFrame(
        {
            "task": ["1", "new", "none"],
            "worker": ["0", "1", None],
            "label": pd.array([None, None, None]),
            "weight": [1.0, 1.0, 1.0],
        }
    )
    rows = pd.concat([votes.assign(weight=weight), odd])
    kept = rows[rows["label"].notna()].astype({"label": int})
    local = aggregate.OneCoin().fit(kept)
    kinds = "task string, worker string, label int, weight double"
    values = [tuple(None if pd.isna(v) else v for v in row) for row in rows.itertuples(index=False)]
    given = spark.createDataFrame(values, kinds).repartition(5)
    sparse = given.unionByName(given.where("false"))  # partitions without rows
    estimator = CrowdAggregator(aggregate.OneCoin(), weightCol="weight", distributionCol="")
    model = Pipeline(stages=[estimator]).fit(sparse)
    found = labels_of(model.transform(sparse))
    assert list(found) == ["label", "probability"]
    known = local.labels_.index
    assert found.loc[known, "label"].tolist() == local.labels_.tolist()
    assert_allclose(found.loc[known, "probability"], local.probas_.max(axis=1), rtol=1e-9)
    assert_allclose(found.loc[["new", "none"], "probability"], local.prior_.max(), rtol=1e-9)


def test_a_task_with_very_many_labels_and_a_worker_with_nearly_all(spark, votes):
    big = spark.range(100_000).selectExpr(
        "'big' AS task", "IF(id % 10 = 0, concat('w', id % 700), '0') AS worker",
        "id % 3 AS label",
    )  # fmt: skip
    rows = spark.createDataFrame(votes).union(big)
    local = aggregate.OneCoin().fit(as_pandas(rows))
    found = CrowdAggregator(aggregate.OneCoin()).fit(rows)
    assert_allclose(found.method.skills_, local.skills_, rtol=1e-9)


def test_a_pipeline_is_saved_and_comes_back(frame, tmp_path):
    pipeline = Pipeline(stages=[CrowdAggregator(aggregate.OneCoin(max_iter=3, tol=0), numRanks=1)])
    pipeline.save(str(tmp_path / "before"))
    again = Pipeline.load(str(tmp_path / "before")).getStages()[0]
    assert again.method.get_params() == pipeline.getStages()[0].method.get_params()
    assert again.getOrDefault("numRanks") == 1
    model = pipeline.fit(frame)
    model.save(str(tmp_path / "after"))
    expected, found = (
        labels_of(some.transform(frame))
        for some in (model, PipelineModel.load(str(tmp_path / "after")))
    )
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.usefixtures("spark")
def test_the_page_runs(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
    blocks = re.findall(r"```py\n(.*?)```", page, flags=re.S)
    assert blocks
    for block in blocks:  # Spark looks for files where it was started
        code = block.replace('"model"', repr(str(tmp_path / "model")))
        exec(compile(code, "spark.md", "exec"), {})


@pytest.mark.usefixtures("spark")
def test_the_command_line_labels_files(votes, tmp_path):
    path, out = tmp_path / "votes.parquet", tmp_path / "out"
    votes.rename(columns={"task": "item"}).to_parquet(path)
    options = ["--task", "item", "--method", "Wawa", "--quiet"]
    assert main(["aggregate", str(path), "--engine", "spark", "-o", str(out), *options]) == 0
    labels = pd.read_parquet(out / "labels").set_index("item")["label"]
    expected = aggregate.Wawa().fit(votes).labels_
    assert labels.loc[expected.index].tolist() == expected.tolist()
    assert len(pd.read_parquet(out / "workers")) == votes["worker"].nunique()


TEXTS = {
    "leading zeros": "01,a,x\n1,a,y\n2,b,x\n",
    "whole numbers": "1.0,7,1.0\n1,8,2\n2,7,NA\n",
    "quotes": '"a""b",7,"x,y"\nt,w7,x\n',
    "formulas": "'=1,'+b,x\n''=1,w,'@y\nt,-1.5,x\n",
    "formulas of others": "'=1,a,x\n=1,b,x\n",
    "words": "True,a,true\nNA,null,false\n",
    "a header among them": "1,a,x\ntask,worker,label\n1,b,y\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.filterwarnings("ignore:.*left out|.*taken as missing:UserWarning")
def test_promise_spark_text_is_read_by_the_same_rules(spark, tmp_path, text):
    path = tmp_path / "votes.csv"
    path.write_text(f"task,worker,label\n{text}")
    found = read_files(spark, str(path), {name: name for name in ("task", "worker", "label")})
    rows = [list(row) for row in found.where("label IS NOT NULL").collect()]
    expected = read(path).to_frame().to_numpy(dtype=object).tolist()
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))


@pytest.mark.parametrize("rows", ["1,a\n", "1,a,x,y\n", '"1\n2",a,x\n'])
def test_promise_spark_rows_unlike_the_header_are_refused(spark, tmp_path, rows):
    path = tmp_path / "votes.csv"
    path.write_text(f"task,worker,label\n1,a,x\n{rows}")
    with pytest.raises(FileError, match=r"not match the header of .*votes.csv(.|\n)*fix: "):
        read_files(spark, str(path), {name: name for name in ("task", "worker", "label")})


@pytest.mark.usefixtures("spark")
def test_promise_spark_weights_are_found_and_nothing_is_written_over(tmp_path, capsys):
    path, out = tmp_path / "votes.csv", tmp_path / "out"
    path.write_text("task,worker,label,Weight\n1,a,x,1\n1,b,y,5\n1,c,z,0\n2,a,x,1\n2,b,y,.1\n")
    words = ["aggregate", str(path), "--engine", "spark", "--method", "MajorityVote", "--quiet"]
    assert main([*words, "-o", str(out)]) == 0
    labels = pd.read_parquet(out / "labels").set_index("task")["label"]
    assert labels.to_dict() == {1: "y", 2: "x"}
    before = sorted(out.rglob("*"))
    assert main([*words, "-o", str(out)]) == 2
    assert "out/labels exists, and would be overwritten" in capsys.readouterr().err
    assert sorted(out.rglob("*")) == before
    path.write_text("task,worker,label,proba_x,proba_y\n1,a,x,.1,.9\n")
    assert main([*words, "-o", str(tmp_path / "other")]) == 1
    assert "Probabilities of classes cannot be fitted on Spark" in capsys.readouterr().err


def test_promise_10_on_spark_a_label_of_weight_zero_may_name_an_unknown_class(spark):
    columns = "task string, worker string, label string, weight double"
    rows = [("t", "a", "x", 1.0), ("t", "b", "y", 1.0), ("t", "c", "z", 0.0)]
    model = CrowdAggregator(aggregate.OneCoin(), weightCol="weight").fit(
        spark.createDataFrame(rows, columns)
    )
    found = labels_of(model.transform(spark.createDataFrame(rows, columns)))
    expected = labels_of(model.transform(spark.createDataFrame(rows[:2], columns)))
    pd.testing.assert_frame_equal(found, expected)


def test_what_cannot_be_read_is_one_clear_error(frame):
    def fit(rows, method=None, **params):
        return CrowdAggregator(method or aggregate.OneCoin(), **params).fit(rows)

    with pytest.raises(AnnotationError, match=r"(?s)no column for the item.*taskCol"):
        fit(frame, taskCol="item")
    with pytest.raises(AnnotationError, match=r"(?s)labels has the type map.*cast"):
        fit(frame.selectExpr("task", "worker", "map(1, label) AS label"))
    with pytest.raises(AnnotationError, match=r"(?s)task is missing in 1,\d+ of 1,\d+ .*dropna"):
        fit(frame.selectExpr("CAST(NULL AS string) AS task", "worker", "label"))
    with pytest.raises(AnnotationError, match=r"(?s)worker is missing in 1,\d+ of 1,.*dropna"):
        fit(frame.selectExpr("task", "CAST(NULL AS string) AS worker", "label"))
    with pytest.raises(AnnotationError, match=r"weight is missing, negative or infinite in 1,"):
        fit(frame.selectExpr("*", "-1 AS weight"), weightCol="weight")
    with pytest.raises(AnnotationError, match="several columns named 'worker'"):
        fit(frame.selectExpr("*", "label AS worker"))
    with pytest.raises(AnnotationError, match="no annotations"):
        fit(frame.where("false"))
    with pytest.raises(ParameterError, match="MMSR needs all annotations at once"):
        fit(frame, aggregate.MMSR())
    with pytest.raises(ParameterError, match=r"(?s)GLAD keeps a number for each task.*barrier"):
        fit(frame, aggregate.GLAD(), form="steps")
    with pytest.raises(ParameterError, match=r"(?s)BayesBag\(GLAD\(\)\) keeps.*every bag"):
        fit(frame, aggregate.BayesBag(aggregate.GLAD()))
    with pytest.raises(ParameterError, match="no parameter 'color'"):
        fit(frame, color=1)
    with pytest.raises(AnnotationError, match="works with two classes"):  # found out by a rank
        fit(frame, TwoClasses())
    model = fit(frame)
    with pytest.raises(AnnotationError, match=r"(?s)labels of this frame are text.*cast"):
        model.transform(frame.selectExpr("task", "worker", "CAST(label AS string) AS label"))


class TwoClasses(aggregate.DawidSkene):
    traits = aggregate.KOS.traits.__class__(binary_only=True)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc to find the executor in")
def test_an_executor_killed_in_the_middle_of_a_fit_changes_nothing(spark, votes, fitted, tmp_path):
    spark.stop()  # the last test of this file: executors that are processes take long to start
    spark = start("local-cluster[2,1,1024]")
    try:
        check_after_a_kill("executor", spark.createDataFrame(votes), fitted, tmp_path)
    finally:
        spark.stop()
