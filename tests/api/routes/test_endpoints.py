import pytest

from payrelay.api.requests.body import parse_body
from payrelay.api.routes.endpoints import ChangeEndpointBody, NewEndpointBody, ReplayBody
from payrelay.core.events.delivery import EndpointState
from payrelay.errors import Refusal
from payrelay.flows.events.manage_endpoints import Changes, NewEndpoint, ReplayedEvents


def test_an_endpoint_is_asked_for_with_little() -> None:
    """An address is enough: then it gets everything."""
    assert parse_body(b'{"url":"https://a.example/"}', NewEndpointBody).call() == NewEndpoint(url="https://a.example/")
    full = parse_body(b'{"url":"https://a.example/","types":["customer.*"],"label":"x"}', NewEndpointBody).call()
    assert full == NewEndpoint(url="https://a.example/", types=("customer.*",), label="x")


def test_a_change_names_what_changes() -> None:
    """A label is taken away with null; what is not there stays."""
    assert parse_body(b"{}", ChangeEndpointBody).call() == Changes()
    changes = parse_body(b'{"label":null,"state":"paused","types":["*"]}', ChangeEndpointBody).call()
    assert changes == Changes(label=None, state=EndpointState.PAUSED, types=("*",))


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b'{"state":"asleep"}', "state"),
        (b'{"url":""}', "url"),
        (b'{"types":"*"}', "types"),
        (b'{"secret":"x"}', "secret"),
    ],
)
def test_what_is_wrong_with_a_change_is_named(body: bytes, path: str) -> None:
    """Field by field."""
    with pytest.raises(Refusal) as refused:
        parse_body(body, ChangeEndpointBody)
    assert [field.path for field in refused.value.fields] == [path]


def test_a_replay_is_of_ids_or_of_a_span() -> None:
    """In whatever time zone the moments are written."""
    assert parse_body(b'{"ids":["evt_1"]}', ReplayBody).call() == ReplayedEvents(ids=("evt_1",))
    span = parse_body(b'{"since":"1970-01-01T05:30:01+05:30","until":"1970-01-01T00:00:02Z"}', ReplayBody).call()
    assert span == ReplayedEvents(from_ms=1_000, until_ms=2_000)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b"{}", "since"),
        (b'{"until":"2026-01-01T00:00:00Z"}', "since"),
        (b'{"ids":[]}', "ids"),
        (b'{"ids":["evt_1"],"since":"2026-01-01T00:00:00Z"}', "ids"),
        (b'{"since":"yesterday"}', "since"),
        (b'{"since":"2026-01-01T00:00:00"}', "since"),
        (b'{"since":"2026-01-01T00:00:00Z","until":"2026-99-01T00:00:00Z"}', "until"),
    ],
)
def test_what_is_wrong_with_a_replay_is_named(body: bytes, path: str) -> None:
    """A moment without a time zone is a guess."""
    with pytest.raises(Refusal) as refused:
        parse_body(body, ReplayBody).call()
    assert [field.path for field in refused.value.fields] == [path]
