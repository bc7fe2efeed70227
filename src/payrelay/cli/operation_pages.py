"""What the commands for operations show: pages for people, for any width of terminal, and JSON for programs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

import msgspec
from rich.console import Group as Parts
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from payrelay.cli.terminal.pages import entry, facts, table
from payrelay.core.answers import Answer
from payrelay.core.calls import Capture, Charge, Effect, Refund, Void
from payrelay.core.moments import rfc3339, span_text, spoken
from payrelay.core.payments.explanations import phrases_of, printable, reason_phrase, request_phrase, sentence_of
from payrelay.core.payments.operation import Event, JournalEntry, Operation, State
from payrelay.core.payments.sentences import STATE_SENTENCES
from payrelay.flows.operators.decide import Consequence, sentences_of
from payrelay.flows.operators.review import Group, OperationStudy, ReviewEntry
from payrelay.flows.payments.operation_views import view

TITLES: Final[dict[State | None, str]] = {
    State.NEEDS_ATTENTION: "Needs attention",
    State.HELD: "Held: not sent since the database lost commits",
    State.UNKNOWN: "Unknown, still inquired about",
    State.PENDING: "Pending at the gateway",
    None: "Others",
}
STYLES: Final = {
    State.NEEDS_ATTENTION: "bold red",
    State.HELD: "bold red",
    State.UNKNOWN: "bold yellow",
    State.PENDING: "bold cyan",
    State.SUCCEEDED: "green",
    State.FAILED: "magenta",
}
NONE_OPEN: Final = "no operation needs attention, and none is unknown or pending"
INDENT: Final = 2
_A_PAIR: Final = 2


class _Error(msgspec.Struct, frozen=True):
    code: str


class _Envelope(msgspec.Struct, frozen=True):
    msg: str
    data: msgspec.Raw
    error: _Error | None = None


_decode_envelope: Final = msgspec.json.Decoder(_Envelope).decode


def list_page(groups: Sequence[Group], now_ms: int, *, is_narrowed: bool = False) -> RenderableType:
    """Shows operations in their groups, oldest first; ``is_narrowed``: the operator asked for some operations only."""
    if not groups:
        return Text(f"Nothing here: {'there is no such operation' if is_narrowed else NONE_OPEN}.")
    parts: list[RenderableType] = []
    for group in groups:
        title = TITLES.get(group.state) or str(group.state).replace("_", " ").capitalize()
        if parts:
            parts.append(Text())
        head = Text(f"{title} ({_count(group)})", style=_style(group.state))
        rows = (_row(listed, group.state, now_ms) for listed in group.entries)
        parts += [head, table(("age", "operation", "why"), rows, ids="operation", empty="", leading=1)]
    parts.append(Text("\npayrelay operations show ID shows all that is known of one.", style="dim"))
    return Parts(*parts)


def show_page(studied: OperationStudy, previews: Mapping[State, Consequence], now_ms: int) -> RenderableType:
    """Shows all that is known of one operation, and what each decision would do."""
    operation = studied.operation
    state = operation.state.replace("_", " ")
    head = Text.assemble((operation.id, "bold"), "  ", (state, _style(operation.state)))
    parts: list[RenderableType] = [
        head,
        Text(STATE_SENTENCES[operation.state]),
        _section("Asked", facts(_asked(operation, studied.call, now_ms))),
        _section("Why it is in this state", Text(f"{printable(reason_phrase(studied.history))}.")),
        _section("History (UTC)", facts(_history(studied.history))),
    ]
    if studied.answer is not None:
        parts.append(_section("Its answer", Text(printable(_answer_text(studied.answer)))))
    if studied.chargebacks:
        parts.append(_section("Charged back", facts(_charged_back(studied))))
    for decided, consequence in previews.items():
        parts.append(_section(f"If you decide that it {decided}", _preview(consequence)))
    return Parts(*parts)


def hints_of(operation: Operation, previews: Mapping[State, Consequence]) -> list[str]:
    """Gives the commands that decide, to be copied."""
    if operation.state is State.HELD:
        return [f"payrelay recover decide {choice} {operation.id} --reason …" for choice in ("done", "send", "refuse")]
    return [f"payrelay operations decide {operation.id} {decided} --reason …" for decided in previews]


def heading_of(operation: Operation) -> str:
    """Gives the line that names an operation, with what it was asked to do."""
    return f"{operation.id}, {request_phrase(operation)}"


def consequence_lines(consequence: Consequence) -> list[str]:
    """Tells in sentences what a decision does: the answer first."""
    return [f"The client gets {_answer_text(consequence.answer)}", *sentences_of(consequence)]


def list_json(groups: Sequence[Group], now_ms: int) -> list[dict[str, object]]:
    """Gives a list for programs: the operations as the API shows them, with their age and the reason of their state."""
    return [
        {
            **msgspec.structs.asdict(view(listed.operation)),
            "why": listed.why,
            "age_s": _age_s(listed.operation, now_ms),
        }
        for group in groups
        for listed in group.entries
    ]


def operation_json(studied: OperationStudy, previews: Mapping[State, Consequence]) -> dict[str, object]:
    """Gives all that is known of one operation for programs, with what each decision would do."""
    history = [
        {
            "at": rfc3339(entry.at_ms),
            "state": entry.state,
            "event": entry.event,
            "text": sentence_of(entry),
            "seen": phrases_of(entry.evidence),
            "evidence": entry.evidence,
        }
        for entry in studied.history
    ]
    decisions = {
        decided: {"answer": _answer_json(each.answer), "consequences": sentences_of(each)}
        for decided, each in previews.items()
    }
    answer = None if studied.answer is None else _answer_json(studied.answer)
    shown = msgspec.structs.asdict(view(studied.operation))
    more = {"history": history, "chargebacks": studied.chargebacks, "answer": answer, "decisions": decisions}
    return {**shown, "why": reason_phrase(studied.history), **more}


def _row(listed: ReviewEntry, state: State | None, now_ms: int) -> tuple[str, Text, str]:
    operation = listed.operation
    stands = "" if state is not None else f"{operation.state.replace('_', ' ')}: "
    named = entry(operation.id, request_phrase(operation), f"on {operation.account}, by {operation.principal}")
    return span_text(_age_s(operation, now_ms)), named, f"{stands}{listed.why}"


def _count(group: Group) -> str:
    count = len(group.entries)
    if not group.has_more:
        return str(count)
    return (
        f"the newest {count}; --limit shows more" if group.state is None else f"the oldest {count}; --limit shows more"
    )


def _asked(operation: Operation, call: Effect | None, now_ms: int) -> Iterator[tuple[str, str]]:
    yield "what", request_phrase(operation)
    match call:
        case Charge(items=words) | Capture(description=words) | Refund(description=words) | Void(description=words):
            yield "described as", f"“{words}”"
    if isinstance(call, Refund) and call.amount_minor is None:
        yield "how much", "the whole payment" if operation.amount_minor is None else "what was left"
    age = span_text(_age_s(operation, now_ms))
    yield "when", f"{spoken(operation.created_at_ms)} UTC, {age} ago"
    yield "on, by", f"account {operation.account}, key {operation.principal}"
    if operation.idempotency_key is not None:
        yield "Idempotency-Key", operation.idempotency_key
    yield "request", operation.request_id


def _charged_back(studied: OperationStudy) -> Iterator[tuple[str, str]]:
    for each in studied.chargebacks:
        yield (
            each.at,
            f"payment {each.payment_id}, {each.currency} {bytes(each.amount).decode()}, {each.notification_id}",
        )


def _history(history: Sequence[JournalEntry]) -> Iterator[tuple[str, Text]]:
    for _, alike in groupby(history, key=_likeness):
        lines = list(alike)
        paragraphs = [Text(sentence_of(lines[0]))]
        seen = "; ".join(phrases_of(lines[0].evidence))
        if seen:
            paragraphs.append(Text(printable(seen[:1].upper() + seen[1:]), style="dim"))
        if len(lines) > 1:
            times = "once more, at" if len(lines) == _A_PAIR else f"{len(lines) - 1} times more, most recently at"
            paragraphs.append(Text(f"Repeated {times} {spoken(lines[-1].at_ms)}", style="dim"))
        yield spoken(lines[0].at_ms), Text("\n").join(paragraphs)


def _likeness(entry: JournalEntry) -> object:
    """Gives what makes a status inquiry equal to the one before it, so that a hundred of them need two lines."""
    is_inquiry = entry.event is Event.INQUIRED_ABOUT
    return (
        (entry.event, entry.evidence.seen, entry.evidence.control, entry.evidence.cause)
        if is_inquiry
        else entry.version
    )


def _preview(consequence: Consequence) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for sentence in consequence_lines(consequence):
        table.add_row("·", printable(sentence))
    return table


def _answer_text(answer: Answer) -> str:
    """Tells an answer in words: its status, its text, and the members of its data that are not null."""
    envelope = _decode_envelope(answer.body)
    code = "" if envelope.error is None else f" {envelope.error.code}"
    text = f"{answer.http_status}{code}, “{envelope.msg}”"
    data = [f"{name} {value}" for name, value in _members(envelope.data)]
    return f"{text}, with {', '.join(data)}" if data else text


def _members(raw_data: msgspec.Raw) -> Iterator[tuple[str, str]]:
    """Gives the members of an object that are not null; numbers with the digits that they have there."""
    if not bytes(raw_data).startswith(b"{"):
        return
    for name, raw in msgspec.json.decode(raw_data, type=dict[str, msgspec.Raw]).items():
        value = msgspec.json.decode(raw)
        if value is not None:
            yield name, value if isinstance(value, str) else bytes(raw).decode()


def _section(title: str, content: RenderableType) -> RenderableType:
    return Parts(Text(f"\n{title}", style="bold"), Padding(content, (0, 0, 0, INDENT)))


def _style(state: State | None) -> str:
    return "bold" if state is None else STYLES.get(state, "bold")


def _age_s(operation: Operation, now_ms: int) -> int:
    return max(now_ms - operation.created_at_ms, 0) // 1000


def _answer_json(answer: Answer) -> dict[str, object]:
    return {"http_status": answer.http_status, "body": msgspec.Raw(answer.body)}
