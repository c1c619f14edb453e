"""Webhooks: signed, verified, sent until they are taken, handled once."""

import json
import time

import pytest

from crowdwise.connect import webhooks
from crowdwise.connect.link import ConnectError
from crowdwise.connect.webhooks import Inbox, SignatureError, Webhook, sign, verify
from crowdwise.errors import FormatError, ParameterError

SECRET = "a secret of 24 characters"
NOW = 1_700_000_000.0
BODY = b'{"event": "done", "data": {"task": "t1"}}'


def test_a_signature_is_that_of_the_body_and_the_time():
    verify(SECRET, BODY, sign(SECRET, BODY, NOW), now=NOW + 200)


@pytest.mark.parametrize(
    ("body", "signature", "now"),
    [
        (BODY + b" ", sign(SECRET, BODY, NOW), NOW),
        (BODY, sign("another secret, as long", BODY, NOW), NOW),
        (BODY, sign(SECRET, BODY, NOW), NOW + 301),
        (BODY, sign(SECRET, BODY, NOW), NOW - 301),
        (BODY, sign(SECRET, BODY, NOW).replace("t=1700000000", "t=1700000001"), NOW),
        (BODY, sign(SECRET, BODY, NOW) + "0", NOW),
        (BODY, "", NOW),
        (BODY, "t=,v1=", NOW),
        (BODY, "t=²,v1=é", NOW),
        (BODY, "t=" + "9" * 5000 + ",v1=00", NOW),
    ],
)
def test_anything_else_is_refused(body, signature, now):
    with pytest.raises(SignatureError, match="signature of the request"):
        verify(SECRET, body, signature, now)


def test_a_short_secret_is_refused():
    for make in (lambda: Webhook("http://host", "short"), lambda: Inbox("short", print)):
        with pytest.raises(ParameterError, match="token_urlsafe") as caught:
            make()
        assert "short" not in str(caught.value)


class Fake:
    """A link that loses some answers, and hands requests to an inbox."""

    lose = 0

    def __init__(self, _, headers, **__):
        self.headers = headers

    def ask(self, method, path, body, again):
        assert again
        for _ in range(Fake.lose + 1):
            Fake.inbox.take(json.dumps(body).encode(), self.headers())


def test_an_event_that_is_sent_again_is_handled_once(monkeypatch):
    heard = []
    monkeypatch.setattr(webhooks, "Link", Fake)
    Fake.inbox, Fake.lose = Inbox(SECRET, lambda event, data: heard.append((event, data))), 2
    hook = Webhook("http://host", SECRET)
    assert hook.send("done", {"task": "t1"}, key="k1") == "k1"
    hook.send("done", {"task": "t1"}, key="k2")  # the same words, another event
    assert heard == [("done", {"task": "t1"})] * 2


def test_promise_connect_a_request_that_was_overheard_is_handled_once():
    heard = []
    inbox = Inbox(SECRET, lambda event, data: heard.append((event, data)))
    body = b'{"event": "done", "data": 1, "key": "k1"}'
    signature = {"Crowdwise-Signature": sign(SECRET, body, time.time())}
    assert inbox.take(body, signature | {"Idempotency-Key": "k1"})
    assert not inbox.take(body, signature | {"Idempotency-Key": "another"})
    assert not inbox.take(body, signature)
    assert heard == [("done", 1)]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"event": 1, "data": 2}', b'{"event": "x"}', b"[" * 100_000]
)
def test_promise_connect_a_signed_body_that_is_no_event_is_refused(body):
    with pytest.raises(FormatError, match="does not name an event"):
        Inbox(SECRET, print).take(body, {"Crowdwise-Signature": sign(SECRET, body, time.time())})


def test_an_event_that_could_not_be_handled_may_come_again():
    heard = []

    def handle(event, _):
        heard.append(event)
        if len(heard) == 1:
            raise ConnectError("not now")

    inbox = Inbox(SECRET, handle)
    headers = {"crowdwise-signature": sign(SECRET, BODY, time.time())}
    with pytest.raises(ConnectError):
        inbox.take(BODY, headers)
    assert inbox.take(BODY, headers)
    assert not inbox.take(BODY, headers)
    assert heard == ["done", "done"]
