"""Admission of callers: the credential of a request, its quota, and the count of wrong credentials."""

from payrelay.api.auth.authentication import (
    AuthenticationFailure,
    Authenticator,
    CredentialSource,
    TokenReader,
    TokenReaders,
    Unauthenticated,
)
from payrelay.api.auth.client_tokens import ClientTokenReader, TokenSources
from payrelay.api.auth.failed_credentials import FailedCredentials
from payrelay.api.auth.quota import Quota
from payrelay.api.connections.open_connections import OpenConnections
from payrelay.api.connections.shares import shares_of
from payrelay.api.http.visit import Visit
from payrelay.api.metrics.counters import Metrics
from payrelay.core.access.credential import Credential, require
from payrelay.errors import Code, Refusal, StoreError
from payrelay.flows.relay import Relay


class CallerAdmission:
    """Admits callers with a valid credential.

    Args:
        credentials: the stored keys.
        identity_provider: reads tokens of the identity provider; None where none is configured.
        relay: has the signing keys, the client tokens and the clock.
        metrics: counts callers who are not admitted.
        connections: count for the principals whose credentials come on them.
    """

    def __init__(
        self,
        credentials: CredentialSource,
        identity_provider: TokenReader | None,
        relay: Relay,
        metrics: Metrics,
        connections: OpenConnections,
    ) -> None:
        clock = relay.clock
        client_tokens = ClientTokenReader(TokenSources(relay.access.signing_keys, relay.access.client_tokens), clock)
        readers = TokenReaders(client_tokens=client_tokens, identity_provider=identity_provider)
        self._authenticator = Authenticator(credentials, clock, readers)
        self._quota = Quota(clock)
        self._failed_credentials = FailedCredentials(clock)
        self._metrics = metrics
        self._connections = connections

    async def begin(self, visit: Visit) -> Credential:
        """Gives the credential of a new request, and counts the request in its quota; raises Refusal."""
        try:
            credential = await self.admit(visit)
        except StoreError:
            self._name_caller(visit)
            raise
        visit.log_record.principal, visit.log_record.credential_id = credential.principal, credential.id
        visit.admitted = shares_of(credential, self._connections.limits.principal_connections_max)
        self._connections.admit(visit.connection, visit.admitted)
        visit.quota_headers = self._quota.take(credential)
        return credential

    def _name_caller(self, visit: Visit) -> None:
        """Names the caller for the log and the metrics while the store can't say whether it is still admitted."""
        known = self._authenticator.last_seen(visit.headers)
        if known is not None:
            visit.log_record.principal, visit.log_record.credential_id = known.principal, known.id

    async def admit(self, visit: Visit) -> Credential:
        """Gives the caller's credential; raises Refusal (unauthenticated; rate_limited after too many wrong ones)."""
        try:
            return await self._authenticator.admit(visit.headers)
        except Unauthenticated as refused:
            self._metrics.credential_failed(refused.failure)
            if refused.reason is not None:
                self._metrics.token_refused(refused.reason)
            if refused.failure is AuthenticationFailure.WRONG:
                self._failed_credentials.note(visit.log_record.client)
            raise

    async def is_still_admitted(self, visit: Visit) -> bool:
        """Tells whether the caller of a request still has its permission; True while that can't be checked."""
        try:
            credential = await self._authenticator.admit(visit.headers)
            if visit.scope_needed is not None and visit.log_record.account is not None:
                require(credential, visit.scope_needed, visit.log_record.account)
        except StoreError:
            return True
        except Refusal as refusal:
            return refusal.code is Code.UNAVAILABLE
        return True
