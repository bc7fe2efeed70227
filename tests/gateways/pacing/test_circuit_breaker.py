import pytest
from tests.gateways.pacing.hand_clock import HandClock

from payrelay.gateways.pacing.circuit_breaker import (
    COUNTED_BACK_S,
    EFFECT_TRIALS_AFTER_S,
    ENDED_MIN,
    PAUSE_S,
    PAUSE_S_MAX,
    Admission,
    CircuitBreaker,
    Ending,
)
from payrelay.gateways.pacing.queue import Priority

PROBE_S = 45.0


@pytest.fixture
def clock() -> HandClock:
    """A clock that stands still until the test moves it."""
    return HandClock()


@pytest.fixture
def breaker(clock: HandClock) -> CircuitBreaker:
    """One that has seen no call yet."""
    return CircuitBreaker(clock, trial_s=PROBE_S)


@pytest.fixture
def open_breaker(breaker: CircuitBreaker) -> CircuitBreaker:
    """A circuit breaker that has just opened."""
    end(breaker, failed=ENDED_MIN)
    return breaker


def end(breaker: CircuitBreaker, *, failed: int = 0, answered: int = 0) -> None:
    """Ends so many calls."""
    for ending, count in ((Ending.ANSWERED, answered), (Ending.FAILED, failed)):
        for _ in range(count):
            breaker.note(ending, "server_error")


def test_one_failure_does_not_open_it(breaker: CircuitBreaker) -> None:
    """Nor do a few: with few calls half of them fail by chance."""
    end(breaker, failed=ENDED_MIN - 1)
    assert (breaker.is_open, breaker.open_circuit(Priority.CHARGE)) == (False, None)


@pytest.mark.parametrize(("answered", "failed", "is_open"), [(10, 10, True), (11, 10, False), (1, 19, True)])
def test_it_opens_when_half_of_the_calls_fail(
    breaker: CircuitBreaker, answered: int, failed: int, *, is_open: bool
) -> None:
    """A gateway that answers every second call still serves somebody; one that answers fewer is not called."""
    end(breaker, answered=answered, failed=failed)
    assert breaker.is_open is is_open


def test_what_failed_long_ago_does_not_count(breaker: CircuitBreaker, clock: HandClock) -> None:
    """It is about how the gateway is now."""
    end(breaker, failed=ENDED_MIN - 1)
    clock.move(COUNTED_BACK_S)
    end(breaker, failed=1)
    assert not breaker.is_open


def test_what_never_came_to_the_gateway_says_nothing_of_it(breaker: CircuitBreaker) -> None:
    """A call that we didn't make in time is no failure of theirs."""
    for _ in range(ENDED_MIN):
        breaker.note(Ending.NOTHING, "too_late")
    assert not breaker.is_open


def test_being_blocked_counts_as_a_failure(breaker: CircuitBreaker) -> None:
    """A gateway that rejects every call is not called for longer than a window."""
    for _ in range(ENDED_MIN):
        breaker.note(Ending.BLOCKED, "rate_limited")
    assert breaker.is_open


def test_it_says_why_and_when_to_come_again(open_breaker: CircuitBreaker) -> None:
    """The client gets the rejection before anything is stored."""
    circuit = open_breaker.open_circuit(Priority.READ)
    assert circuit is not None
    assert (circuit.retry_after_s, circuit.cause) == (PAUSE_S, "server_error")
    assert open_breaker.enter(Priority.READ) is Admission.REJECTED


def test_after_a_pause_one_trial_goes_out(open_breaker: CircuitBreaker, clock: HandClock) -> None:
    """And no second one, as long as it is under way."""
    clock.move(PAUSE_S)
    assert [open_breaker.enter(Priority.RESOLUTION) for _ in range(2)] == [Admission.TRIAL, Admission.REJECTED]


def test_an_effect_leaves_the_trial_to_reads(open_breaker: CircuitBreaker, clock: HandClock) -> None:
    """A lost read costs nobody anything; but where only effects come, one of them is the trial."""
    clock.move(PAUSE_S)
    assert open_breaker.enter(Priority.CHARGE) is Admission.REJECTED
    clock.move(EFFECT_TRIALS_AFTER_S)
    assert open_breaker.enter(Priority.CHARGE) is Admission.TRIAL


def test_a_trial_that_is_answered_closes_it(open_breaker: CircuitBreaker, clock: HandClock) -> None:
    """And what failed before that is forgotten."""
    clock.move(PAUSE_S)
    open_breaker.enter(Priority.READ)
    open_breaker.trial_ended(Ending.ANSWERED, "")
    end(open_breaker, failed=ENDED_MIN - 1)
    assert (open_breaker.is_open, open_breaker.enter(Priority.CHARGE)) == (False, Admission.FREE)


def test_a_trial_that_fails_doubles_the_pause(open_breaker: CircuitBreaker, clock: HandClock) -> None:
    """Up to a minute, so that its return is not missed for long."""
    pauses = []
    for _ in range(4):
        circuit = open_breaker.open_circuit(Priority.READ)
        assert circuit is not None
        pauses.append(circuit.retry_after_s)
        clock.move(circuit.retry_after_s)
        open_breaker.enter(Priority.READ)
        open_breaker.trial_ended(Ending.FAILED, "timeout")
    assert pauses == [PAUSE_S, 2 * PAUSE_S, 4 * PAUSE_S, PAUSE_S_MAX]


def test_a_trial_that_came_to_nothing_makes_way_for_another(open_breaker: CircuitBreaker, clock: HandClock) -> None:
    """The trial got no permit, or was cancelled."""
    clock.move(PAUSE_S)
    open_breaker.enter(Priority.READ)
    open_breaker.abandon()
    assert open_breaker.enter(Priority.READ) is Admission.TRIAL


def test_a_trial_that_is_never_heard_of_again_makes_way_too(open_breaker: CircuitBreaker, clock: HandClock) -> None:
    """Nothing may keep it open for ever."""
    clock.move(PAUSE_S)
    open_breaker.enter(Priority.READ)
    clock.move(PROBE_S)
    assert open_breaker.enter(Priority.READ) is Admission.TRIAL


def test_calls_that_were_under_way_when_it_opened_prove_nothing(open_breaker: CircuitBreaker) -> None:
    """An old success must not let everybody in again."""
    end(open_breaker, answered=50)
    assert open_breaker.is_open


def test_a_token_is_fetched_for_the_trial_but_closes_nothing(open_breaker: CircuitBreaker, clock: HandClock) -> None:
    """Where there is none, no trial could be made; and a gateway that gives tokens may fail at all else."""
    assert open_breaker.enter(Priority.TOKEN) is Admission.REJECTED
    clock.move(PAUSE_S)
    assert open_breaker.enter(Priority.TOKEN) is Admission.FREE
    open_breaker.note(Ending.ANSWERED, "")
    assert open_breaker.is_open


def test_a_trial_after_it_closed_changes_nothing(breaker: CircuitBreaker) -> None:
    """A second answer proves no more than the first."""
    breaker.trial_ended(Ending.FAILED, "timeout")
    assert not breaker.is_open
