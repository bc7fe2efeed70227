import msgspec
from tests.operations.test_capture import CAPTURE
from tests.operations.world import CHARGE, World, asked, outcome_of

from payrelay.core.operations import State
from payrelay.core.outcomes import Evidence, Outcome, Verdict
from payrelay.core.payments import Payment, Seen
from payrelay.errors import Code
from payrelay.gateways.payhere.replies import Cause
from payrelay.operations.capture import capture
from payrelay.operations.charge import charge
from payrelay.operations.settle import settle_due

ALREADY = Outcome(
    verdict=Verdict.REFUSED, code=Code.CONFLICT, msg="captured", evidence=Evidence(cause=Cause.ALREADY_CAPTURED)
)


async def captured_unheard(world: World) -> None:
    """Holds money, captures it, and loses the reply."""
    world.account.script.append(outcome_of(Verdict.SUCCEEDED, authorization_token="hold-token", payment_id="320"))
    await charge(world.relay, asked("k-0"), msgspec.structs.replace(CHARGE, authorize=True))
    world.account.script.append(outcome_of(Verdict.UNKNOWN))
    await capture(world.relay, asked(), CAPTURE)
    world.clock.passed_ms += 31_000


async def test_the_payment_of_a_capture_may_go_by_the_number_of_its_hold(world: World) -> None:
    """The hold made through us has that number too, and must not make its own capture look like another one's."""
    await captured_unheard(world)
    row = await world.operation()
    payment = Payment(
        payment_id="320",
        order_id="A-1",
        at_ms=row.created_at_ms,
        description="Tea",
        status="RECEIVED",
        currency="LKR",
        amount_minor=50_000,
    )
    world.account.script.append(ALREADY)
    world.account.sights.append(Seen(payments=(payment,), evidence=Evidence()))
    await settle_due(world.relay)
    settled = await world.operation()
    assert (settled.state, settled.payment_id) == (State.SUCCEEDED, "320")
    assert (await capture(world.relay, asked(), CAPTURE)).http_status == 200
