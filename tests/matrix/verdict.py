"""What must be true after any load, whatever happened meanwhile: ledger, arrivals, books and answers agree."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.matrix.books import UNDER_WAY, Books
from tests.matrix.gateway import Gateway
from tests.matrix.load import Heard

from payrelay.core.payments.operation import State

NEVER_DONE = frozenset({State.NOT_SENT, State.DECLINED, State.REFUSED, State.FAILED})


def faults_of(heard: list[Heard], gateway: Gateway, books: Books, *, may_be_under_way: bool = False) -> list[str]:
    """Tells everything that isn't as promised of charges, each of which has an order and a key of its own."""
    found = [*books.faults(), *_faults_of_arrivals(gateway, books), *_faults_of_charges(heard, gateway, books)]
    if not may_be_under_way:
        found += [f"{each.id} was left behind as {each.state}" for each in books.operations if each.state in UNDER_WAY]
    return found


def _faults_of_arrivals(gateway: Gateway, books: Books) -> Iterator[str]:
    """Nothing was sent without a stored intent."""
    known = {operation.order_id for operation in books.operations}
    for call in gateway.calls():
        if call["endpoint"] == "charge" and call["order_id"] not in known:
            yield f"{call['order_id']} was sent, and nothing of it is in the books"


def _faults_of_charges(heard: list[Heard], gateway: Gateway, books: Books) -> Iterator[str]:
    effects = Counter(entry["order_id"] for entry in gateway.ledger() if entry["kind"] == "charge")
    yield from (f"{order_id} was charged {number} times" for order_id, number in effects.items() if number > 1)
    answers: dict[str, list[Heard]] = defaultdict(list)
    for each in heard:
        answers[each.ask.key].append(each)
    for key, told in answers.items():
        order_id = str((told[0].ask.body or {})["order_id"])
        states = [operation.state for operation in books.under(key)]
        statuses = {each.status for each in told}
        if len({each.body for each in told if each.status == 200}) > 1:
            yield f"{order_id} was answered in several ways"
        if 200 in statuses and (effects[order_id] != 1 or State.SUCCEEDED not in states):
            yield f"{order_id} was told as done, and was done {effects[order_id]} times, and is {states}"
        if effects[order_id] and all(state in NEVER_DONE for state in states):
            yield f"{order_id} was done, and is {states}"
        if not effects[order_id] and State.SUCCEEDED in states:
            yield f"{order_id} is {states}, and was not done"
        if effects[order_id] and statuses == {503}:
            yield f"{order_id} was told as not sent, and was done"
