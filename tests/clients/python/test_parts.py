"""The parts of the Python client that need no service: numbers, keys, limits, stores and webhooks."""

import ast
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

import payrelay_client
from payrelay_client import (
    FileStore,
    InvalidAmount,
    Limits,
    SqliteStore,
    SqlStore,
    Store,
    StoreFailed,
    WebhookRefused,
    amount_of_minor_units,
    exact_json,
    keys,
    minor_units,
    verify_webhook,
)
from payrelay_client.limits import Budget
from payrelay_client.models import OperationDetail
from payrelay_client.replies import Reply, next_cursor, read_reply, seconds_of
from payrelay_client.wire import fields_of

pytestmark = pytest.mark.unit

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
EVENT = b'{"id": "evt_1", "type": "operation.succeeded", "data": {"amount": "345.67"}}'

amounts = st.decimals(min_value=0, max_value=10**12, places=2)
names = st.text(min_size=1, max_size=40)


@given(amounts)
def test_an_amount_passes_unchanged(amount: Decimal) -> None:
    """Not one digit changes on the way out and in."""
    assert exact_json.decode(exact_json.encode({"amount": amount})) in ({"amount": amount}, {"amount": int(amount)})
    assert amount_of_minor_units(minor_units(amount)) == amount


def test_parts_of_a_hundredth_are_no_minor_units() -> None:
    """Rounding would be a decision about money."""
    with pytest.raises(InvalidAmount):
        minor_units("0.001")


def test_a_float_is_refused_at_any_depth() -> None:
    """Nobody sends one by mistake."""
    with pytest.raises(InvalidAmount):
        exact_json.encode({"itemList": [{"unit_amount": 0.1}]})


@pytest.mark.parametrize("text", [b"NaN", b"{", b"\xff", b"[" * 100_000, b"1" * 5_000])
def test_what_is_no_json_is_an_error_and_no_crash(text: bytes) -> None:
    """Anything may come back through a proxy."""
    with pytest.raises(ValueError):  # noqa: PT011 - any of JSON's
        exact_json.decode(text)


@given(names, names)
def test_two_names_never_share_a_key(one: str, other: str) -> None:
    """They would be one payment."""
    first, second = (keys.begun(keys.store_name("charge", "gateway", each), 1).key for each in (one, other))

    assert (first == second) == (one == other)
    assert all("!" <= each <= "~" for each in first)


@given(st.integers(1, 99), st.sampled_from(["open", "done", "nothing"]), st.booleans())
def test_a_record_is_read_as_it_was_written(attempt: int, state: keys.AttemptState, is_refused: bool) -> None:  # noqa: FBT001 - drawn
    """The next process makes of it what this one knew."""
    record = keys.Record(name="charge/gateway/A", attempt=attempt, state=state, refused=is_refused)

    assert keys.read_record(record.name, record.text()) == record


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"v":2,"attempt":1,"key":"a/1","state":"open"}', "null"])
def test_what_is_no_record_stops_the_payment(text: str) -> None:
    """Whoever guesses a key charges twice."""
    with pytest.raises(StoreFailed):
        keys.read_record("a", text)


@given(
    count=st.integers(1, 50),
    retry_after=st.none() | st.floats(0, 100),
    draw=st.floats(0, 1),
    spent=st.floats(0, 120),
)
def test_a_pause_keeps_its_bounds(count: int, retry_after: float | None, draw: float, spent: float) -> None:
    """It is long enough for the service, short enough for the caller, and not everybody's at once."""
    limits = Limits(draw=lambda: draw)
    pause = Budget(limits, 0).pause_s(count, retry_after, spent)
    longest = min(limits.pause_max_s, limits.pause_s * 2 ** (count - 1))

    if pause is not None:
        assert pause >= (retry_after or 0)
        assert pause >= longest / 2
        assert pause <= max(longest, retry_after or 0)
        assert pause < limits.total_s - spent


@pytest.mark.parametrize("wrong", [{"tries": 0}, {"timeout_s": 0}, {"total_s": -1}, {"wait_s": 61}, {"pause_s": -1}])
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    """A client that never tries, or never ends, is found when it is made."""
    with pytest.raises(ValueError):  # noqa: PT011 - its text is for people
        Limits(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: FileStore(folder / "keys"),
        lambda folder: SqliteStore(folder / "keys.db"),
        lambda folder: made_table(SqlStore(lambda: sqlite3.connect(folder / "own.db"))),
    ],
)
def test_every_store_keeps_what_was_put_last(make: Callable[[Path], Store], tmp_path: Path) -> None:
    """A store that is opened anew, as after a crash, has it."""
    first = make(tmp_path)
    assert first.get("charge/gateway/A-1") is None
    first.put("charge/gateway/A-1", "one")
    first.put("charge/gateway/A-1", "two")
    first.put("charge/gateway/A-2", "other")

    again = make(tmp_path)
    assert (again.get("charge/gateway/A-1"), again.get("charge/gateway/A-2")) == ("two", "other")


def made_table(store: SqlStore) -> SqlStore:
    """The store, with its table."""
    store.create_table()
    return store


def test_a_file_store_leaves_nothing_half_written(tmp_path: Path) -> None:
    """There is the last text or the new one, and no third."""
    store = FileStore(tmp_path)
    store.put("a", "one")
    with pytest.raises(UnicodeEncodeError):
        store.put("a", "\ud800")

    assert store.get("a") == "one"
    assert len([*tmp_path.iterdir()]) == 1


def test_a_store_in_memory_is_refused() -> None:
    """It would forget the key with the process."""
    with pytest.raises(ValueError, match="forgets"):
        SqliteStore(":memory:")


def headers_of(body: bytes, *, secret: str = SECRET, age_s: int = 0) -> dict[str, str]:
    """The headers of a webhook, signed as the standard says."""
    moment = datetime.now(UTC) - timedelta(seconds=age_s)
    signature = Webhook(secret).sign("msg_1", moment, body.decode())
    return {
        "Webhook-Id": "msg_1",
        "Webhook-Timestamp": str(int(moment.timestamp())),
        "Webhook-Signature": signature,
    }


def test_the_library_signs_as_the_standard_does() -> None:
    """The vector of the standard's own tests."""
    moment = datetime.fromtimestamp(1614265330, UTC)
    signature = Webhook(SECRET).sign("msg_p5jXN8AQM9LWM0D4loKWxJek", moment, '{"test": 2432232314}')

    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_webhook_becomes_an_event() -> None:
    """With either of two secrets, as while one is changed."""
    event = verify_webhook(["whsec_b3RoZXI=", SECRET], headers_of(EVENT), EVENT)

    assert (event.id, event.type, event.data) == ("evt_1", "operation.succeeded", {"amount": "345.67"})


@pytest.mark.parametrize(
    ("secret", "changed", "body"),
    [
        ("whsec_b3RoZXI=", {}, EVENT),
        (SECRET, {"Webhook-Id": "msg_2"}, EVENT),
        (SECRET, {"Webhook-Id": ""}, EVENT),
        (SECRET, {"Webhook-Signature": "v1"}, EVENT),
        (SECRET, {"Webhook-Signature": "v1,%%%"}, EVENT),
        (SECRET, {"Webhook-Timestamp": "soon"}, EVENT),
        ("whsec_", {}, EVENT),
        ([], {}, EVENT),
        (SECRET, {}, b"[]"),
        (SECRET, {}, b"x"),
    ],
)
def test_what_is_not_the_services_is_refused(secret: str, changed: dict[str, str], body: bytes) -> None:
    """Anybody can post to a shop's address."""
    with pytest.raises(WebhookRefused):
        verify_webhook(secret, headers_of(body) | changed, body)


@pytest.mark.parametrize("body", [EVENT + b" ", b"\xff", b""])
def test_another_body_than_was_signed_is_refused(body: bytes) -> None:
    """It was changed on its way."""
    with pytest.raises(WebhookRefused):
        verify_webhook(SECRET, headers_of(EVENT), body)


@pytest.mark.parametrize("age_s", [600, -600])
def test_an_old_webhook_is_refused(age_s: int) -> None:
    """Somebody may have kept it to post it again."""
    with pytest.raises(WebhookRefused):
        verify_webhook(SECRET, headers_of(EVENT, age_s=age_s), EVENT)


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b'{"status": 1, "msg": "OK"}',
        b'{"status": true, "msg": "", "data": null}',
        b'{"status": -1, "msg": "", "data": null}',
        b'{"status": 1, "msg": null, "data": null}',
    ],
)
def test_what_is_no_envelope_is_no_answer(body: bytes) -> None:
    """A 200 of something in between isn't a payment."""
    assert not isinstance(read_reply(200, {}, body), Reply)


def test_an_error_needs_its_code_and_advice() -> None:
    """Without them nobody knows whether it is final."""
    assert not isinstance(read_reply(404, {}, b'{"status": -1, "msg": "no", "data": null}'), Reply)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3", 3),
        (" 3600 ", 3600),
        ("Fri, 21 Nov 2025 10:00:00 GMT", 0),
        ("soon", None),
        ("-1", None),
        (None, None),
        ("1 Jan 2026 10:00:00 +99999999999999999999", None),
        (f"{'0' * 60}1 Jan 2026 10:00:00 GMT", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(text: str | None, seconds: float | None) -> None:
    """Proxies write dates."""
    assert seconds_of(text) == seconds


def test_headers_of_one_name_are_joined() -> None:
    """HTTP defines it so, and a proxy may write one of them twice."""
    headers = httpx.Headers([("Link", "a"), ("X-Request-Id", "r"), ("link", "b")])

    assert fields_of(headers) == {"link": "a, b", "x-request-id": "r"}


def test_a_number_of_many_digits_is_no_crash() -> None:
    """Whatever the service answers, a program must learn what became of its payment."""
    operation = OperationDetail.of({"id": "op_1", "amount": Decimal("1E+40")})

    assert (operation.id, operation.amount) == ("op_1", Decimal("1E+40"))


def test_the_next_page_is_where_the_link_says() -> None:
    """Its address may be that of a machine behind a proxy: only the cursor counts."""
    link = '<http://10.0.0.1/gateway/api/operations?limit=2&cursor=op_7>; rel="next"'

    assert next_cursor(link) == "op_7"
    assert next_cursor(None) is None


def test_all_that_is_public_is_listed() -> None:
    """Who imports a name finds it in the next version."""
    tree = ast.parse(Path(payrelay_client.__file__).read_text())
    imported = {
        name.asname or name.name for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names
    }

    assert set(payrelay_client.__all__) == imported
