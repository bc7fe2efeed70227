"""The judge of every drill: what really happened to the money, against what clients were told and what the books say.

Nothing is excused. An effect that was done twice counts, whoever asked for it. An answer counts as false where the
ledger says otherwise, however careful its words are.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.drills.intentions import Deed, Intention
from tests.drills.told import FINAL, Meaning, Told

PERSONS_STATES: Final = frozenset({"held", "needs_attention"})


@dataclass(frozen=True, kw_only=True)
class BookEntry:
    """An operation in the books: its states, oldest first."""

    id: str
    kind: str
    key: str | None
    order_id: str | None
    states: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that a judge is given.

    Attributes:
        ledger: the simulator's entries.
        told: by an intention's name, what its client heard, oldest first.
        books: the operations in the end.
        findings: what the books' own audit finds wrong.
        unknown_reads: operations that a client was told of, and that were not found when it asked.
        decided: names of checkouts that an operator decided about.
    """

    intentions: Sequence[Intention]
    ledger: Sequence[Mapping[str, Any]]
    told: Mapping[str, Sequence[Told]]
    books: Sequence[BookEntry]
    findings: Sequence[str] = ()
    unknown_reads: Sequence[str] = ()
    decided: Collection[str] = ()


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a drill came to; each list names the intentions, and why.

    Attributes:
        effects: how many entries of the ledger belong to intentions.
        doubles: effects beyond the first.
        false_answers: what a client was told and wasn't so.
        lost: what was accepted or done, and neither the books nor a final answer has.
        unanswered: what has no final answer in the end, and waits for no person.
        persons: how many intentions went to a person.
    """

    effects: int
    persons: int
    doubles: list[str] = field(default_factory=list)
    false_answers: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """True where nothing was as it must not be."""
        return not (self.doubles or self.false_answers or self.lost or self.findings)


def judge(evidence: Evidence) -> Verdict:
    """Gives the verdict."""
    effects: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for entry in evidence.ledger:
        effects[entry["kind"], entry["order_id"]].append(entry)
    by_key = {each.key: each for each in evidence.books if each.key is not None}
    by_id = {each.id: each for each in evidence.books}
    verdict = Verdict(
        effects=sum(len(_effects_of(each, effects)) for each in evidence.intentions),
        persons=sum(_went_to_a_person(each, evidence, by_key, by_id) for each in evidence.intentions),
        findings=list(evidence.findings),
        false_answers=[f"{each}: it is not found, although a client was told of it" for each in evidence.unknown_reads],
    )
    orders = Counter((each.kind, each.order_id) for each in evidence.books)
    for intention in evidence.intentions:
        done, heard = _effects_of(intention, effects), evidence.told.get(intention.name, ())
        name = f"{intention.name} ({intention.deed})"
        if len(done) > 1:
            verdict.doubles.extend([f"{name}: done {len(done)} times"] * (len(done) - 1))
        verdict.false_answers.extend(f"{name}: {why}" for why in _false_answers(intention, done, heard))
        last = heard[-1].meaning if heard else Meaning.SILENCE
        was_accepted = done or any(each.meaning in {Meaning.DONE, Meaning.OPEN, Meaning.PERSON} for each in heard)
        is_known = intention.key in by_key or any(each.operation_id in by_id for each in heard)
        is_known = is_known or (intention.deed is Deed.CHECKOUT and last in FINAL | {Meaning.OPEN})
        is_known = is_known or orders[_book_kind(intention.deed), intention.order_id] > 0
        if was_accepted and not is_known:
            verdict.lost.append(f"{name}: done {len(done)} times, last heard {last}, and not in the books")
        elif heard and last not in {Meaning.DONE, Meaning.NEVER, Meaning.PERSON}:
            verdict.unanswered.append(f"{name}: {heard[-1].status} {heard[-1].code} {heard[-1].msg}")
    return verdict


def effects_of(intention: Intention, ledger: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Gives what the gateway's portal shows of an intention."""
    return [each for each in ledger if (each["kind"], each["order_id"]) == intention.entry]


def _effects_of(
    intention: Intention, effects: Mapping[tuple[str, str], list[Mapping[str, Any]]]
) -> list[Mapping[str, Any]]:
    return effects.get(intention.entry, [])


def _false_answers(intention: Intention, done: Sequence[Mapping[str, Any]], heard: Sequence[Told]) -> Iterator[str]:
    """Tells each kind of false answer once for each intention, however often it was given."""
    meanings = {each.meaning for each in heard}
    if Meaning.DONE in meanings and not done:
        yield "told as done, and was not done"
    # A page is refused because its order may be paid, and an operator is called: that says nothing false.
    if Meaning.NEVER in meanings and done and intention.deed is not Deed.CHECKOUT:
        refusal = next(each for each in heard if each.meaning is Meaning.NEVER)
        yield f"told as not done ({refusal.status} {refusal.code}: {refusal.msg}), and was done"
    if intention.deed is Deed.CHARGE and done:
        named = {str(each.data["payment_id"]) for each in heard if each.data.get("payment_id")}
        real = {str(each["payment_id"]) for each in done}
        if named - real:
            yield f"told of payment {', '.join(sorted(named - real))}, and it was {', '.join(sorted(real))}"


def _went_to_a_person(
    intention: Intention, evidence: Evidence, by_key: Mapping[str, BookEntry], by_id: Mapping[str, BookEntry]
) -> bool:
    heard = evidence.told.get(intention.name, ())
    entries = [by_id[each.operation_id] for each in heard if each.operation_id in by_id]
    if intention.key is not None and intention.key in by_key:
        entries.append(by_key[intention.key])
    if intention.deed is Deed.CHECKOUT:
        return intention.name in evidence.decided or (bool(heard) and heard[-1].meaning is Meaning.NEVER)
    in_books = any(PERSONS_STATES.intersection(entry.states) for entry in entries)
    return in_books or any(each.meaning is Meaning.PERSON for each in heard)


def _book_kind(deed: Deed) -> str:
    return "refund" if deed is Deed.PARTIAL_REFUND else str(deed)
