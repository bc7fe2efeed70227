"""Feeds the reader of replies what reaches new code of its own, until it is stopped or ``-max_total_time`` is over.

    make fuzz SECONDS=60

Atheris watches which lines a reply reaches, and changes replies that reach new ones. What it checks for each of them is
what ``test_reply_reader`` says of drawn ones: nothing raises, and every way to cut the bytes has one outcome.
"""

import sys
from pathlib import Path
from typing import Final

import atheris

with atheris.instrument_imports(include=["payrelay.gateways.http"]):
    from payrelay.gateways.http.exchange import Loss, Reply
    from payrelay.gateways.http.reply_reader import ReplyReader

BYTES_MAX: Final = 1_000
SEEDS: Final = (
    b'\x051 200 OK\r\nContent-Length: 12\r\n\r\n{"status":1}',
    b"\x301 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\nX: y\r\n\r\n",
    b"\x011 103 E\r\nA: b\r\n\r\nHTTP/1.0 200 OK\r\nConnection: keep-alive\r\nDate: x\r\n\r\nabc",
)
"""Replies to begin with; the first byte says where each is cut."""


def read(parts: list[bytes]) -> tuple[Reply | Loss | None, bool]:
    """Reads parts, up to the first outcome."""
    reader = ReplyReader(BYTES_MAX)
    for part in parts:
        outcome = reader.feed(part)
        if outcome is not None:
            return outcome, reader.is_reusable
    ended = reader.end()
    assert ended.is_sent if isinstance(ended, Loss) else not reader.is_reusable
    return None, reader.is_reusable


def check(drawn: bytes) -> None:
    """Checks one reply, cut at the place that its first byte names."""
    if not drawn:
        return
    raw = b"HTTP/1." + drawn[1:]
    at = drawn[0] % len(raw)
    whole, _ = read([raw])
    cut, is_reusable = read([raw[:at], raw[at:]] if at else [raw])

    assert whole == cut
    assert not isinstance(cut, Loss) or (cut.is_sent and not is_reusable)
    assert not isinstance(cut, Reply) or len(cut.body) <= BYTES_MAX


if __name__ == "__main__":
    for number, seed in enumerate(SEEDS):
        Path(sys.argv[-1], f"seed-{number}").write_bytes(seed)
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()
