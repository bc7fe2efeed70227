"""What the gateway's records say of effects whose operations were lost."""

from collections.abc import Callable
from typing import Final

import msgspec
import pytest
from tests import samples

from payrelay.core.access.credential import Credential, Scope
from payrelay.core.calls import Charge
from payrelay.core.database.incarnations import Beginning, Incarnation, LostWindow
from payrelay.core.payments.operation import State
from payrelay.core.payments.payment import Payment, PaymentStatus
from payrelay.core.payments.proof import TOLERANCE_MS, Control, Match, MatchResult
from payrelay.recovery.rules.lost_effects import (
    LookResult,
    began_before_loss,
    doubted,
    is_within,
    match_for_lost_charge,
    match_for_lost_retry,
    may_have_charged,
    result_of,
    sendings_of,
)

LOST: Final = LostWindow(since_ms=10_000_000, until_ms=20_000_000)
WINDOW: Final = sendings_of(LOST, 40_000)
CALL: Final = Charge(
    authorize=False, order_id="A-1", items="Tea", currency="LKR", amount_minor=100_000, customer_token="t"
)
PAYMENT: Final = msgspec.structs.replace(samples.PAYMENT, payment_id="320", at_ms=15_000_000)
NEXT: Final = msgspec.structs.replace(PAYMENT, payment_id="321")
RECOVERED: Final = Incarnation(number=2, reason=Beginning.RECOVERED, began_at_ms=20_000_000, lost=LOST)
KEY: Final = Credential(
    id="000000000001",
    principal="shop",
    key_hash=b"",
    scopes=frozenset({Scope.PAYMENTS_CHARGE}),
    accounts=None,
    amount_max_minor=None,
    rate=None,
    created_at_ms=0,
    expires_at_ms=None,
    revoked_at_ms=None,
)


def charge_match(
    *payments: Payment,
    attributed: frozenset[str] = frozenset(),
    owned: frozenset[str] = frozenset(),
    may_be_anothers: bool = False,
) -> Match:
    """Judges the payments of the order for the charge."""
    return match_for_lost_charge(
        CALL,
        samples.OPERATION,
        WINDOW,
        payments,
        attributed=attributed,
        owned=owned,
        may_be_anothers=may_be_anothers,
    )


def retry_match(
    *payments: Payment, attributed: frozenset[str] = frozenset(), owned: frozenset[str] = frozenset()
) -> Match:
    """Judges the payments of a subscription."""
    return match_for_lost_retry(WINDOW, payments, attributed=attributed, owned=owned)


def test_a_lost_operation_ends_after_its_commit() -> None:
    """The last intent that was lost may have been sent after it, and its call ends later still."""
    assert (WINDOW.began_ms, WINDOW.ended_ms) == (10_000_000, 20_040_000)


@pytest.mark.parametrize(
    ("at_ms", "is_in"),
    [
        (None, True),
        (WINDOW.began_ms - TOLERANCE_MS - 1, False),
        (WINDOW.began_ms - TOLERANCE_MS, True),
        (WINDOW.ended_ms + TOLERANCE_MS, True),
        (WINDOW.ended_ms + TOLERANCE_MS + 1, False),
    ],
)
def test_the_window_has_the_tolerance_of_two_clocks(at_ms: int | None, is_in: bool) -> None:  # noqa: FBT001
    """A payment of which nobody can read the date may be a lost one."""
    assert is_within(msgspec.structs.replace(PAYMENT, at_ms=at_ms), WINDOW) is is_in


def test_one_payment_that_fits_and_is_nobodys_is_the_charges() -> None:
    """Every part of the record is what the request asks for."""
    assert charge_match(PAYMENT) == Match(seen=MatchResult.ONE_FITS, payment=PAYMENT, payments_compared=("320",))


def test_an_order_without_payments_shows_nothing() -> None:
    """That is no proof by itself."""
    assert charge_match() == Match(seen=MatchResult.NOTHING)


def test_what_others_made_before_and_what_no_lost_operation_made_leaves_nothing() -> None:
    """An order may have been charged before."""
    old = msgspec.structs.replace(NEXT, at_ms=1)
    match = charge_match(PAYMENT, old, attributed=frozenset({"320"}))
    assert match == Match(seen=MatchResult.ONLY_OTHERS, payments_compared=("320", "321"))


def test_beside_what_others_made_the_one_that_is_left_counts() -> None:
    """All payments are noted that were compared."""
    match = charge_match(PAYMENT, NEXT, attributed=frozenset({"321"}), owned=frozenset({"321"}))
    assert (match.seen, match.payments_compared) == (MatchResult.ONE_FITS, ("320", "321"))


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        ({"amount_minor": 1}, MatchResult.ONE_RESEMBLES),
        ({"description": "Coffee"}, MatchResult.ONE_RESEMBLES),
        ({"currency": "USD"}, MatchResult.ONE_RESEMBLES),
        ({"at_ms": None}, MatchResult.ONE_RESEMBLES),
        ({"status": PaymentStatus.REFUNDED}, MatchResult.ONE_RESEMBLES),
    ],
)
def test_what_is_left_and_does_not_fit_is_no_absence(changes: dict[str, object], seen: MatchResult) -> None:
    """Some lost request had an effect on the order."""
    assert charge_match(msgspec.structs.replace(PAYMENT, **changes)).seen is seen


def test_several_that_are_left_are_ambiguous() -> None:
    """Also where only one of them fits: another lost request made the other."""
    assert charge_match(PAYMENT, msgspec.structs.replace(NEXT, amount_minor=1)).seen is MatchResult.SEVERAL_FIT


def test_a_payment_that_another_got_since_the_recovery_began_is_contested() -> None:
    """It was attributed without knowing of this request."""
    assert charge_match(PAYMENT, owned=frozenset({"320"})).seen is MatchResult.MAY_BE_ANOTHERS
    assert charge_match(PAYMENT, may_be_anothers=True).seen is MatchResult.MAY_BE_ANOTHERS


def test_a_new_installment_may_be_the_gateways_own() -> None:
    """Only the absence of any new one lets a retry go."""
    old = msgspec.structs.replace(NEXT, at_ms=1)
    assert retry_match().seen is MatchResult.NOTHING
    assert retry_match(old).seen is MatchResult.ONLY_OTHERS
    assert retry_match(PAYMENT, attributed=frozenset({"320"})).seen is MatchResult.ONLY_OTHERS
    match = retry_match(old, PAYMENT)
    assert match == Match(seen=MatchResult.MAY_BE_ANOTHERS, payments_compared=("321", "320"))


@pytest.mark.parametrize("judge", [charge_match, retry_match])
def test_what_came_after_the_window_is_a_persons_unless_it_is_owned(judge: Callable[..., Match]) -> None:
    """The window ends where the recovery began, by a clock that may be slow: a lost payment may be dated after it."""
    late = msgspec.structs.replace(PAYMENT, at_ms=WINDOW.ended_ms + TOLERANCE_MS + 1)
    assert judge(late).seen is MatchResult.MAY_BE_ANOTHERS
    assert judge(late, owned=frozenset({"320"})).seen is MatchResult.ONLY_OTHERS


@pytest.mark.parametrize("seen", MatchResult)
@pytest.mark.parametrize("control", [None, *Control])
def test_a_request_goes_only_beside_a_good_control_query(seen: MatchResult, control: Control | None) -> None:
    """Whatever is found is adopted or for a person; only an absence that a good control query confirms lets it go."""
    result = result_of(Match(seen=seen), control)
    if seen in {MatchResult.ONE_FITS, MatchResult.REFUND_SHOWN}:
        assert result is LookResult.ADOPT
    elif seen in {MatchResult.NOTHING, MatchResult.ONLY_OTHERS, MatchResult.STILL_RECEIVED}:
        expected = {Control.FOUND: LookResult.GO, Control.NONE_KNOWN: LookResult.HOLD}
        assert result is (LookResult.WAIT if control is None else expected.get(control, LookResult.WAIT))
    else:
        assert result is LookResult.HOLD


@pytest.mark.parametrize(
    ("changes", "may"),
    [
        ({}, True),
        ({"accounts": frozenset({"gateway", "other"})}, True),
        ({"accounts": frozenset({"other"})}, False),
        ({"scopes": frozenset({Scope.PAYMENTS_READ})}, False),
        ({"revoked_at_ms": LOST.since_ms - 1}, False),
        ({"revoked_at_ms": LOST.since_ms}, True),
    ],
)
def test_who_may_have_charged_had_a_key_for_it(changes: dict[str, object], may: bool) -> None:  # noqa: FBT001
    """All others made no lost charge."""
    key = msgspec.structs.replace(KEY, **changes)
    assert may_have_charged([key], frozenset({"gateway"}), LOST) == (frozenset({"shop"}) if may else frozenset())


def test_an_open_operation_remembers_what_was_lost_after_it() -> None:
    """Each recovery that it went through counts, also after its end; a copy lost nothing."""
    begun = msgspec.structs.replace(samples.OPERATION, state=State.UNKNOWN, created_at_ms=19_000_000)
    ended = msgspec.structs.replace(RECOVERED, ended_recovery_at_ms=30_000_000)
    copied = Incarnation(number=3, reason=Beginning.COPIED, began_at_ms=40_000_000)
    assert began_before_loss(begun, [ended, copied]) == [LOST]
    later = msgspec.structs.replace(begun, created_at_ms=20_000_000)
    assert began_before_loss(later, [ended, copied]) == []
    assert began_before_loss(msgspec.structs.replace(begun, state=State.FAILED), [ended]) == []


def test_a_payment_of_the_lost_window_proves_no_older_operation() -> None:
    """A lost operation may have made it, of which no row is left that would compete."""
    fits = Match(seen=MatchResult.ONE_FITS, payment=PAYMENT, payments_compared=("320",))
    assert doubted(fits, [WINDOW]) == msgspec.structs.replace(fits, seen=MatchResult.MAY_BE_ANOTHERS)
    old = msgspec.structs.replace(fits, payment=msgspec.structs.replace(PAYMENT, at_ms=1))
    assert doubted(old, [WINDOW]) == old
    assert doubted(fits, []) == fits
    absent = Match(seen=MatchResult.NOTHING)
    assert doubted(absent, [WINDOW]) == absent
