"""Who is let in: the credential of a request, its quota, and the count of those who try wrong ones."""

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
from payrelay.api.http.visit import Visit
from payrelay.api.metrics.counters import Metrics
from payrelay.core.access.credential import Credential, require
from payrelay.errors import Code, Refusal, StoreError
from payrelay.flows.relay import Relay


class CallerAdmission:
    """Lets in who has a credential that counts.

    Args:
        credentials: where keys are kept.
        identity_provider: lets in who has a token of an identity provider's; None where none is configured.
        relay: knows our own client tokens, and what time it is.
        metrics: counts those who are not let in.
    """

    def __init__(
        self, credentials: CredentialSource, identity_provider: TokenReader | None, relay: Relay, metrics: Metrics
    ) -> None:
        clock = relay.clock
        client_tokens = ClientTokenReader(TokenSources(relay.signing_keys, relay.client_tokens), clock)
        readers = TokenReaders(client_tokens=client_tokens, identity_provider=identity_provider)
        self._doorkeeper = Authenticator(credentials, clock, readers)
        self._quota = Quota(clock)
        self._failed_credentials = FailedCredentials(clock)
        self._metrics = metrics

    async def begin(self, visit: Visit) -> Credential:
        """Gives the credential of a request that begins, and takes one from its quota; raises Refusal."""
        credential = await self.admit(visit)
        visit.log_record.principal, visit.log_record.credential_id = credential.principal, credential.id
        visit.quota_headers = self._quota.take(credential)
        return credential

    async def admit(self, visit: Visit) -> Credential:
        """Gives the caller's credential; raises Refusal (unauthenticated, rate_limited for too many wrong ones)."""
        try:
            return await self._doorkeeper.admit(visit.headers)
        except Unauthenticated as refused:
            self._metrics.credential_failed(refused.failure)
            if refused.reason is not None:
                self._metrics.token_refused(refused.reason)
            if refused.failure is AuthenticationFailure.WRONG:
                self._failed_credentials.note(visit.log_record.client)
            raise

    async def is_still_let_in(self, visit: Visit) -> bool:
        """Tells whether the credential of a request still opens what it asked for; it does while nobody can tell."""
        try:
            credential = await self._doorkeeper.admit(visit.headers)
            if visit.scope_needed is not None and visit.log_record.account is not None:
                require(credential, visit.scope_needed, visit.log_record.account)
        except StoreError:
            return True
        except Refusal as refusal:
            return refusal.code is Code.UNAVAILABLE
        return True
