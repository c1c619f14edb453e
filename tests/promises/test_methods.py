"""What docs/promises.md says of methods, one test or more for each promise."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from crowdwise import Annotations, aggregate, embed, evaluate, learn, load, memory, plan
from crowdwise.cli.options import KINDS, find_parts, make_method, method_names
from crowdwise.errors import AnnotationError, FormatError, ParameterError
from crowdwise.inference import CompactPosterior, MemoryEngine
from crowdwise.laws import AGGREGATOR_LAWS, EMBEDDER_LAWS, LEARNER_LAWS
from crowdwise.laws.quick import quick
from crowdwise.persist.container import Content, read_container, write_container
from crowdwise.simulate import confused_crowd, one_coin_confusion

WEIGHTLESS = "labels_of_weight_zero_teach_nothing"


@pytest.fixture
def crowd():
    """Workers from good to bad, three labels a task."""
    confusion = one_coin_confusion(np.linspace(0.9, 0.5, 10), 3)
    return confused_crowd(confusion, 80, 3, random_state=0).annotations


@pytest.mark.parametrize("method", ["MMSR", "MACE", "MinimaxEntropy", "OrdinalMinimaxEntropy"])
def test_promise_10_a_newcomer_of_weight_zero_moves_no_probability(method, crowd):
    frame = crowd.to_frame().assign(weight=1.0)
    newcomer = frame.head(1).assign(worker=99, label=2, weight=0.0)
    frame = pd.concat([frame, newcomer], ignore_index=True)
    params = {"random_state": 0} if method != "MMSR" else {}
    alone, beside = (
        getattr(aggregate, method)(**params).fit(table).probas_ for table in (crowd, frame)
    )
    assert_array_equal(beside.index, alone.index)
    assert_allclose(beside, alone, atol=1e-9)


@pytest.mark.parametrize("laws", [AGGREGATOR_LAWS, LEARNER_LAWS, EMBEDDER_LAWS])
def test_promise_10_is_a_law(laws):
    assert [law.__name__ for law in laws].count(WEIGHTLESS) == 1


def test_promise_10_a_label_of_weight_zero_may_name_an_unknown_class(crowd):
    model = aggregate.DawidSkene().fit(crowd)
    weight = np.append(np.ones(crowd.n_annotations - 1), 0.0).astype(np.float32)
    label = crowd.label.copy()
    label[-1] = 3
    strange = replace(crowd, label=label, weight=weight, classes=np.append(crowd.classes, 9))
    kept = crowd.filter(weight > 0)
    assert_allclose(model.predict_proba(strange), model.predict_proba(kept))


@pytest.mark.parametrize("method", ["DawidSkene", "OneCoin", "BayesBag"])
def test_promise_10_many_newcomers_of_weight_zero_stop_no_fit_earlier(method, crowd):
    make, frame = getattr(aggregate, method), crowd.to_frame().assign(weight=1.0)
    newcomers = [frame.iloc[[i % len(frame)]].assign(worker=100 + i) for i in range(2000)]
    frame = pd.concat([frame, *[rows.assign(weight=0.0) for rows in newcomers]])
    params = {"n_bags": 3} if method == "BayesBag" else {}
    alone, beside = make(**params).fit(crowd), make(**params).fit(frame)
    assert_allclose(beside.probas_, alone.probas_, atol=1e-9)


def test_promise_10_who_has_no_label_that_counts_is_unknown(crowd, tmp_path):
    votes = replace(crowd, workers=np.array([f"w{i}" for i in range(crowd.n_workers)]))
    first = votes.filter(votes.worker != 3)  # the name stays
    model = aggregate.CATD().fit(first)
    anew = replace(votes, workers=np.where(np.arange(votes.n_workers) == 3, "new", votes.workers))
    assert_allclose(model.predict_proba(votes), model.predict_proba(anew))
    with pytest.raises(AnnotationError, match="w3"):
        model.predict_proba(votes, unknown_workers="error")
    model.save(tmp_path / "model")
    assert_allclose(load(tmp_path / "model").predict_proba(votes), model.predict_proba(votes))
    for value in (99, -1):
        forge(tmp_path / "model", "idle_", lambda idle, value=value: np.full_like(idle, value))
        with pytest.raises(FormatError, match="idle_"):
            load(tmp_path / "model")
    assert "idle_" not in vars(model.fit(votes))


@pytest.fixture
def beside(crowd):
    """The same crowd with labels of weight 0: of known workers, and of one who gives no other."""
    votes = crowd.to_frame().assign(weight=1.0)
    idle = votes.head(3).assign(weight=0.0, label=[2, 0, 1])
    newcomer = votes.iloc[[5, 9]].assign(worker=99, weight=0.0)
    return Annotations.from_frame(pd.concat([idle, newcomer, votes]), weight="weight")


@pytest.mark.parametrize("policy", ["LeastConfident", "FewestLabels", "InformationGain"])
def test_promise_10_a_label_of_weight_zero_changes_no_plan(policy, crowd, beside):
    plans = [
        plan.Planner(policy=getattr(plan, policy)()).next(votes, 9, available=[0, 1, 2])
        for votes in (crowd, beside)
    ]
    pd.testing.assert_frame_equal(*plans)
    given = np.full((crowd.n_tasks, crowd.n_classes), 1 / crowd.n_classes)
    seen = [plan.Planner().take(votes, given).outlook_.n_labels for votes in (crowd, beside)]
    assert_array_equal(*seen)


def test_promise_10_a_panel_is_assessed_without_labels_of_weight_zero(crowd, beside):
    gold = dict(enumerate([0, 1, 2] * 10))
    for known in (None, gold):
        alone = evaluate.assess_panel(crowd, known)
        with pytest.warns(UserWarning, match=r"1 judge without a label left out: 99(.|\n)*fix: "):
            found = evaluate.assess_panel(beside, known)
        pd.testing.assert_frame_equal(found.judges, alone.judges)
        assert found.dependence.effective_number.value == pytest.approx(
            alone.dependence.effective_number.value
        )
        assert found.estimate.value == pytest.approx(alone.estimate.value)


def test_promise_10_judges_who_only_declined_are_left_out(crowd):
    about = pd.DataFrame({"family": list("abcdefghij")}, index=crowd.workers)
    asked = np.array([[0, 3], [1, 4]], dtype=np.int32)
    some = replace(crowd.with_workers(about).filter(crowd.worker != 3), declined=asked)
    with pytest.warns(UserWarning, match="1 judge without a label"):
        found = evaluate.assess_panel(some)
    assert found.judges.index.tolist() == [0, 1, 2, *range(4, 10)]
    assert found.judges["family"].tolist() == list("abcefghij")
    assert found.judges["declined"].to_dict()[4] == pytest.approx(1 / crowd.n_tasks)
    assert found.judges["skill"].between(-5, 5).all()


@pytest.mark.parametrize("keep", ["first", "last", "majority"])
def test_promise_10_a_repeat_of_weight_zero_replaces_no_label(keep):
    rows = [("t", "w", "a", 0), ("t", "w", "b", 1), ("t", "w", "a", 0), ("u", "w", "a", 0)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label", "weight"])
    found = Annotations.from_frame(frame, weight="weight", repeats=keep).to_frame()
    assert found[["task", "label", "weight"]].to_numpy().tolist() == [["t", "b", 1], ["u", "a", 0]]


# -- 18: models that a file should not hold ----------------------------------------------------


def forge(path, name, change):
    """Write a model again with one array changed, and the checksum that goes with it."""
    content = read_container(path)
    arrays = {key: array.copy() for key, array in content.arrays.items()}
    arrays[name] = change(arrays[name])
    write_container(path, Content(content.text, arrays))


def spoil(value):
    def change(array):
        array.reshape(-1)[1] = value
        return array

    return change


def saved(kind, crowd, path):
    """One small model of a kind, in a file."""
    if kind == "aggregator":
        aggregate.EBCC().fit(crowd).save(path)
        return "confusion_"
    X = np.random.default_rng(0).normal(size=(crowd.n_tasks, 2))
    if kind == "learner":
        quick(learn.SpeeLFC()).fit(X, crowd).save(path)
        return "net_.noise.raw.weight"
    part = aggregate.DawidSkene() if kind == "part" else None
    quick(embed.Triplet(aggregator=part)).fit(X, crowd).save(path)
    return "posterior_" if part is None else "aggregator_.posterior_"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["aggregator", "learner", "embedder", "part"])
def test_promise_18_a_model_with_numbers_that_are_none_is_refused(kind, value, crowd, tmp_path):
    name = saved(kind, crowd, tmp_path / "model")
    forge(tmp_path / "model", name, spoil(value))
    with pytest.raises(FormatError, match=rf"{name} are not finite: {value}"):
        load(tmp_path / "model")


@pytest.mark.parametrize("kind", ["aggregator", "embedder", "part"])
@pytest.mark.parametrize("change", [lambda array: 0.9 * array, lambda array: 2.0 * array - 0.5])
def test_promise_18_probabilities_that_are_none_are_refused(kind, change, crowd, tmp_path):
    name = saved(kind, crowd, tmp_path / "model")
    forge(tmp_path / "model", name, change)
    with pytest.raises(FormatError, match=r"sums to 1|holds probabilities"):
        load(tmp_path / "model")


@pytest.mark.parametrize("method", ["DawidSkene", "IBCC"])
@pytest.mark.parametrize("change", [lambda counts: counts - counts.max() - 1, spoil(np.nan)])
def test_promise_18_counts_that_are_none_are_refused(method, change, crowd, tmp_path):
    getattr(aggregate, method)().fit(crowd).save(tmp_path / "model")
    forge(tmp_path / "model", "belief_.counts", change)
    with pytest.raises(FormatError, match="counts"):
        load(tmp_path / "model")


def test_promise_18_weights_of_bags_below_0_are_refused(crowd, tmp_path):
    aggregate.BayesBag(n_bags=2).fit(crowd).save(tmp_path / "model")
    forge(tmp_path / "model", "weights_", lambda weights: -weights)
    with pytest.raises(FormatError, match="weights below 0"):
        load(tmp_path / "model")


CHANGES = {
    "short": lambda array: array[:-1],
    "narrow": lambda array: np.ascontiguousarray(array[..., :-1]),
    "deep": lambda array: array[None],
    "complex": lambda array: array.astype(np.complex64),
    "huge": lambda array: np.full(array.shape, 1e308),
    "far": lambda array: np.full_like(array, 120),
}
FREE = {"tasks_", "workers_", "classes_", "families_", "class_prior"}  # names, and a parameter


@pytest.mark.parametrize("method", aggregate.__all__)
def test_promise_18_an_array_of_another_shape_or_type_is_refused(method, crowd, tmp_path):
    model = getattr(aggregate, method)(**({"n_bags": 2} if method == "BayesBag" else {}))
    if model.traits.binary_only:
        crowd = replace(crowd.filter(crowd.label < 2), classes=np.arange(2))
    path = tmp_path / "model"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(crowd).save(path)
    sound = read_container(path)
    learned = {name: array for name, array in sound.arrays.items() if not FREE & {*name.split(".")}}
    assert learned
    for name, array in learned.items():
        for kind, change in CHANGES.items():
            if array.dtype.kind in {"huge": "iu", "far": "f"}.get(kind, "") or not array.size:
                continue
            write_container(path, Content(sound.text, {**sound.arrays, name: change(array)}))
            try:
                load(path)
            except FormatError:
                continue
            pytest.fail(f"{name} {array.shape} {kind} was loaded")


@pytest.mark.parametrize(
    ("method", "place", "value"),
    [
        ("DawidSkene", ("learned", "belief_"), 5),
        ("DawidSkene", ("learned", "belief_"), None),
        ("GLAD", ("params", "ease_prior", "items", 0), "x"),
        ("OneCoin", ("learned", "ledger_", "fields", "items", 8, 1), "x"),
    ],
)
def test_promise_18_a_model_of_labels_that_was_loaded_can_be_used(
    method, place, value, crowd, tmp_path
):
    path, model = tmp_path / "model", getattr(aggregate, method)()
    (model.update(crowd) if method == "OneCoin" else model.fit(crowd)).save(path)
    sound = read_container(path)
    tree = json.loads(sound.text)
    inner = tree
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    write_container(path, Content(json.dumps(tree), sound.arrays))
    with pytest.raises(FormatError):
        load(path)


def test_promise_18_workers_who_are_never_right_are_refused(crowd, tmp_path):
    aggregate.OneCoin().fit(crowd).save(tmp_path / "model")
    forge(tmp_path / "model", "accuracy_", np.zeros_like)
    with pytest.raises(FormatError, match="no finite numbers"):
        load(tmp_path / "model")


@pytest.mark.parametrize(
    "make",
    [
        learn.AutoClassifier,
        learn.ClusteredPersonalClassifier,
        learn.CoNAL,
        learn.CrowdLab,
        learn.Raykar,
        embed.RLL,
    ],
)
def test_promise_18_a_model_that_was_loaded_can_be_used(make, crowd, tmp_path):
    """Whatever array of the file is changed: it is refused, or the model answers as it should."""
    path, X = tmp_path / "model", np.random.default_rng(0).normal(size=(80, 2)).astype(np.float32)
    model = quick(make())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, crowd).save(path)
    sound, refused = read_container(path), 0
    use = "predict_proba" if hasattr(model, "predict_proba") else "transform"
    expected = getattr(model, use)(X).shape
    for name, array in sound.arrays.items():
        for kind in ("short", "narrow", "deep"):
            changed = np.asarray(CHANGES[kind](array))
            write_container(path, Content(sound.text, {**sound.arrays, name: changed}))
            try:
                loaded = load(path)
            except FormatError:
                refused += 1
                continue
            found = getattr(loaded, use)(X)
            assert np.isfinite(found).all(), (name, kind)
            assert found.shape == expected, (name, kind)
    assert refused > len(sound.arrays) / 2


@pytest.mark.parametrize("change", [np.zeros_like, np.ones_like])
def test_promise_18_answers_that_are_no_probabilities_are_refused(change, crowd, tmp_path):
    X = np.random.default_rng(0).normal(size=(crowd.n_tasks, 2))
    learn.TwoStage().fit(X, crowd).save(tmp_path / "model")
    forge(tmp_path / "model", "classifier_.steps.1.1.classes_", change)
    with pytest.raises(FormatError, match="no probabilities for new tasks"):
        load(tmp_path / "model")


def test_promise_18_an_engine_refuses_tables_that_do_not_fit(crowd):
    engine, k = MemoryEngine(crowd), crowd.n_classes
    right = np.zeros((len(engine.pairs), k))
    for prior, table in (
        (np.zeros(k - 1), right),
        (np.zeros(0), right[:, :0]),
        (np.zeros(k), right[:-1]),
        (np.zeros(k), right[:, :-1]),
    ):
        for use in (engine.sweep_pairs, engine.pair_posterior):
            with pytest.raises(ParameterError, match="Tables do not match"):
                use(prior, table)
    with pytest.raises(ParameterError, match="Tables do not match"):
        engine.coin_posterior(np.zeros(k + 1), np.zeros(10), np.zeros(10))


def test_promise_18_a_ledger_that_names_nobody_is_refused(crowd, tmp_path):
    path = tmp_path / "model"
    for name, change in {
        "worker": lambda array: array + 5,
        "gold": lambda array: array + 9,
        "posterior": lambda array: array - 1.0,
        "weight": lambda array: -array,
        "label": lambda array: array + 0.5,
    }.items():
        aggregate.DawidSkene().update(crowd).save(path)
        forge(path, f"ledger_.{name}", change)
        with pytest.raises(FormatError, match="ledger"):
            load(path)


def test_promise_18_a_single_number_that_is_none_is_refused(crowd, tmp_path):
    model = aggregate.MinimaxEntropy().fit(crowd)
    model.regularization_ = np.nan
    model.save(tmp_path / "model")
    with pytest.raises(FormatError, match="regularization_ is nan"):
        load(tmp_path / "model")


def test_promise_17_a_forged_compact_model_is_refused(crowd, monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "LARGE", 0)
    aggregate.Wawa().fit(crowd).save(tmp_path / "model")
    assert isinstance(load(tmp_path / "model").posterior_, CompactPosterior)
    forge(tmp_path / "model", "posterior_.value", lambda value: 1.1 * value)
    with pytest.raises(FormatError, match="sums to 1"):
        load(tmp_path / "model")


# -- 19: aggregators in scikit-learn's hands ---------------------------------------------------


@pytest.fixture
def known():
    """A crowd with names, and the truths in the order of its tasks."""
    made = confused_crowd(one_coin_confusion(np.linspace(0.9, 0.4, 8), 3), 90, 4, random_state=1)
    names = np.array([f"task-{i}" for i in range(90)], dtype=object)
    return replace(made.annotations, tasks=names), np.asarray(made.truth)


@pytest.mark.parametrize("method", aggregate.__all__)
def test_promise_19_every_aggregator_scores_and_is_cross_validated(method, known):
    votes, truth = known
    model = getattr(aggregate, method)()
    if model.traits.binary_only:
        votes = replace(votes.filter(votes.label < 2), classes=np.arange(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "(?s).*of an unknown class", UserWarning)
        gold = np.where(truth < votes.n_classes, truth, -1)
        found = cross_val_score(model, votes, gold, cv=3, error_score="raise")
    assert ((found > 0.5) & (found <= 1.0)).all()


def test_promise_19_the_score_is_the_accuracy_of_new_tasks(known):
    votes, truth = known
    model, rest = aggregate.DawidSkene().fit(votes[:60], truth[:60]), votes[60:]
    expected = np.mean(model.predict(rest).to_numpy() == truth[60:])
    by_name = pd.Series(truth, index=votes.tasks).sample(frac=1, random_state=0)
    for form in (truth[60:], by_name, by_name.to_dict()):
        assert model.score(rest, form) == pytest.approx(expected)
    assert model.score(rest.to_frame(), by_name) == pytest.approx(expected)
    assert model.score(replace(rest, gold=truth[60:].astype(np.int32))) == pytest.approx(expected)
    found = cross_val_score(aggregate.DawidSkene(), votes, truth, cv=[(range(60), range(60, 90))])
    assert found == pytest.approx([expected])


def test_promise_19_ties_count_in_part_and_unknown_truths_not_at_all():
    votes = [[0, 1, -1], [0, 0, 0], [1, 1, 0], [0, -1, 1]]
    model = aggregate.MajorityVote().fit(votes)
    assert model.score(votes, [0, 0, 1, -1]) == pytest.approx(2.5 / 3)
    assert model.score(votes, pd.Series([0, None, 0, None])) == pytest.approx(0.25)
    with pytest.warns(UserWarning, match="all predictions for them are wrong"):
        assert model.score(votes, [0, 7, 1, -1]) == pytest.approx(1.5 / 3)


def test_promise_19_a_grid_finds_the_better_setting(known):
    votes, truth = known
    grid = {"smoothing": [(0.1, 1e6), (1.0, 0.5)]}  # by the first one, all workers lie
    search = GridSearchCV(aggregate.OneCoin(), grid, cv=3).fit(votes, truth)
    assert search.best_params_ == {"smoothing": (1.0, 0.5)}
    assert search.score(votes, truth) == search.best_estimator_.score(votes, truth)
    assert_array_equal(search.predict(votes), search.best_estimator_.predict(votes))
    by_name = cross_val_score(aggregate.OneCoin(), votes, truth, cv=3, scoring="accuracy")
    assert_allclose(by_name, cross_val_score(aggregate.OneCoin(), votes, truth, cv=3), atol=0.05)


def test_promise_19_without_truths_there_is_no_score(known):
    with pytest.raises(AnnotationError, match=r"no truths(.|\n)*truths as y"):
        aggregate.MajorityVote().fit(known[0]).score(known[0])


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("GenerativeModel", {"initial_weight": 1e6}),
        ("LabelModel", {"learning_rate": 1e15}),
        ("DawidSkene", {"smoothing": 1e300}),
        ("MajorityVote", {"weights": [np.nan] * 10}),
        ("MajorityVote", {"weights": dict.fromkeys(range(10), -1)}),
    ],
)
def test_promise_20_settings_beyond_arithmetic_are_refused(method, settings, crowd):
    with pytest.raises(ValueError, match=r"parameter of|not numbers|diverged|cannot be used"):
        getattr(aggregate, method)(**settings).fit(crowd)


@pytest.mark.parametrize("kind", KINDS)
def test_promise_20_every_parameter_says_what_it_may_be(kind):
    for name in method_names(kind):
        model = make_method(name, {}, None, kind)
        for owner in (model, *find_parts(model).values()):
            assert owner.get_params(deep=False).keys() <= owner._parameter_constraints.keys(), name


@pytest.mark.parametrize("settings", [{"off_diagonal": 0}, {"diagonal": 5, "off_diagonal": 1}])
def test_promise_20_whole_numbers_are_numbers(settings, crowd):
    X = np.random.default_rng(0).normal(size=(crowd.n_tasks, 2))
    once = learn.Training(epochs=1)
    for method in (learn.SpeeLFC, learn.TraceReg):
        assert method(training=once, **settings).fit(X, crowd).predict_proba(X).shape
    assert learn.SpeeLFCD(training=once, skill=1).fit(X, crowd).predict_proba(X).shape
