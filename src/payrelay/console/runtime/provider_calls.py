"""Asks the OpenID Connect provider that operators sign in by: what it publishes, its keys, and who somebody is.

Rules:

1. What the provider publishes is kept for a while; its keys are those of ``runtime.identity_provider_keys``.
2. No redirect is followed, every answer has a limit, and a log line has our words alone, never the provider's. What
   the provider publishes leads to its own host, which the settings name, or to public addresses.
3. The client's secret and a code go to the provider's token endpoint, and nowhere else.
"""

import asyncio
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import aiohttp
import msgspec
from structlog.typing import FilteringBoundLogger

from payrelay.clock import Clock
from payrelay.console.rules.sign_in.provider import (
    DISCOVERY_PATH,
    ProviderAnswerError,
    ProviderMetadata,
    ProviderPerson,
    ProviderRules,
    TryKeys,
    callable_by,
    metadata_of,
    person_of,
)
from payrelay.core.access.signatures import BadSignature, identity_claims, is_identity_token, key_id_of
from payrelay.core.secret import Secret
from payrelay.errors import Refusal
from payrelay.runtime.clients.receiver_names import GuardedResolver, NameThreads
from payrelay.runtime.connections import body_of, session_to_others
from payrelay.runtime.identity_provider_keys import (
    ANSWER_BYTES_MAX,
    FETCH_MAX_S,
    FetchError,
    IdentityProviderKeys,
    Jwks,
)

METADATA_KEPT_S: Final = 3_600.0
"""How long what the provider publishes is used without asking again."""
ASKED_AGAIN_S: Final = 5.0
"""After a failure nobody asks again before that: those who press a button over and over wait for no one."""


class ProviderDown(Exception):
    """The provider can't be asked now, or refuses the console itself."""


class ProviderRefused(Exception):
    """The provider has signed nobody in by this code, or its answer can't be believed."""


class _Tokens(msgspec.Struct, frozen=True):
    """The answer of the token endpoint; of its tokens only one is looked at."""

    id_token: str


class SignInProvider:
    """Asks one provider; ``way_back`` is where it leads browsers back to."""

    def __init__(
        self, rules: ProviderRules, client_secret: Secret, way_back: str, clock: Clock, log: FilteringBoundLogger
    ) -> None:
        self.rules = rules
        self.way_back = way_back
        self._client_secret = client_secret
        self._clock = clock
        self._log = log
        self._fetch_metadata = Jwks(rules.issuer.rstrip("/") + DISCOVERY_PATH)
        self._keys = IdentityProviderKeys(self._fetched_keys, clock, log)
        self._asking = asyncio.Lock()
        self._metadata: ProviderMetadata | None = None
        self._asked_at_s = float("-inf")

    async def metadata(self) -> ProviderMetadata:
        """Returns what the provider publishes; what it published last, where it is down. Raises ProviderDown."""
        async with self._asking:
            age_s = self._clock.boot_s() - self._asked_at_s
            if age_s < (ASKED_AGAIN_S if self._metadata is None else METADATA_KEPT_S):
                return self._known()
            self._asked_at_s = self._clock.boot_s()
            try:
                self._metadata = metadata_of(await self._fetch_metadata(), self.rules.issuer)
            except (FetchError, ProviderAnswerError) as error:
                self._log.warning("sign_in_provider_failed", reason=str(error))
            return self._known()

    async def person(self, code: str, keys: TryKeys) -> ProviderPerson:
        """Exchanges a code for the person whom the provider names by it. Raises ProviderDown, ProviderRefused."""
        claims = await self.claims(code, keys.code_verifier)
        try:
            return person_of(claims, self.rules, keys.nonce, self._clock.now_ms())
        except ProviderAnswerError as error:
            raise self._refused(str(error)) from None

    async def claims(self, code: str, code_verifier: Secret) -> dict[str, object]:
        """Exchanges a code for an id token, and gives its claims; the provider has signed them.

        Raises ProviderDown, ProviderRefused.
        """
        text = await self._id_token(await self.metadata(), code, code_verifier)
        key_id = key_id_of(text) if is_identity_token(text) else None
        try:
            key = None if key_id is None else await self._keys.find(key_id)
        except Refusal as error:
            raise ProviderDown from error
        if key is None:
            raise self._refused("no key of the provider has signed the id token")
        try:
            return identity_claims(text, key)
        except BadSignature:
            raise self._refused("the signature of the id token is wrong") from None

    async def close(self) -> None:
        """Ends a fetch of keys that is under way."""
        await self._keys.close()

    def _known(self) -> ProviderMetadata:
        if self._metadata is None:
            raise ProviderDown
        return self._metadata

    def _names(self) -> GuardedResolver:
        return GuardedResolver(callable_by(self.rules.issuer), NameThreads())

    async def _fetched_keys(self) -> bytes:
        return await Jwks(self._known().jwks_uri, resolver=self._names())()

    async def _id_token(self, metadata: ProviderMetadata, code: str, code_verifier: Secret) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.way_back,
            "code_verifier": code_verifier.reveal(),
        }
        headers = {"Accept": "application/json", "User-Agent": "payrelay"}
        secret, client_id = self._client_secret.reveal(), self.rules.client_id
        if "client_secret_basic" in metadata.token_endpoint_auth_methods_supported:
            headers["Authorization"] = aiohttp.encode_basic_auth(quote(client_id, safe=""), quote(secret, safe=""))
        else:
            form |= {"client_id": client_id, "client_secret": secret}
        status, body = await self._posted(metadata.token_endpoint, form, headers)
        if status == HTTPStatus.BAD_REQUEST:
            raise self._refused("the provider refuses the code")
        if status != HTTPStatus.OK:
            raise self._down(f"the provider's token endpoint answered with HTTP {status}")
        try:
            return msgspec.json.decode(body, type=_Tokens).id_token
        except (ValueError, RecursionError):
            raise self._refused("the provider's answer has no id token") from None

    async def _posted(self, address: str, form: dict[str, str], headers: dict[str, str]) -> tuple[int, bytes]:
        try:
            async with (
                session_to_others(FETCH_MAX_S, self._names()) as session,
                session.post(address, data=form, headers=headers, allow_redirects=False) as response,
            ):
                answer = await body_of(response, ANSWER_BYTES_MAX)
                if answer is None:
                    raise self._down("the answer of the provider's token endpoint is too long")
                return response.status, answer
        except (aiohttp.ClientError, OSError, ValueError, TimeoutError) as error:
            raise self._down("the provider's token endpoint can't be reached") from error

    def _down(self, reason: str) -> ProviderDown:
        self._log.warning("sign_in_provider_failed", reason=reason)
        return ProviderDown(reason)

    def _refused(self, reason: str) -> ProviderRefused:
        self._log.warning("sign_in_provider_refused", reason=reason)
        return ProviderRefused(reason)
