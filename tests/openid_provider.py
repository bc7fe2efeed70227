"""An OpenID Connect provider at a real address: it signs whom a test says, and lies in the ways that it is told to."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey

CLIENT_ID, CLIENT_SECRET = "payrelay-console", "s3cret of+client"
Claims = dict[str, object]


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    provider: "OpenIdProvider"


class _Conversation(BaseHTTPRequestHandler):
    server: _Listener

    def do_GET(self) -> None:
        provider = self.server.provider
        address = urlsplit(self.path)
        if not provider.is_up:
            self._say(503, b"")
        elif address.path == "/.well-known/openid-configuration":
            self._say(200, json.dumps(provider.configuration()).encode())
        elif address.path == "/keys":
            keys = [key.as_dict(private=False) for key in provider.keys.values()]
            self._say(200, json.dumps({"keys": keys}).encode())
        elif address.path == "/authorize":
            self.send_response(302)
            self.send_header("Location", provider.approved(dict(parse_qsl(address.query))))
            self.end_headers()
        else:
            self._say(404, b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
        provider = self.server.provider
        status, answer = provider.exchanged(body, self.headers.get("Authorization", ""))
        self._say(status if provider.is_up else 503, answer)

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class OpenIdProvider:
    """Signs in ``person`` whoever comes; ``changes`` are put into each id token, None takes a claim out.

    ``answer`` replaces what the token endpoint says, and ``published`` changes what the provider says about itself.
    """

    def __init__(self, now_s: Callable[[], float] = time.time) -> None:
        self.now_s = now_s
        self.person: Claims = {"sub": "u-1", "email": "ada@shop.example", "email_verified": True}
        self.changes: Claims = {}
        self.published: Claims = {}
        self.answer: tuple[int, bytes] | None = None
        self.is_up = True
        self.signer: ECKey | None = None
        self.keys: dict[str, ECKey] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.forms: list[dict[str, str]] = []
        self.rotate("first")
        self._listener = _Listener(("127.0.0.1", 0), _Conversation)
        self._listener.provider = self

    def __enter__(self) -> Self:
        threading.Thread(target=self._listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown()
        self._listener.server_close()

    @property
    def issuer(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._listener.server_address[1]}"

    def rotate(self, name: str) -> None:
        """Signs by another key from now on, and publishes no other."""
        self.keys = {name: ECKey.generate_key("P-256", {"kid": name})}

    def configuration(self) -> Claims:
        """Gives what it publishes about itself."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "authorization_response_iss_parameter_supported": True,
        } | self.published

    def approved(self, asked: dict[str, str]) -> str:
        """Signs the person in, and gives where the browser goes back to, with a code."""
        assert (asked["response_type"], asked["client_id"], asked["code_challenge_method"]) == (
            "code",
            CLIENT_ID,
            "S256",
        )
        code = hashlib.sha256(f"{asked['state']}{len(self.codes)}".encode()).hexdigest()
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state'], 'iss': self.issuer})}"

    def exchanged(self, body: str, authorization: str) -> tuple[int, bytes]:
        """Gives the answer of its token endpoint: for its client, for the right verifier, and once for each code."""
        form = {name: values[0] for name, values in parse_qs(body).items()}
        self.forms.append(form)
        if self.answer is not None:
            return self.answer
        if authorization:
            client = tuple(map(unquote, base64.b64decode(authorization.removeprefix("Basic ")).decode().split(":")))
        else:
            client = (form.get("client_id", ""), form.get("client_secret", ""))
        if client != (CLIENT_ID, CLIENT_SECRET):
            return 401, b'{"error": "invalid_client"}'
        asked = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked is None or asked["code_challenge"] != challenge or asked["redirect_uri"] != form["redirect_uri"]:
            return 400, b'{"error": "invalid_grant"}'
        return 200, json.dumps({"access_token": "x", "id_token": self.id_token(asked.get("nonce"))}).encode()

    def id_token(self, nonce: str | None) -> str:
        """Signs who the person is."""
        [(name, key)] = self.keys.items()
        now_s = int(self.now_s())
        usual = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now_s, "auth_time": now_s, "exp": now_s + 300}
        usual |= {"nonce": nonce}
        told = {claim: value for claim, value in (usual | self.person | self.changes).items() if value is not None}
        return jwt.encode({"alg": "ES256", "kid": name}, told, self.signer or key)

    def settings(self, **more: str) -> dict[str, str]:
        """What a program needs to have its operators sign in here."""
        members = {"ISSUER": self.issuer, "CLIENT_ID": CLIENT_ID, "CLIENT_SECRET": CLIENT_SECRET} | more
        return {f"PAYRELAY_CONSOLE__PROVIDER_{name}": value for name, value in members.items()}
