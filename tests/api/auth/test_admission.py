from typing import Final

import msgspec
import pytest
from tests.api.fakes import KEY, Caller, Keyring, MovableClock

from payrelay.api.auth.failed_credentials import FAILURES
from payrelay.api.context import ApiContext
from payrelay.core.access.credential import Credential, Rate

WRONG: Final = {"Authorization": f"Bearer {KEY}x"}


@pytest.mark.parametrize(
    "target",
    ["/gateway/api/payments/1", "/gateway/api/nothing", "/gateway/api/", "/gateway/api", "/other/api/payments/1",
     "//api/x", "/gateway/api/payments/%zz"],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "HEAD", "BREW"])
async def test_without_a_credential_nothing_is_revealed(call: Caller, target: str, method: str) -> None:
    """Not even that an address doesn't exist: a client without a key learns nothing about the service."""
    reply = await call(method, target, headers={"Authorization": ""})
    assert (reply.status, reply.json["error"]["code"], reply.json["status"]) == (401, "unauthenticated", -2)
    assert reply.headers["www-authenticate"].startswith("Bearer")


async def test_who_tries_keys_is_slowed_down(call: Caller, clock: MovableClock) -> None:
    """429 in place of 401 with the seconds to wait, from this address only; after them it is 401 again."""
    statuses = [(await call("GET", "/gateway/api/operations", headers=WRONG)).status for _ in range(FAILURES.count)]
    reply = await call("GET", "/gateway/api/operations", headers=WRONG)
    assert set(statuses) == {401}
    assert (reply.status, reply.json["error"]["code"], reply.headers["retry-after"]) == (429, "rate_limited", "60")
    assert reply.headers["ratelimit"] == '"failed-credentials";r=0;t=60'
    assert (await call("GET", "/gateway/api/operations", headers=WRONG, client="203.0.113.9")).status == 401
    clock.at_s += 60
    assert (await call("GET", "/gateway/api/operations", headers=WRONG)).status == 401


async def test_a_good_key_is_never_slowed_down_by_bad_ones(call: Caller) -> None:
    """Failures from a shop's address can't lock the shop out."""
    for _ in range(FAILURES.count * 2):
        await call("GET", "/gateway/api/operations", headers=WRONG)
    assert (await call("GET", "/gateway/api/operations")).status == 200


async def test_only_wrong_keys_are_counted(call: Caller, keyring: Keyring, credential: Credential) -> None:
    """A client without a key doesn't guess any. A client whose key has ended must be told so, every time."""
    keyring.by_id[credential.id] = msgspec.structs.replace(credential, revoked_at_ms=1)
    for _ in range(FAILURES.count + 1):
        assert (await call("GET", "/gateway/api/operations", headers={"Authorization": ""})).status == 401
        assert (await call("GET", "/gateway/api/operations")).status == 401


async def test_failed_credentials_are_counted(call: Caller, context: ApiContext) -> None:
    """An operator sees that keys are being guessed."""
    await call("GET", "/gateway/api/operations", headers=WRONG)
    await call("GET", "/gateway/api/operations", headers={"Authorization": ""})
    for reason in ("wrong", "missing"):
        labels = {"reason": reason}
        assert context.metrics.registry.get_sample_value("payrelay_failed_credentials_total", labels) == 1


async def test_a_quota_is_shown_and_enforced(call: Caller, keyring: Keyring, clock: MovableClock) -> None:
    """Every answer to a limited key shows what is left; a refusal shows when to repeat the request."""
    keyring.by_id["abcdefghijkl"] = msgspec.structs.replace(
        keyring.by_id["abcdefghijkl"], rate=Rate(count=1, window_s=30)
    )
    first = await call("GET", "/gateway/api/nothing")
    assert (first.status, first.headers["ratelimit"]) == (404, '"default";r=0;t=30')
    second = await call("GET", "/gateway/api/subscriptions")
    assert (second.status, second.headers["retry-after"]) == (429, "30")
    assert second.headers["ratelimit-policy"] == '"default";q=1;w=30'
    clock.at_s += 30
    assert (await call("GET", "/gateway/api/subscriptions")).status == 200
