"""What an actor is shown of facts and journal entries; ``core.operators.roles`` decides which fields that are."""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from payrelay.core.operators.roles import Field
from payrelay.core.payments.operation import JournalEntry
from payrelay.flows.operators.parts import Actor

RestrictedFact: TypeAlias = tuple[Field, str, str | None]
"""What a text is, its title on a page, and the text; None where it isn't known."""


def facts_for(actor: Actor, *facts: RestrictedFact) -> tuple[tuple[str, str], ...]:
    """Gives those of some facts that are known and that the actor sees, as titles and texts."""
    return tuple((title, text) for field, title, text in facts if text is not None and actor.sees(field))


def entries_for(actor: Actor, history: Sequence[JournalEntry]) -> list[JournalEntry]:
    """Gives the journal entries of an operation, without the reasons that the actor doesn't see."""
    return [
        msgspec.structs.replace(entry, evidence=actor.without_words(entry.evidence, reason=None)) for entry in history
    ]
