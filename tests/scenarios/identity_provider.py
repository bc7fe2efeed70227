"""An identity provider: keys at an address, and tokens that it signs."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from joserfc import jwt
from joserfc.jwk import ECKey

ISSUER = "https://login.example/"
AUDIENCE = "payrelay"


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    provider: "IdentityProvider"


class _Conversation(BaseHTTPRequestHandler):
    server: _Listener

    def do_GET(self) -> None:
        provider = self.server.provider
        provider.asked += 1
        keys = [key.as_dict(private=False) for key in provider.keys.values()]
        body = json.dumps({"keys": keys}).encode()
        self.send_response(200 if provider.is_up else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class IdentityProvider:
    """Publishes its keys while it is up, and counts who asks for them."""

    def __init__(self) -> None:
        self.keys: dict[str, ECKey] = {}
        self.asked = 0
        self.is_up = True
        self.add_key("first")
        self._listener = _Listener(("127.0.0.1", 0), _Conversation)
        self._listener.provider = self

    def __enter__(self) -> Self:
        threading.Thread(target=self._listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown()
        self._listener.server_close()

    def add_key(self, name: str) -> None:
        """Makes another key, which it publishes from now on."""
        self.keys[name] = ECKey.generate_key("P-256", {"kid": name})

    def token(self, person: str, *, key: str = "first", signer: ECKey | None = None, **claims: object) -> str:
        """Signs a token for a person; a claim that is given as None is left out."""
        now_s = int(time.time())
        usual = {"iss": ISSUER, "aud": AUDIENCE, "sub": person, "iat": now_s, "exp": now_s + 300}
        told = {name: value for name, value in (usual | claims).items() if value is not None}
        return jwt.encode({"alg": "ES256", "kid": key}, told, signer or self.keys[key])

    def settings(self, **more: str) -> dict[str, str]:
        """What a program needs to take its tokens."""
        members = {
            "JWKS_URL": f"http://127.0.0.1:{self._listener.server_address[1]}/jwks.json",
            "ISSUER": ISSUER,
            "AUDIENCE": AUDIENCE,
            "PRINCIPAL": "shop",
        }
        return {f"PAYRELAY_IDENTITY__{name}": value for name, value in (members | more).items()}
