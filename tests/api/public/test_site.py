import gzip
import ipaddress
import re
from collections.abc import Callable

import pytest
from tests.api.fakes import Caller, Keyring, MovableClock

from payrelay.api.context import ApiContext
from payrelay.api.public.site import ASSETS
from payrelay.runtime.health.store_heartbeat import REUSED_S

NOBODY = {"Authorization": ""}


async def test_live_needs_no_store(call: Caller, keyring: Keyring) -> None:
    """While the process answers it is live, however its store is."""
    keyring.is_broken = True
    reply = await call("GET", "/health/live", headers=NOBODY)
    assert (reply.status, reply.json) == (200, {"status": "live"})


async def test_ready_tries_a_write(call: Caller, keyring: Keyring, clock: MovableClock) -> None:
    """Without a store that takes writes it can't serve: a load balancer must know, and an operator also why."""
    assert (await call("GET", "/health/ready", headers=NOBODY)).json == {"status": "ready"}
    keyring.is_broken = True
    clock.at_s += REUSED_S
    reply = await call("GET", "/health/ready", headers=NOBODY)
    assert (reply.status, reply.json["status"], reply.json["cause"]) == (503, "not_ready", "disk_full")
    metrics = (await call("GET", "/metrics", headers=NOBODY)).body
    assert b"payrelay_store_up 0.0" in metrics
    assert b'payrelay_store_fault{fault="disk_full"} 1.0' in metrics
    assert b'route="/health/ready",status="503"' in metrics


async def test_a_database_that_is_behind_is_said_and_still_serves(call: Caller, context: ApiContext) -> None:
    """A load balancer that took every process away would take the reads and repeats with them."""
    context.relay.database.lost_commits.fall_behind(
        1, "it lacks what a process was told of: operation op_1 in version 2"
    )
    reply = await call("GET", "/health/ready", headers=NOBODY)
    metrics = (await call("GET", "/metrics", headers=NOBODY)).body.decode()

    assert (reply.status, reply.json["status"], reply.json["effects"]) == (200, "ready", "refused")
    assert "op_1" not in reply.body.decode()  # it is for anybody
    assert "payrelay_database_behind 1.0" in metrics
    assert "payrelay_mark_failing 0.0" in metrics


@pytest.mark.parametrize("target", ["/health/live", "/health/ready", "/metrics", "/openapi.json", "/docs"])
async def test_head_is_get_without_the_body(call: Caller, target: str) -> None:
    """Monitors use HEAD: it gets the status and the headers of GET, with the length, and no body."""
    head = await call("HEAD", target, headers={**NOBODY, "X-Request-Id": "one"})
    get = await call("GET", target, headers={**NOBODY, "X-Request-Id": "one"})
    assert (head.status, head.body) == (200, b"")
    if target != "/metrics":  # it counts the first of the two requests
        assert head.headers == get.headers


async def test_metrics_are_for_their_networks(call: Caller) -> None:
    """The numbers of a business are private; other clients get not_found."""
    assert b"payrelay_http" in (await call("GET", "/metrics", headers=NOBODY)).body
    assert (await call("GET", "/metrics", headers=NOBODY, client="203.0.113.9")).status == 404


async def test_metrics_tell_how_things_stand(call: Caller) -> None:
    """What is open, and the budget, are there before anything has happened: a graph begins at 0."""
    text = (await call("GET", "/metrics", headers=NOBODY)).body
    assert b'payrelay_operations_open{state="unknown"} 0.0' in text
    assert b'payrelay_budget_limit{account="gateway"} 20.0' in text
    assert b"payrelay_store_up 1.0" in text


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded"])
async def test_a_proxy_on_this_machine_opens_nothing(call: Caller, header: str) -> None:
    """Behind a proxy that no setting names, every client would seem local: then none is admitted."""
    headers = {**NOBODY, header: "for=127.0.0.1"}
    assert (await call("GET", "/metrics", headers=headers)).status == 404


async def test_a_trusted_proxy_names_the_client(call_with: Callable[..., Caller]) -> None:
    """With the proxy named, its word decides."""
    call = call_with(trusted_proxies=(ipaddress.ip_network("127.0.0.1/32"),))
    assert (await call("GET", "/metrics", headers={**NOBODY, "X-Forwarded-For": "127.0.0.2"})).status == 200
    assert (await call("GET", "/metrics", headers={**NOBODY, "X-Forwarded-For": "203.0.113.9"})).status == 404


async def test_a_trusted_proxy_that_sets_no_header_opens_nothing(call_with: Callable[..., Caller]) -> None:
    """Whoever comes through it would pass for the proxy itself, which is local."""
    call = call_with(trusted_proxies=(ipaddress.ip_network("127.0.0.1/32"),))
    assert (await call("GET", "/metrics", headers=NOBODY)).status == 404


async def test_the_metrics_are_at_one_address(call_with: Callable[..., Caller]) -> None:
    """Where they have an address of their own, the API's doesn't show them."""
    assert (await call_with(has_metrics_address=True)("GET", "/metrics", headers=NOBODY)).status == 404


@pytest.mark.parametrize(
    ("header", "value"),
    [("X-Forwarded-For", "203.0.113.9:4711"), ("X-Forwarded-For", "unknown"), ("Forwarded", "for=203.0.113.9")],
)
async def test_a_trusted_proxy_that_is_not_understood_opens_nothing(
    call_with: Callable[..., Caller], header: str, value: str
) -> None:
    """The client is not known then, and must not pass for the proxy itself."""
    call = call_with(trusted_proxies=(ipaddress.ip_network("127.0.0.1/32"),))
    assert (await call("GET", "/metrics", headers={**NOBODY, header: value})).status == 404


@pytest.mark.parametrize("target", ["/", "/favicon.ico", "/docs/", "/docs/x.js", "/health", "/api", "*", ""])
async def test_nothing_else_is_there(call: Caller, target: str) -> None:
    """A wrong address gets an envelope that names the right ones."""
    reply = await call("GET", target, headers=NOBODY)
    assert (reply.status, reply.json["status"], reply.json["error"]["code"]) == (404, -1, "not_found")
    assert "/gateway/api/" in reply.json["msg"]


async def test_the_docs_take_everything_from_here(call: Caller) -> None:
    """Strict policy, no foreign address, nothing inline, and every file that the page names is there."""
    page = await call("GET", "/docs", headers=NOBODY)
    text = page.body.decode()
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "://" not in text
    assert not re.search(r"<script(?![^>]*src=)|style=|<style|\son\w+=", text)
    named = set(re.findall(r'(?:src|href)="docs/([^"]+)"', text))
    assert named == set(ASSETS)


@pytest.mark.parametrize(("name", "content_type"), ASSETS.items())
async def test_assets_are_served(call: Caller, name: str, content_type: str) -> None:
    """The large ones go out as they lie in the package, compressed."""
    reply = await call("GET", f"/docs/{name}", headers=NOBODY)
    assert reply.status == 200
    assert reply.headers["content-type"].startswith(content_type)
    body = gzip.decompress(reply.body) if "content-encoding" in reply.headers else reply.body
    assert b"//" in body or b"{" in body
