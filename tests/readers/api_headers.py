"""The readers of what callers of the API send before the body: the address of a request, and its headers.

The server bounds the request line and all headers together by HEADERS_BYTES_MAX. It also takes no more than 100
headers, which is its own choice and not counted on here.
"""

import base64
import ipaddress
import logging
from typing import Final

from joserfc import jws
from joserfc.jwk import Key, OKPKey
from opentelemetry.sdk.trace import TracerProvider
from tests.readers.reader import Reader, Shape, finished

from payrelay.api.auth.authentication import Authenticator, TokenReaders
from payrelay.api.auth.client_tokens import ClientTokenReader, TokenSources
from payrelay.api.auth.identity_provider import IdentityTokenReader
from payrelay.api.connections.connection import owner_at
from payrelay.api.http.cross_origin import Browsers
from payrelay.api.http.incoming_request import (
    BodyTimeout,
    Headers,
    Message,
    Networks,
    client_address,
    read_body,
    request_id_of,
    require_json,
    require_type,
)
from payrelay.api.http.preferences import insists_on_new, preferred_wait_s
from payrelay.api.public.language import LANGUAGES
from payrelay.api.public.page_reader import chosen_language
from payrelay.api.public.router import PublicRouter
from payrelay.api.requests.parameters import read_query
from payrelay.api.requests.router import Router
from payrelay.api.routes.events import AFTER
from payrelay.api.routes.table import ROUTES
from payrelay.api.serving import HEADERS_BYTES_MAX
from payrelay.clock import Clock
from payrelay.core.access.client_token import TEXT_LENGTH_MAX, Parentage
from payrelay.core.access.credential import Credential, Scope
from payrelay.core.access.identity_provider import IdentityProvider
from payrelay.core.access.person_names import PersonNames
from payrelay.core.access.signatures import IDENTITY_TOKEN_LENGTH_MAX, SigningKey
from payrelay.core.payments.idempotency import parse_key
from payrelay.flows.checkouts.way_to_gateway import secret_hash_of
from payrelay.tracing.opentelemetry_spans import OpenTelemetrySpans

logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # as in the service, which writes no such text

_PEER: Final = "10.0.0.1"
_TRUSTED: Final = Networks((ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("fe80::/10")))
_BROWSERS: Final = Browsers(("https://shop.example",))
_ROUTER: Final = Router(ROUTES)
_PUBLIC_ROUTER: Final = PublicRouter(("gateway",))
_SEGMENTS: Final = tuple(route.segment for route in ROUTES if route.segment is not None)
_PARAMETERS: Final = (*{each.name: each for route in ROUTES for each in route.query}.values(), *_SEGMENTS)
_SPANS: Final = OpenTelemetrySpans(TracerProvider(shutdown_on_exit=False))
_TRACEPARENT: Final = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
_TRACEPARENT_MAX: Final = 512
_TRACESTATE_MAX: Final = 8_192
"""OpenTelemetry reads no longer ones."""
_KEY: Final = SigningKey(id="k", secret=b"s" * 32, made_at_ms=0)
_PROVIDERS_KEY: Final = OKPKey.generate_key("Ed25519", {"kid": "k"})
_PROVIDER: Final = IdentityProvider(
    issuer="https://login.example",
    audience="shop",
    customer_claim="sub",
    claim_is="reference",
    order_claim="order",
    amount_claim="amount",
    currency_claim="currency",
    principal="shop",
    scopes=frozenset({Scope.PAYMENTS_READ}),
    accounts=None,
)


class _Stored:
    """A store with one signing key, one key of an identity provider, and no credential."""

    async def get(self, credential_id: str) -> Credential | None:  # noqa: ARG002 - a CredentialSource
        return None

    async def find(self, key_id: str) -> SigningKey | None:  # noqa: ARG002 - a KeySource
        return _KEY

    async def parentage(self, token_id: str) -> Parentage | None:  # noqa: ARG002 - a ParentageSource
        return None


class _Provider:
    """The keys of an identity provider that has one."""

    async def find(self, key_id: str) -> Key | None:  # noqa: ARG002 - an IdentityKeySource
        return _PROVIDERS_KEY


def _one(name: bytes, value: bytes) -> Headers:
    return Headers([(name, value)])


def _several(text: bytes) -> Headers:
    """Makes headers of lines."""
    pairs = [line.partition(b":") for line in text.split(b"\n") if line]
    return Headers([(name, value) for name, _, value in pairs])


def _admit(text: bytes) -> object:
    """Reads a key or a token, of an unknown caller each time."""
    clock, stored = Clock(), _Stored()
    identity = IdentityTokenReader(_PROVIDER, _Provider(), PersonNames(b"s" * 32), clock)
    readers = TokenReaders(ClientTokenReader(TokenSources(stored, stored), clock), identity)
    return finished(Authenticator(stored, clock, readers).admit(_one(b"authorization", b"Bearer " + text)))


def _admit_claims(claims: bytes) -> object:
    """Reads a token of an identity provider that has signed whatever its users are called."""
    header = {"alg": "Ed25519", "kid": "k"}
    return _admit(jws.serialize_compact(header, claims, _PROVIDERS_KEY, algorithms=["Ed25519"]).encode())


def _coded(text: bytes) -> bytes:
    """Gives a part of a JWT that may stand before or behind others: as many bytes as whole groups need."""
    return base64.urlsafe_b64encode(text + b" " * (-len(text) % 3))


def _found(path: bytes) -> object:
    """Finds a path among the account's routes, and among the public ones."""
    segments = path.split(b"/")
    return _ROUTER.find(segments[3:]), _PUBLIC_ROUTER.find(segments)


def _traced(traceparent: str, tracestate: str) -> object:
    with _SPANS.of_request(traceparent, tracestate) as span:
        return span.traceparent


async def _body_of(headers: Headers) -> bytes:
    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    return await read_body(receive, headers, BodyTimeout())


_VALUES: Final = (
    Shape("commas", b","),
    Shape("quotes", b'"'),
    Shape("escapes", b'"\\'),
    Shape("an escape behind an escape", b"\\\\", before=b'"'),
    Shape("spaces", b" "),
    Shape("semicolons", b";"),
)
_TOKEN_HEADERS: Final = (
    Shape(
        "a long header", _coded(b'"%07d":0,' % 1), _coded(b'{"kid":"k","alg":"HS256",'), _coded(b'"":0}') + b".e30.AA"
    ),
    Shape("a nested header", _coded(b"[[["), _coded(b'{"a":'), b".e30.AA"),
    Shape("a long key id", _coded(b"\\u00e9"), _coded(b'{"kid":"'), _coded(b'"}') + b".e30.AA"),
    Shape("a long payload", b"AAAA", _coded(b'{"alg":"HS256","kid":"k"}') + b".", b".AA"),
    Shape("a long signature", b"AAAA", _coded(b'{"alg":"HS256","kid":"k"}') + b".e30."),
)


def _token_shapes(algorithm: bytes, before: bytes) -> tuple[Shape, ...]:
    """Gives the shapes of a JWT, each with a header that the reader goes on with."""
    return tuple(
        Shape(
            shape.name,
            shape.piece,
            before
            + shape.before.replace(_coded(b'{"alg":"HS256","kid":"k"}'), _coded(b'{"alg":"%b","kid":"k"}' % algorithm)),
            shape.after,
        )
        for shape in _TOKEN_HEADERS
    )


READERS: Final = (
    Reader(
        name="path",
        read=_found,
        longest=HEADERS_BYTES_MAX,
        shapes=(
            Shape("slashes", b"/"),
            Shape("escapes", b"%41", before=b"/gateway/api/payments/"),
            Shape("an escape cut short at the end", b"%41", before=b"/gateway/checkouts/", after=b"%4"),
            Shape("escapes that are not UTF-8", b"%ff", before=b"/gateway/api/payments/"),
            Shape("a long secret", b"a", before=b"/gateway/checkouts/chk_1/"),
        ),
    ),
    Reader(
        name="secret of a checkout's page",
        read=lambda text: secret_hash_of(text.decode()),
        longest=HEADERS_BYTES_MAX,
        shapes=(Shape("long", b"a"),),
    ),
    Reader(
        name="query",
        read=lambda text: read_query(_PARAMETERS, text),
        longest=HEADERS_BYTES_MAX,
        shapes=(
            Shape("nothing but ampersands", b"&"),
            Shape("one again and again", b"limit&"),
            Shape("different unknown ones", lambda number: b"%d&" % number),
            Shape("a long unknown one", b"%00%41"),
            Shape("pluses and equals signs", b"+="),
        ),
    ),
    Reader(
        name="values of a query and of a path",
        read=lambda text: [each.validator(text.decode()) for each in _PARAMETERS],
        longest=HEADERS_BYTES_MAX,
        shapes=(Shape("digits", b"9"), Shape("letters", b"a"), Shape("points", b".")),
    ),
    Reader(
        name="all headers",
        read=lambda text: _several(text).texts(),
        longest=HEADERS_BYTES_MAX,
        shapes=(
            Shape("each twice", lambda number: b"%d:\n" % (number // 2)),
            Shape("one again and again", b"a:\n"),
            Shape("one of many twice", lambda number: b"%d:\n" % max(number - 1, 0)),
        ),
    ),
    Reader(
        name="X-Request-Id",
        read=lambda text: request_id_of(_one(b"x-request-id", text)),
        longest=HEADERS_BYTES_MAX,
        shapes=(Shape("letters", b"a"),),
    ),
    Reader(
        name="X-Forwarded-For",
        read=lambda text: owner_at(client_address(_PEER, _one(b"x-forwarded-for", text), _TRUSTED)),
        longest=HEADERS_BYTES_MAX,
        shapes=(
            Shape("commas", b","),
            Shape("trusted proxies", b"10.0.0.1,", after=b"10.0.0.1"),
            Shape("colons", b":"),
            Shape("groups of an address", b"ffff:"),
            Shape("points", b"."),
            Shape("digits", b"1"),
            Shape("a long zone", b"a", before=b"fe80::1%"),
            Shape("spaces", b" ", before=b"10.0.0.1"),
        ),
    ),
    Reader(
        name="X-Forwarded-For in many headers",
        read=lambda text: client_address(_PEER, _several(text), _TRUSTED),
        longest=HEADERS_BYTES_MAX,
        shapes=(Shape("one proxy in each", b"x-forwarded-for:10.0.0.1\n"),),
    ),
    Reader(
        name="Authorization",
        read=_admit,
        longest=HEADERS_BYTES_MAX,
        shapes=(
            Shape("spaces", b" ", after=b"a"),
            Shape("a long key", b"a", before=b"prk_live_"),
            Shape("a long client token", b"a.", before=b"prt_"),
            Shape("a long JWT", b"a.", before=b"eyJ"),
        ),
    ),
    Reader(name="client token", read=_admit, longest=TEXT_LENGTH_MAX, shapes=_token_shapes(b"HS256", b"prt_")),
    Reader(
        name="identity provider's token",
        read=_admit,
        longest=IDENTITY_TOKEN_LENGTH_MAX,
        shapes=_token_shapes(b"Ed25519", b""),
    ),
    Reader(
        name="claims of an identity provider's token",
        read=_admit_claims,
        longest=IDENTITY_TOKEN_LENGTH_MAX * 3 // 4 - 256,  # in base64, and beside a header and a signature
        shapes=(
            Shape("many", lambda number: b'"%d":0,' % number, before=b"{", after=b'"":0}'),
            Shape("nested", b"[", before=b'{"aud":'),
            Shape("digits", b"9", before=b'{"exp":', after=b"}"),
            Shape("many audiences", b'"a",', b'{"iss":"https://login.example","aud":[', b'"shop"]}'),
            Shape(
                "a long name",
                b"\\u00e9",
                before=b'{"iss":"https://login.example","aud":"shop","exp":1000000000000,"sub":"',
                after=b'"}',
            ),
            Shape(
                "a long amount",
                b"9",
                b'{"iss":"https://login.example","aud":"shop","exp":1000000000000,"sub":"a","currency":"LKR","amount":"',
                b'"}',
            ),
        ),
    ),
    Reader(
        name="Idempotency-Key",
        read=lambda text: parse_key([text.decode("latin-1")]),
        longest=HEADERS_BYTES_MAX,
        shapes=(
            Shape("bare", b"a"),
            Shape("quoted", b"a", before=b'"', after=b'"'),
            Shape("escapes", b'\\"', before=b'"', after=b'"'),
            Shape("spaces", b" "),
        ),
    ),
    Reader(
        name="Prefer",
        read=lambda text: preferred_wait_s(_one(b"prefer", text)),
        longest=HEADERS_BYTES_MAX,
        shapes=(
            *_VALUES,
            Shape("many seconds", b"9", before=b"wait="),
            Shape("zeros", b"0", before=b"wait="),
            Shape("many preferences", b"a=1;b,"),
        ),
    ),
    Reader(
        name="Prefer in many headers",
        read=lambda text: preferred_wait_s(_several(text)),
        longest=HEADERS_BYTES_MAX,
        shapes=(Shape("one preference in each", b"prefer:a\n"),),
    ),
    Reader(
        name="Cache-Control",
        read=lambda text: insists_on_new(_one(b"cache-control", text)),
        longest=HEADERS_BYTES_MAX,
        shapes=(*_VALUES, Shape("many directives", b"no-store,")),
    ),
    Reader(
        name="Origin",
        read=lambda text: _BROWSERS.preflight(
            "OPTIONS", Headers([(b"origin", text), (b"access-control-request-method", text)])
        ),
        longest=HEADERS_BYTES_MAX // 2,  # the same text is in two headers
        shapes=(Shape("long", b"a", before=b"https://shop.example"),),
    ),
    Reader(
        name="Content-Type of JSON",
        read=lambda text: require_json(_one(b"content-type", text)),
        longest=HEADERS_BYTES_MAX,
        shapes=(
            Shape("spaces behind the type", b" ", before=b"application/json", after=b"a"),
            Shape("spaces before the charset", b" ", before=b"application/json;", after=b"a"),
            Shape("spaces behind the charset", b" ", before=b"application/json;charset=utf-8", after=b"a"),
        ),
    ),
    Reader(
        name="Content-Type of a notification",
        read=lambda text: require_type(_one(b"content-type", text), "application/x-www-form-urlencoded"),
        longest=HEADERS_BYTES_MAX,
        shapes=(Shape("letters", b"A"), Shape("parameters", b";a=b"), Shape("spaces", b" ", after=b"a")),
    ),
    Reader(
        name="Content-Encoding",
        read=lambda text: require_json(Headers([(b"content-type", b"application/json"), (b"content-encoding", text)])),
        longest=HEADERS_BYTES_MAX,
        shapes=(Shape("spaces", b" ", before=b"identity", after=b"a"),),
    ),
    Reader(
        name="Content-Length",
        read=lambda text: finished(_body_of(_one(b"content-length", text))),
        longest=HEADERS_BYTES_MAX,
        shapes=(Shape("digits", b"9"), Shape("zeros", b"0")),
    ),
    Reader(
        name="Accept-Language",
        read=lambda text: chosen_language(text.decode("latin-1"), LANGUAGES),
        longest=HEADERS_BYTES_MAX,
        shapes=(
            Shape("many languages", b"en,"),
            Shape("many subtags", b"-a", before=b"en"),
            Shape("many subtags and a mistake", b"-aaaaaaaa", before=b"en", after=b"!"),
            Shape("spaces before it", b" "),
            Shape("spaces behind it", b" ", before=b"en", after=b"!"),
            Shape("spaces before a quality", b" ", before=b"en;", after=b"!"),
            Shape("a long quality", b"0", before=b"en;q=0."),
        ),
    ),
    Reader(
        name="Last-Event-ID",
        read=lambda text: AFTER.validator(text.decode("latin-1").strip()),
        longest=HEADERS_BYTES_MAX,
        shapes=(Shape("digits", b"9"), Shape("spaces", b" ", after=b"a")),
    ),
    Reader(
        name="traceparent",
        read=lambda text: _traced(text.decode("latin-1"), ""),
        longest=_TRACEPARENT_MAX,
        shapes=(
            Shape("spaces before it", b" ", after=_TRACEPARENT.encode()),
            Shape("more behind it", b"-a", before=b"01" + _TRACEPARENT[2:].encode()),
        ),
    ),
    Reader(
        name="tracestate",
        read=lambda text: _traced(_TRACEPARENT, text.decode("latin-1")),
        longest=_TRACESTATE_MAX,
        shapes=(
            Shape("commas", b","),
            Shape("many members", lambda number: b"a%d=b," % number),
            Shape("one again and again", b"a=b,"),
            Shape("a long member", b"a"),
            Shape("spaces", b" ", before=b"a=b", after=b"\t"),
        ),
    ),
)
