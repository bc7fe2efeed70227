"""Keeps whom the provider named until the second factor was shown, so that nobody is linked by half a sign-in.

It lies among the challenges, for the session that waits for the code. A keyed hash under the session's token, which the
store doesn't have, keeps whoever writes to that table from naming somebody else.
"""

import hmac
from typing import Final

from payrelay.console.flows.parts import ConsoleParts
from payrelay.core.operators.operator import ConsoleSession, token_hash
from payrelay.core.secret import Secret

BY_PROVIDER: Final = "by the company's account, "
"""How the details of a line begin that tells of a sign-in by the provider."""


async def keep_subject(parts: ConsoleParts, session: ConsoleSession, token: Secret, subject_hash: str) -> None:
    """Keeps whom the provider named, for as long as the session may wait. Raises StoreError."""
    text = f"{subject_hash} {_proof(token.reveal(), subject_hash)}"
    name = _name(session)
    await parts.challenges.add(
        name, session.token_hash, text, now_ms=session.began_at_ms, ends_at_ms=session.ends_at_ms
    )


async def kept_subject(parts: ConsoleParts, session: ConsoleSession, token: str, now_ms: int) -> str | None:
    """Gives whom the provider named for this session, once; None where no provider did. Raises StoreError."""
    text = await parts.challenges.take(_name(session), session.token_hash, now_ms)
    subject_hash, _, proof = (text or "").partition(" ")
    return subject_hash if proof and hmac.compare_digest(proof, _proof(token, subject_hash)) else None


async def began_by_provider(parts: ConsoleParts, session: ConsoleSession) -> bool:
    """Tells whether the line of the history by which a session was opened is of the provider. Raises StoreError."""
    lines = await parts.acts.before(session.act + 1, 1)
    return bool(lines) and lines[0].number == session.act and lines[0].details.startswith(BY_PROVIDER)


def _name(session: ConsoleSession) -> str:
    return token_hash(f"provider/{session.id}")


def _proof(token: str, subject_hash: str) -> str:
    return hmac.new(token.encode(), f"payrelay provider link {subject_hash}".encode(), "sha256").hexdigest()
