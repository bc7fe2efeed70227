"""Knows whether the database may lack commits that somebody was told of, and whether a recovery is under way.

Each process reads the identity of the database at most IDENTITY_KEPT_MS after it changed. A process that finds the
database behind what it knows says so here; from then on it lets nothing take effect at a gateway. It also stores that
in the identity, because the other processes may never have been told of what is missing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from structlog.typing import FilteringBoundLogger

from payrelay.clock import Clock
from payrelay.core.database.incarnations import DatabaseIdentity, Incarnation, lost_since, wait_until_shown_ms
from payrelay.core.database.lost_ids import may_be_lost, may_lack_a_change, tries_lost_since_ms
from payrelay.errors import Code, Refusal
from payrelay.runtime.database.cleared_checkouts import ClearedCheckouts

IDENTITY_KEPT_MS: Final = 1_000
"""How late a process may learn that a recovery has begun or ended."""
AHEAD_MS: Final = 5_000
"""How far in the future the end of the lost window may seem before that is told: clocks of machines differ a little."""
RETRY_AFTER_S: Final = 30
"""An operator has to act; a client that tries every half minute finds it done soon enough."""
BEHIND_SENTENCE: Final = (
    "the database may lack operations that were carried out, and an operator must start its recovery;"
    " this request was not sent"
)
SETTLING_SENTENCE: Final = (
    "another server of the database takes the writes, and is being compared; this request was not sent"
)
SETTLING_RETRY_AFTER_S: Final = 10
RETURNING_SENTENCE: Final = (
    "a recovery has just begun, and the service stores again what its processes remember; this request was not sent"
)
RETURN_MS: Final = 5_000
"""How long after the beginning of a recovery processes store again what they remember: each knows of it within
IDENTITY_KEPT_MS, and begins with its next round of jobs."""
BEGUN_SENTENCE: Final = "a recovery of the database has just begun; this request was not sent"
COPIED_SENTENCE: Final = "another database took the place of this one; this request was not sent"


Change = Callable[[Callable[[DatabaseIdentity], DatabaseIdentity]], Awaitable[DatabaseIdentity]]
"""Changes the identity; ``store.database.identity.IdentityStore.change``."""

UNKNOWN_SENTENCE: Final = (
    "isn't known here, and may be among the commits that the database lost; that is known when its recovery has ended"
)
"""After the noun of what was asked for."""
STALE_SENTENCE: Final = (
    "was made before the database lost commits, and may have changed since; that is known when its recovery has ended"
)
"""After the noun of what was asked for."""


class LostCommits:
    """Says whether effects are allowed on this database, and which recovery they have to respect.

    ``read`` reads the identity of the database from it, and ``change`` changes it; None where nothing is stored.

    ``cleared_checkouts`` are those that the gateway showed as not paid in a lost window. ``return_ms`` is how long
    after the beginning of a recovery others may store again what they remember; 0 where this process waits for none.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[DatabaseIdentity]],
        clock: Clock,
        log: FilteringBoundLogger,
        *,
        change: Change | None = None,
    ) -> None:
        self.cleared_checkouts = ClearedCheckouts()
        self.is_settling = False
        """Whether another server has just taken the writes, so that nobody can tell yet what is missing there."""
        self._read_identity = read
        self._change_identity = change
        self.return_ms = 0
        self._returned_at_s: float | None = None
        self._clock = clock
        self._log = log
        self._identity: DatabaseIdentity | None = None
        self._read_at_s = float("-inf")
        self._reading: asyncio.Task[DatabaseIdentity] | None = None
        self._behind: tuple[int, str] | None = None
        self._is_lasting = True
        self.told_of: int | None = None
        """The incarnation of which this process has told the operators."""
        self._seen: tuple[int, float] | None = None

    @property
    def known(self) -> DatabaseIdentity | None:
        """The identity as it was last read; None before that."""
        return self._identity

    @property
    def behind(self) -> str | None:
        """Why the database counts as behind, in words, as far as this process knows; None where it doesn't."""
        if self._behind is None or (self._identity is not None and self._identity.current.number > self._behind[0]):
            return None
        return self._behind[1]

    @property
    def must_wait(self) -> bool:
        """Whether nothing may take effect, or be concluded from what is stored or isn't, as far as this process knows.

        So it is while the database is behind, or may prove so, and while processes store again what they remember.
        """
        return self.is_settling or self.behind is not None or (self._returned_at_s is not None and self.is_returning)

    @property
    def is_returning(self) -> bool:
        """Whether a recovery has just begun, so that processes store again what they remember of the lost commits."""
        return self._returned_at_s is not None and self._clock.boot_s() < self._returned_at_s

    async def is_behind(self) -> bool:
        """Tells whether the database is behind, as it was at most IDENTITY_KEPT_MS ago, or may prove so in a moment.

        Raises as ``identity``.
        """
        await self.identity()
        return self.must_wait

    def fall_behind(self, incarnation: int, reason: str, *, is_lasting: bool = True) -> None:
        """Says that the database lacks something which was there in ``incarnation``; only a later one ends that.

        Without ``is_lasting`` it is so for as long as this process lives, and is not stored.
        """
        if self._behind is not None and self._behind[0] > incarnation:
            return  # a comparison that began before a recovery says nothing of what was found after it
        if self._behind is None or self._behind[0] != incarnation:
            self._log.error("database_behind", incarnation=incarnation, reason=reason)
        self._behind = (incarnation, reason)
        if is_lasting and not self._is_lasting:
            self.told_of = None
        self._is_lasting = is_lasting

    async def require_effects_allowed(self) -> Incarnation | None:
        """Gives the incarnation whose recovery is under way; None where there is none.

        Raises Refusal (unavailable) where the database is behind and no recovery was started, while another server is
        compared, while processes store again what they remember, and where another database took its place;
        StoreUnavailable where that can't be known.
        """
        identity = await self.identity()
        if identity.copied_to:
            raise Refusal(Code.UNAVAILABLE, COPIED_SENTENCE, retry_after_s=RETRY_AFTER_S)
        current = identity.current
        if self.behind is not None:
            raise Refusal(Code.UNAVAILABLE, BEHIND_SENTENCE, retry_after_s=RETRY_AFTER_S)
        if self.is_settling:
            raise Refusal(Code.UNAVAILABLE, SETTLING_SENTENCE, retry_after_s=SETTLING_RETRY_AFTER_S)
        if self._returned_at_s is not None and self.is_returning:
            raise Refusal(Code.UNAVAILABLE, RETURNING_SENTENCE, retry_after_s=RETURN_MS // 1000)
        return current if current.is_recovering else None

    async def require_same(self, recovery: int | None) -> None:
        """Raises Refusal (unavailable) where a recovery has begun since a request was cleared.

        ``recovery`` is the number of the incarnation in whose recovery it was cleared; None for none. Raises as
        ``require_effects_allowed``, too.
        """
        current = await self.require_effects_allowed()
        if current is not None and current.number != recovery:
            raise Refusal(Code.UNAVAILABLE, BEGUN_SENTENCE)

    async def require_known(self, id_: str | None, noun: str) -> None:
        """Raises Refusal (unavailable) where an id that is unknown here may have been given out in lost commits.

        Else the caller may say that there is no such thing, as a final answer. None stands for a name that tells no
        time. Raises StoreUnavailable where that can't be known.
        """
        current = (await self.identity()).current
        if may_be_lost(id_, current, is_behind=self.must_wait):
            raise Refusal(Code.UNAVAILABLE, f"this {noun} {UNKNOWN_SENTENCE}", retry_after_s=RETRY_AFTER_S)

    async def require_current(self, made_ms: int, noun: str) -> None:
        """Raises Refusal (unavailable) where a change of something that was made then may be lost.

        Else the caller may say, as a final answer, what the thing can't do. Raises StoreUnavailable as above.
        """
        current = (await self.identity()).current
        if may_lack_a_change(made_ms, current, is_behind=self.must_wait):
            raise Refusal(Code.UNAVAILABLE, f"this {noun} {STALE_SENTENCE}", retry_after_s=RETRY_AFTER_S)

    async def tries_lost_since_ms(self, principal: str) -> int | None:
        """Gives since when earlier tries of a principal's requests may be lost; None where none may be.

        Raises StoreUnavailable where that can't be known.
        """
        current = (await self.identity()).current
        return tries_lost_since_ms(principal, current, is_behind=self.must_wait)

    def known_for_ms(self, number: int) -> int:
        """Gives how long this process has known of an incarnation, in ms by a steady clock; 0 where it doesn't."""
        if self._seen is None or self._seen[0] < number:
            return 0
        return int((self._clock.boot_s() - self._seen[1]) * 1000)

    def wait_ms(self, incarnation: Incarnation | None, shown_after_ms: int) -> int:
        """Gives how long the gateway may not show yet what was begun in a lost window, in ms; 0 or less where it does.

        ``shown_after_ms`` is how long that takes from the window's end on; see ``wait_until_shown_ms``.
        """
        if incarnation is None or incarnation.lost is None:
            return 0
        known_for_ms = self.known_for_ms(incarnation.number)
        now_ms = self._clock.now_ms()
        return wait_until_shown_ms(incarnation.lost, shown_after_ms, now_ms=now_ms, known_for_ms=known_for_ms)

    async def incarnation(self) -> int:
        """Gives the number of the newest incarnation; raises as ``identity``."""
        return (await self.identity()).current.number

    async def store_behind(self) -> None:
        """Stores that the database is behind, so that no other process lets anything take effect either.

        Does nothing where it isn't behind, or not for good, or that is stored. May be repeated. Raises as ``identity``.
        """
        current, reason = (await self.identity()).current, self.behind
        if reason is None or not self._is_lasting or current.behind or self._change_identity is None:
            return
        number = current.number

        def stored(identity: DatabaseIdentity) -> DatabaseIdentity:
            newest = identity.current
            if newest.number != number or newest.behind:
                return identity
            return identity.with_current(msgspec.structs.replace(newest, behind=reason))

        self._learn(await self._change_identity(stored))  # by now it may be of a recovery that has begun meanwhile

    async def identity(self) -> DatabaseIdentity:
        """Gives the identity as it was at most IDENTITY_KEPT_MS ago; callers at one moment share one read.

        Raises StoreUnavailable, StoreUnusable.
        """
        if self._identity is not None and (self._clock.boot_s() - self._read_at_s) * 1000 < IDENTITY_KEPT_MS:
            return self._identity
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(self._clock.boot_s()))
            self._reading.add_done_callback(self._have_read)
        # A client that goes away cancels its wait, not the read that others wait for.
        return await asyncio.shield(self._reading)

    async def refresh(self) -> DatabaseIdentity:
        """Reads the identity anew, where the database may be another one by now. Raises as ``identity``."""
        self._read_at_s = float("-inf")
        return await self.identity()

    def _have_read(self, reading: "asyncio.Task[DatabaseIdentity]") -> None:
        self._reading = None
        if not reading.cancelled():
            reading.exception()  # retrieved here too, because all waiting clients may be gone

    async def _read(self, now_s: float) -> DatabaseIdentity:
        identity = await self._read_identity()
        self._read_at_s = now_s
        self._learn(identity)
        return identity

    def _learn(self, identity: DatabaseIdentity) -> None:
        """Takes over the identity that the database has now, with whatever follows from its newest incarnation."""
        before, self._identity = self._identity, identity
        if self._seen is None or self._seen[0] != identity.current.number:
            self._seen = identity.current.number, self._clock.boot_s()
            self._returned_at_s = self._return_of(identity.current)
        lost = None if before is None else lost_since(before, identity)
        if lost is not None:
            self.fall_behind(identity.current.number, lost)
        if before is None or before.current != identity.current:
            self._tell(identity.current)

    def _return_of(self, current: Incarnation) -> float | None:
        """Gives when all that is remembered has been stored again, in ``boot_s``; None where nothing is."""
        if not (self.return_ms and current.is_recovering):
            return None
        # A process that starts later waits for no one, and one whose clock is behind no longer than the others.
        begun_for_ms = max(0, self._clock.now_ms() - current.began_at_ms)
        return self._clock.boot_s() + (self.return_ms - begun_for_ms) / 1000

    def _tell(self, current: Incarnation) -> None:
        if current.behind:
            self.fall_behind(current.number, current.behind)
        elif current.is_recovering:
            self._log.warning("recovery_under_way", incarnation=current.number, operator=current.operator)
            ahead_ms = 0 if current.lost is None else current.lost.until_ms - self._clock.now_ms()
            if ahead_ms > AHEAD_MS:
                self._log.error("recovery_clock_ahead", incarnation=current.number, ahead_s=ahead_ms // 1000)
        elif current.lost is not None:
            self._log.info("recovery_ended", incarnation=current.number)
