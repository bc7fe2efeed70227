import json
from collections.abc import Sequence

import msgspec
import pytest
from rich.console import Console, RenderableType
from tests.samples import OPERATION

from payrelay.cli.operation_pages import hints_of, list_json, list_page, operation_json, show_page
from payrelay.core.answers import Answer, found, succeeded
from payrelay.core.calls import CancelSubscription, Charge, Effect, Refund
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Event, JournalEntry, Operation, State
from payrelay.flows.operators.decide import Consequence
from payrelay.flows.operators.review import Group, OperationStudy, ReviewEntry
from payrelay.flows.payments.operation_views import ChargebackView

ID = "op_01a1fcf95693b84b105412bf6dd63ed2"
NOW_MS = 3_601_000
EVIL = "\x1b[2J\x1b]0;owned\x07"
CHARGE = Charge(
    authorize=False, order_id="A-1", items="Toy car", currency="LKR", amount_minor=100_000, customer_token="hush-hush"
)


def operation(**members: object) -> Operation:
    """Gives an operation that needs a person."""
    usual = {"id": ID, "state": State.NEEDS_ATTENTION, "version": 2, "payment_id": "320025"}
    return msgspec.structs.replace(OPERATION, **(usual | members))


def entry(version: int, event: Event | None, state: State, **evidence: object) -> JournalEntry:
    """Gives a line of history, a minute after the one before it."""
    return JournalEntry(
        version=version,
        at_ms=version * 60_000,
        event=event,
        state=state,
        evidence=msgspec.convert(evidence, Evidence),
    )


HISTORY = [
    entry(1, None, State.SENDING),
    entry(
        2, Event.DIFFERED, State.NEEDS_ATTENTION, cause="other_amount", gateway_msg=f"Well {EVIL}done", elapsed_ms=31
    ),
]
LOST = [HISTORY[0], entry(2, Event.UNKNOWN, State.UNKNOWN, cause="timeout")]
LOOKS = [entry(version, Event.INQUIRED_ABOUT, State.UNKNOWN, seen="nothing") for version in range(3, 12)]


def studied(
    *, call: Effect = CHARGE, history: Sequence[JournalEntry] = HISTORY, answer: Answer | None = None, **members: object
) -> OperationStudy:
    """Gives all that is known of an operation."""
    return OperationStudy(operation=operation(**members), call=call, history=list(history), answer=answer)


def preview(answer: Answer, **members: object) -> Consequence:
    """Gives what a decision would do."""
    return Consequence(operation=operation(guard=None, **members), entry=HISTORY[-1], answer=answer)


def shown(page: RenderableType, width: int = 80) -> str:
    """Gives what a terminal of that width shows, without its colours."""
    console = Console(width=width, highlight=False, color_system=None)
    with console.capture() as capture:
        console.print(page)
    return capture.get()


def group(*operations: Operation, state: State | None = State.NEEDS_ATTENTION, has_more: bool = False) -> Group:
    """Gives a group of a list."""
    return Group(
        state=state,
        entries=[
            ReviewEntry(operation=each, why="The reply was for another amount than requested") for each in operations
        ],
        has_more=has_more,
    )


@pytest.mark.parametrize("width", [80, 120, 60])
def test_a_list_fits_the_terminal_and_keeps_ids_whole(width: int) -> None:
    """An id is copied from it; one that is broken over two lines can't be."""
    text = shown(list_page([group(operation(), operation(order_id="B" * 255))], NOW_MS), width)

    assert max(len(each) for each in text.splitlines()) <= width
    assert text.count(ID) == 2
    assert all(words in text for words in ("Needs attention (2)", "60 min", "charge of LKR", "1,000.00", "320025"))


def test_an_empty_list_says_that_all_is_well() -> None:
    """Silence could be a fault."""
    empty = "Nothing here: no operation needs attention, and none is unknown or pending.\n"
    assert shown(list_page([], NOW_MS)) == empty
    assert shown(list_page([], NOW_MS, is_narrowed=True)) == "Nothing here: there is no such operation.\n"


def test_a_list_says_where_there_is_more() -> None:
    """Nobody must take the first fifty for all."""
    oldest = shown(list_page([group(operation(), state=State.UNKNOWN, has_more=True)], NOW_MS))
    newest = shown(list_page([group(operation(state=State.SUCCEEDED), state=None, has_more=True)], NOW_MS), 120)

    assert "(the oldest 1; --limit shows more)" in oldest
    assert "Others (the newest 1; --limit shows more)" in newest
    assert "succeeded: The reply" in newest


def test_a_group_of_another_state_has_its_name() -> None:
    """As it was asked for."""
    assert "Not sent (1)" in shown(list_page([group(operation(state=State.NOT_SENT), state=State.NOT_SENT)], NOW_MS))


def test_what_others_wrote_does_not_steer_the_terminal() -> None:
    """Clients choose order ids, keys and descriptions, the gateway its words."""
    evil = operation(order_id=EVIL, idempotency_key=EVIL, principal=EVIL)
    call = msgspec.structs.replace(CHARGE, items=EVIL)
    answer = succeeded(b'"OK"', json.dumps({"items": EVIL}).encode())
    text = shown(list_page([group(evil)], NOW_MS)) + shown(
        show_page(
            studied(call=call, answer=answer, order_id=EVIL, idempotency_key=EVIL), {State.FAILED: preview(answer)}, 0
        )
    )

    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\\x1b[2J" in text


@pytest.mark.parametrize("width", [80, 120])
def test_a_page_tells_all_that_is_known(width: int) -> None:
    """What was asked, why it stands there, the history with what was seen, and what each decision would do."""
    answers = {
        State.SUCCEEDED: preview(succeeded(b'"Resolved by decision"', b'{"amount":1000.00,"md5sig":null,"items":"x"}')),
        State.FAILED: preview(found(None, "no"), state=State.FAILED),
    }
    text = " ".join(shown(show_page(studied(), answers, NOW_MS), width).split())

    for words in (
        f"{ID} needs attention",
        "what charge of LKR 1,000.00 for order A-1, payment 320025",
        "described as “Toy car”",
        "when 1970-01-01 00:00:01 UTC, 60 min ago",
        "on, by account gateway, key shop",
        "Idempotency-Key k-1",
        "The reply was for another amount than requested.",
        "1970-01-01 00:01:00 The service stored it before it sent anything.",
        "after 0.031 s",
        "If you decide that it succeeded · The client gets 200, “Resolved by decision”, with amount 1000.00, items x",
        "If you decide that it failed · The client gets 200, “no”",
    ):
        assert words in text
    assert "hush-hush" not in text


def test_looks_that_saw_the_same_are_told_once() -> None:
    """An operation is looked for daily; a year of that is two lines."""
    text = " ".join(shown(show_page(studied(history=[*LOST, *LOOKS, LOOKS[-1]]), {}, NOW_MS)).split())
    pair = " ".join(shown(show_page(studied(history=[*LOST, *LOOKS[:2]]), {}, NOW_MS)).split())

    assert text.count("The service inquired at the gateway") == 1
    assert "Repeated 9 times more, most recently at 1970-01-01 00:11:00" in text
    assert "Repeated once more, at 1970-01-01 00:04:00" in pair


def test_a_whole_refund_says_so() -> None:
    """It has no amount, and that is the largest one; unless a part went back before, and the rest was sent."""
    call = Refund(payment_id="320025", description="broken")

    assert "the whole payment" in shown(
        show_page(studied(call=call, amount_minor=None, idempotency_key=None), {}, NOW_MS)
    )
    assert "what was left" in shown(show_page(studied(call=call, amount_minor=6_000), {}, NOW_MS))
    assert "described" not in shown(show_page(studied(call=CancelSubscription(subscription_id=1)), {}, NOW_MS))


def test_its_answer_is_shown() -> None:
    """What its client was told, also where that was an error without data."""
    answer = Answer(
        http_status=402, body=b'{"status":-1,"msg":"No","data":null,"error":{"code":"declined","retry":"never"}}'
    )

    assert "Its answer\n  402 declined, “No”" in shown(show_page(studied(answer=answer), {}, NOW_MS))


def test_the_commands_that_decide_can_be_copied() -> None:
    """Each with its id."""
    both = {decided: preview(succeeded(b'"OK"', b"null")) for decided in (State.SUCCEEDED, State.FAILED)}
    assert hints_of(operation(), both) == [
        f"payrelay operations decide {ID} succeeded --reason …",
        f"payrelay operations decide {ID} failed --reason …",
    ]


def test_the_json_holds_what_the_pages_show() -> None:
    """For programs; the answers byte for byte."""
    answer = succeeded(b'"OK"', b'{"amount":1000.00}')
    [row] = list_json([group(operation())], NOW_MS)
    page = operation_json(studied(answer=answer), {State.FAILED: preview(answer)})
    one = json.loads(msgspec.json.encode(page))

    assert (row["id"], row["age_s"], row["state"]) == (ID, 3600, "needs_attention")
    assert row["why"] == "The reply was for another amount than requested"
    assert one["history"][1]["seen"][0] == "the reply was for another amount than requested"
    assert one["answer"]["body"]["data"] == {"amount": 1000.0}
    assert "The order is free for another operation." in one["decisions"]["failed"]["consequences"]
    assert b"hush-hush" not in msgspec.json.encode(page)


def test_what_was_charged_back_stands_with_the_operation() -> None:
    """Whoever looks at the charge must not believe that the money is still there."""
    back = ChargebackView(
        payment_id="320025021815",
        amount=msgspec.Raw(b"1000.00"),
        currency="LKR",
        at="2026-11-21T10:00:00.000Z",
        notification_id="ntf_1",
    )
    study = msgspec.structs.replace(studied(), chargebacks=[back])

    assert "Charged back 2026-11-21T10:00:00.000Z payment 320025021815, LKR 1000.00, ntf_1" in " ".join(
        shown(show_page(study, {}, NOW_MS), 200).split()
    )
    assert json.loads(msgspec.json.encode(operation_json(study, {})))["chargebacks"][0]["payment_id"] == "320025021815"
