from importlib.metadata import version

from payrelay.api.metrics.counters import CALLERS_MAX, Metrics
from payrelay.core.calls import PaymentsOfOrder, Void


def sample(metrics: Metrics, name: str, /, **labels: str) -> float | None:
    """Gives one number as Prometheus would read it."""
    return metrics.registry.get_sample_value(name, labels)


def test_requests_are_counted_by_route_method_and_status() -> None:
    """An operator sees which requests come and how they end."""
    metrics = Metrics()
    for status in (200, 200, 503):
        metrics.seen("/r", "GET", status, 0.002, is_replayed=False)
    assert sample(metrics, "payrelay_http_requests_total", route="/r", method="GET", status="200") == 2
    assert sample(metrics, "payrelay_http_requests_total", route="/r", method="GET", status="503") == 1


def test_alerts_are_counted_by_what_became_of_them() -> None:
    """An operator watches for alerts that no channel accepted."""
    metrics = Metrics()
    for outcome in ("raised", "failed", "failed"):
        metrics.hooks.alerted(outcome)
    assert sample(metrics, "payrelay_alerts_total", outcome="failed") == 2


def test_durations_fall_into_their_buckets() -> None:
    """A bucket counts all that took at most as long as its name says, its bound included."""
    metrics = Metrics()
    for duration_s in (0.0005, 0.001, 0.2, 90.0):
        metrics.seen("/r", "GET", 200, duration_s, is_replayed=False)
    buckets = {
        bound: sample(metrics, "payrelay_http_request_seconds_bucket", route="/r", method="GET", le=bound)
        for bound in ("0.001", "0.1", "0.25", "60.0", "+Inf")
    }
    assert buckets == {"0.001": 2, "0.1": 2, "0.25": 3, "60.0": 3, "+Inf": 4}
    assert sample(metrics, "payrelay_http_request_seconds_sum", route="/r", method="GET") == 90.2015
    assert sample(metrics, "payrelay_http_request_seconds_count", route="/r", method="GET") == 4


def test_a_client_can_not_invent_labels() -> None:
    """Every method that no route knows is one label, however many are tried."""
    metrics = Metrics()
    for number in range(10):
        metrics.seen("unmatched", f"BREW{number}", 404, 0.001, is_replayed=False)
    assert sample(metrics, "payrelay_http_requests_total", route="unmatched", method="other", status="404") == 10


def test_replays_are_counted() -> None:
    """An operator wants to know how often apps repeat requests."""
    metrics = Metrics()
    metrics.seen("/r", "POST", 200, 0.001, is_replayed=True)
    assert sample(metrics, "payrelay_http_replays_total") == 1


def test_calls_to_a_gateway_are_counted_and_timed() -> None:
    """An operator sees how the gateway works, by call and outcome."""
    metrics = Metrics()
    metrics.hooks.call_made("gateway", PaymentsOfOrder(order_id="A-1"), "found", 0.3)
    labels = {"account": "gateway", "call": "payments_of_order"}
    assert sample(metrics, "payrelay_gateway_calls_total", outcome="found", **labels) == 1
    assert sample(metrics, "payrelay_gateway_call_seconds_sum", **labels) == 0.3


def test_a_call_has_the_name_of_its_kind_of_operation() -> None:
    """One dashboard shows a void's operations and its calls; the call's stored tag is an older word."""
    metrics = Metrics()
    metrics.hooks.call_made("gateway", Void(authorization_token="t", description="d"), "succeeded", 0.3)
    labels = {"account": "gateway", "call": "void"}
    assert sample(metrics, "payrelay_gateway_calls_total", outcome="succeeded", **labels) == 1
    assert sample(metrics, "payrelay_gateway_call_seconds_sum", **labels) == 0.3


def test_the_text_speaks_of_the_process_too() -> None:
    """Memory and processor time are what an operator looks at first."""
    assert b"process_cpu_seconds_total" in Metrics().text()


def test_two_programs_in_one_process_do_not_mix() -> None:
    """Nothing is registered globally: each has its own numbers."""
    first, second = Metrics(), Metrics()
    first.seen("/r", "GET", 200, 0.001, is_replayed=True)
    assert sample(second, "payrelay_http_replays_total") == 0


def test_callers_are_counted_and_bounded() -> None:
    """An operator sees whose requests fail; many thousand principals make no more metrics than a hundred."""
    metrics = Metrics()
    for number in range(CALLERS_MAX + 5):
        metrics.answered(f"shop-{number}", 200, None)
    metrics.answered("shop-0", 503, "unavailable")
    metrics.answered(None, 401, "unauthenticated")

    def of(caller: str, result: str) -> float | None:
        return sample(metrics, "payrelay_caller_requests_total", caller=caller, result=result)

    assert (of("shop-0", "answered"), of("shop-0", "failed")) == (1, 1)
    assert (of("other", "answered"), of("none", "refused")) == (5, 1)
    assert sample(metrics, "payrelay_http_errors_total", code="unavailable") == 1
    assert sample(metrics, "payrelay_http_errors_total", code="internal") == 0


def test_the_worker_and_the_version_are_shown() -> None:
    """A worker that hangs ends no round; and after an upgrade each process shows what it runs."""
    metrics = Metrics()
    metrics.hooks.round_ended()
    metrics.hooks.job_failed("keep_anchors")

    assert sample(metrics, "payrelay_worker_rounds_total") == 1
    assert sample(metrics, "payrelay_worker_jobs_failed_total", name="keep_anchors") == 1
    assert sample(metrics, "payrelay_build_info", version=version("payrelay")) == 1
