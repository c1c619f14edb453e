"""Tasks out and labels in: leases, repeated requests, and what cannot be."""

import threading
import time

import numpy as np
import pytest

from crowdwise.serve import Service, desk
from crowdwise.serve.actions import AddLabels, AddTasks, SkipTask, TakeTask, WithdrawLabel
from crowdwise.serve.desk import Desk
from crowdwise.serve.draft import Draft, RefusedError
from crowdwise.serve.offers import Offers


def label(service, worker, task, name="cat", **more):
    return service.ask(AddLabels(worker, [(task, worker, name)], **more))


def take(service, worker):
    return service.ask(TakeTask(worker))["task"]


def test_two_people_do_not_get_the_same_last_label(service, begin):
    begin(service, tasks=[], min_labels=1)
    crowd = [f"w{i}" for i in range(6)]
    assert sorted(take(service, worker) for worker in crowd) == [f"t{i}" for i in range(6)]
    assert take(service, "late") is None


def test_asking_again_gives_the_same_task(service):
    assert take(service, "ann") == take(service, "ann") == "t0"


def test_as_many_get_a_task_as_it_needs_labels(service):
    assert [take(service, worker) for worker in "abc"] == ["t0", "t0", "t1"]


def test_a_lease_that_runs_out_is_free_for_others(service, begin, monkeypatch):
    begin(service, tasks=[], min_labels=1, lease=60)
    assert take(service, "ann") == "t0"
    assert take(service, "bob") == "t1"
    monkeypatch.setattr(desk, "Draft", lambda board: Draft(board, now=time.monotonic() + 61))
    assert take(service, "cid") == "t0"
    # Ann comes late; her work is not lost.
    assert label(service, "ann", "t0", offered_only=True) == {"stored": 1, "known": 0}


def test_a_clock_that_jumps_ends_no_lease(service, monkeypatch, begin):
    begin(service, tasks=[], min_labels=1)
    assert take(service, "ann") == "t0"
    for shift in (1e9, -1e9):
        monkeypatch.setattr(time, "time", lambda by=shift: 1.7e9 + by)
        assert take(service, "ann") == "t0"
        assert take(service, f"other {shift}") != "t0"


def test_what_was_labeled_or_skipped_is_not_offered_again(service):
    seen = []
    while (task := take(service, "ann")) is not None:
        seen.append(task)
        label(service, "ann", task) if len(seen) % 2 else service.ask(SkipTask("ann", task))
    assert sorted(seen) == [f"t{i}" for i in range(6)]


def test_a_label_that_is_sent_twice_counts_once(service):
    assert label(service, "ann", "t0") == {"stored": 1, "known": 0}
    assert label(service, "ann", "t0") == {"stored": 0, "known": 1}
    assert service.board.annotations().n_annotations == 1


def test_another_label_of_the_same_task_is_refused(service):
    label(service, "ann", "t0", "cat")
    with pytest.raises(RefusedError, match="already labeled the task 't0', as 'cat'") as caught:
        label(service, "ann", "t0", "dog")
    assert caught.value.status == 409


def test_a_batch_is_stored_whole_or_not_at_all(service):
    rows = [("t0", "ann", "cat"), ("t1", "ann", "eel")]
    with pytest.raises(RefusedError, match="'eel' is not a class"):
        service.ask(AddLabels("lead", rows))
    with pytest.raises(RefusedError, match=r"already labeled the task .*, as 'cat'"):
        service.ask(AddLabels("lead", [("t0", "ann", "cat"), ("t0", "ann", "dog")]))
    assert service.board.annotations().n_annotations == 0


def test_a_withdrawn_label_is_in_the_log_and_does_not_count(service, wait_for):
    label(service, "ann", "t0", "cat")
    label(service, "bob", "t0", "dog")
    service.ask(WithdrawLabel("ann", "ann", "t0"))
    assert service.board.annotations().to_dict()["t0"] == {"bob": "dog"}
    assert take(service, "ann") == "t0"
    assert label(service, "ann", "t0", "dog") == {"stored": 1, "known": 0}
    service.ask(WithdrawLabel("ann", "ann", "t0"))
    label(service, "ann", "t0", "cat")
    assert service.board.annotations().to_dict()["t0"] == {"ann": "cat", "bob": "dog"}
    wait_for(lambda: service.observer.standing.seq == service.board.seq)
    assert service.observer.standing.given.tolist() == [1, 1]


def test_the_live_model_follows_and_done_tasks_rest(service, begin, wait_for):
    begin(service, tasks=[(f"u{i}", {}) for i in range(40)])
    rows = [(f"u{i}", w, "cat" if i % 3 else "dog") for i in range(40) for w in "abcd"]
    service.ask(AddLabels("lead", rows))
    wait_for(lambda: service.observer.plan.n_labels == 160)
    standing = service.observer.standing
    assert standing.posterior[6:].argmax(axis=1).tolist() == [0 if i % 3 else 1 for i in range(40)]
    assert service.observer.plan.done[6:].all()
    assert take(service, "new") == "t0"  # a task without labels, none that is done


def test_the_live_model_follows_where_the_desk_is_slow_to_open(
    address, begin, wait_for, monkeypatch
):
    def open_slowly(*parts):
        time.sleep(0.2)
        return Desk(*parts)

    monkeypatch.setattr("crowdwise.serve.observer.POLL", 0.01)
    monkeypatch.setattr("crowdwise.serve.service.Desk", open_slowly)
    with Service(address) as service:
        label(begin(service), "ann", "t0")
        wait_for(lambda: service.observer.plan.n_labels == 1)


def test_known_truths_are_mixed_in(service, begin):
    begin(service, tasks=[], checks=0.5)
    service.ask(AddTasks("lead", [], [("t4", "cat"), ("t5", "dog")]))
    seen = []
    while (task := take(service, "ann")) is not None:
        seen.append(task)
        label(service, "ann", task)
    assert seen == ["t0", "t4", "t1", "t5", "t2", "t3"]


def test_a_restart_remembers_labels_leases_and_answers(service, address, begin):
    begin(service, tasks=[], min_labels=1)
    take(service, "ann")
    label(service, "bob", "t3", "dog")
    answer = service.ask(AddLabels("lead", [("t1", "cid", "cat")]), "key")
    service.close()
    with Service(address) as again:
        assert again.board.annotations().to_dict()["t3"] == {"bob": "dog"}
        assert take(again, "late") == "t2"
        assert take(again, "ann") == "t0"
        assert again.ask(AddLabels("lead", [("t1", "cid", "cat")]), "key") == answer


def test_a_key_is_for_one_request(service):
    first = service.ask(AddLabels("lead", [("t0", "ann", "cat")]), "key")
    assert first == {"stored": 1, "known": 0}
    assert service.ask(AddLabels("lead", [("t0", "ann", "cat")]), "key") == first
    with pytest.raises(RefusedError, match="used for another request"):
        service.ask(AddLabels("lead", [("t1", "ann", "cat")]), "key")


def test_many_threads_at_once_lose_and_double_nothing(service, begin):
    begin(service, tasks=[(f"n{i}", {}) for i in range(60)], min_labels=3, max_labels=3)

    def work(worker):
        while (task := take(service, worker)) is not None:
            label(service, worker, task, "dog", offered_only=True)

    crowd = [threading.Thread(target=work, args=(f"w{i}",)) for i in range(6)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    votes = service.board.annotations()
    assert votes.n_repeats == 0
    assert votes.redundancy.tolist() == [3] * 66


def test_what_is_on_offer_is_kept_up_to_date_task_by_task(service, begin):
    begin(service, tasks=[(f"u{i}", {}) for i in range(30)], max_labels=3, lease=0.05)
    rng, board = np.random.default_rng(0), service.board
    for step in range(120):
        worker = f"w{rng.integers(5)}"
        task = take(service, worker)
        if task is None or rng.random() < 0.2:
            continue  # the lease runs out
        if rng.random() < 0.1:
            service.ask(SkipTask(worker, task))
            continue
        label(service, worker, task)
        if rng.random() < 0.2:
            service.ask(WithdrawLabel(worker, worker, task))
        if step % 30 == 0:
            service.ask(AddTasks("lead", [], [(f"u{step // 30}", "dog")]))
            board.judge(gain=rng.random(20), done=rng.random(25) < 0.2)
        with board.lock:
            board.leases.expire(time.monotonic())
            kept = board.offers.worth.copy()
            board.judge()
            assert np.array_equal(kept, board.offers.worth)


def test_a_worker_who_has_seen_the_best_gets_the_next_best():
    offers = Offers()
    offers.rank(np.arange(100.0))
    assert offers.find_best({99}, {98, 97}) == 96
    assert offers.find_best(set(range(10, 100))) == 9  # more than are tried one by one
    assert offers.find_best(set(range(100))) is None
    offers.set(3, 200.0)
    offers.set(120, -np.inf)
    assert offers.find_best({99}) == 3
