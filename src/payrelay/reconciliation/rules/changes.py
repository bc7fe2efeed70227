"""What a day comes to now, beside what it came to when a person last saw it.

A day is closed as it was seen. So this names everything in which two reports of it differ, and nothing else: not when
the comparison was made.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from payrelay.core.money import decimal_text
from payrelay.reconciliation.rules.days import DayReport, Sum
from payrelay.reconciliation.rules.verdicts import VERDICT_WORDS, BooksFinding

NAMED_MAX: Final = 8
"""Changes that are named; more are counted."""


def changes_between(seen: DayReport, now: DayReport) -> list[str]:
    """Names what is otherwise now; an empty list where the two reports of a day say the same."""
    changes = [
        *_figures(seen.sums, now.sums, ""),
        *_figures(seen.corrections, now.corrections, "corrections, "),
        *_figures(seen.taken_back, now.taken_back, "taken back, "),
        *_listed(seen.listed, now.listed),
        *(f"no longer rests on: {each}" for each in seen.rests_on if each not in now.rests_on),
        *(f"rests on now: {each}" for each in now.rests_on if each not in seen.rests_on),
        *(f"known now: each {each.movement}" for each in seen.unseen if each not in now.unseen),
        *(f"not known now: each {each.movement}" for each in now.unseen if each not in seen.unseen),
    ]
    if not changes and seen.fingerprint != now.fingerprint:
        return ["the sums are equal, and they are of other things"]
    left = len(changes) - NAMED_MAX
    return changes if left <= 0 else [*changes[:NAMED_MAX], f"and {left} more"]


def _figures(seen: Iterable[Sum], now: Iterable[Sum], of: str) -> Iterator[str]:
    before, after = _by_name(seen), _by_name(now)
    for name in sorted(before.keys() | after.keys()):
        was, is_now = before.get(name), after.get(name)
        if was != is_now:
            yield f"{of}{name}: {_figure(was)}, and now {_figure(is_now)}"


def _by_name(sums: Iterable[Sum]) -> dict[str, Sum]:
    return {f"{each.currency} {each.movement} {VERDICT_WORDS[each.verdict]}": each for each in sums}


def _figure(of: Sum | None) -> str:
    if of is None:
        return "none"
    ours, theirs, fees = map(decimal_text, (of.ours_minor, of.theirs_minor, of.fee_minor))
    return f"{of.count} (ours {ours}, theirs {theirs}, fees {fees})"


def _listed(seen: Iterable[BooksFinding], now: Iterable[BooksFinding]) -> Iterator[str]:
    before, after = {each.id: each for each in seen}, {each.id: each for each in now}
    for name in sorted(before.keys() | after.keys()):
        was, is_now = before.get(name), after.get(name)
        one = is_now or was
        if one is not None and _said(was) != _said(is_now):
            told = "not listed" if was is None else _words(was)
            yield f"{one.movement} {one.identity}: {told}, and now {'not listed' if is_now is None else _words(is_now)}"


def _said(of: BooksFinding | None) -> tuple[object, ...]:
    return () if of is None else (of.content, of.day, of.why, of.basis)


def _words(of: BooksFinding) -> str:
    aspects = f" ({', '.join(of.aspects)})" if of.aspects else ""
    return f"{VERDICT_WORDS[of.verdict]}{aspects}, {of.why}"
