import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.errors import Code
from payrelay.gateways.payhere.wire.reply_shapes import RejectedCall
from payrelay.gateways.payhere.wire.token_replies import TokenGrant, read_grant

TOKEN = "cb5c47fd-741c-489a-b69e-fd73155ca34e"


def granted(**members: object) -> bytes:
    """Writes the reply to a token request."""
    whole = {"access_token": TOKEN, "token_type": "bearer", "expires_in": 599, "scope": "SANDBOX", **members}
    return json.dumps(whole).encode()


@pytest.mark.parametrize(
    ("body", "expires_in_s"),
    [
        (granted(), 599),
        (granted(token_type="Bearer"), 599),
        (granted(expires_in=0), 0),
        (granted(expires_in=-5), 0),
        (granted(expires_in=None), 60),
        (granted(expires_in=10**9), 86_400),
    ],
)
def test_a_token_is_granted(body: bytes, expires_in_s: int) -> None:
    """A life that is missing is taken for short, and no life is longer than a day."""
    assert read_grant(200, body) == TokenGrant(access_token=TOKEN, expires_in_s=expires_in_s)


@pytest.mark.parametrize(
    ("http_status", "body", "code"),
    [
        (401, b'{"error":"invalid_client","error_description":"Bad client credentials"}', Code.GATEWAY_REFUSED_US),
        (401, b'{"error":"unauthorized","error_description":"Bad credentials"}', Code.GATEWAY_REFUSED_US),
        (400, b'{"error":"invalid_request"}', Code.GATEWAY_REFUSED_US),
        (401, b'{"status":-2,"msg":"Authentication error","data":null}', Code.GATEWAY_REFUSED_US),
        (401, b'{"status":-1,"msg":"Access denied for the domain","data":null}', Code.GATEWAY_REFUSED_US),
        (403, b"<html>", Code.GATEWAY_REFUSED_US),
        (401, b"", Code.GATEWAY_REFUSED_US),
        (429, b"", Code.GATEWAY_BUSY),
        (500, b"", Code.UNAVAILABLE),
        (500, granted(), Code.UNAVAILABLE),
        (302, granted(), Code.UNAVAILABLE),
        (404, b"<html>", Code.UNAVAILABLE),
        (200, b"<html>", Code.UNAVAILABLE),
        (200, granted(token_type="mac"), Code.UNAVAILABLE),
        (200, granted(access_token="a b\r\nX: y"), Code.UNAVAILABLE),
        (200, granted(access_token=""), Code.UNAVAILABLE),
        (200, granted()[:-1], Code.UNAVAILABLE),
    ],
)
def test_no_token_is_granted(http_status: int, body: bytes, code: Code) -> None:
    """Nothing was sent, and the client hears whether it is worth coming again soon."""
    refused = read_grant(http_status, body)
    assert isinstance(refused, RejectedCall)
    assert refused.code is code


def test_a_denied_domain_is_distinguished_from_wrong_credentials() -> None:
    """The cure is another one: an e-mail to the gateway's support, not a new secret."""
    refused = read_grant(401, b'{"status":-1,"msg":"Access denied for the domain","data":null}')
    assert isinstance(refused, RejectedCall)
    assert refused.cause == "domain_denied"


def test_a_token_is_never_printed() -> None:
    """A grant that ends in a log or a traceback gives nothing away."""
    assert TOKEN not in repr(read_grant(200, granted()))


@given(http_status=st.integers(100, 599), body=st.binary(max_size=200))
def test_noise_grants_nothing(http_status: int, body: bytes) -> None:
    """Whatever bytes come back, nothing is raised."""
    assert isinstance(read_grant(http_status, body), RejectedCall)
