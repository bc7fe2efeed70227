"""Sends the load: wrk on its own core, one order after the other, every answer looked at."""

import http.client
import itertools
import json
import secrets
import subprocess
from pathlib import Path

import msgspec

import programs
from contenders import Kind, Served

SCRIPT = Path(__file__).parent / "load.lua"
RESULT_MARK = "RESULT "

PREPARED = 1000
"""Charges that a replay goes round in: more than any connection count, so that none is hot."""
ANSWER_S_MAX = 5
"""What wrk waits for one answer before it counts a time-out."""

CHARGE_HEAD = '{"type":"PAYMENT","order_id":"'
CHARGE_TAIL = (
    '","items":"Taxi Hire 123","currency":"LKR","amount":345.67,"customer_token":"59AFEE022CC69CA39D325E1B59130862"}'
)

_numbers = itertools.count()
_run = secrets.token_hex(4)


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """How much is sent, and for how long."""

    kind: Kind
    connections: int
    duration_s: int


class Sent(msgspec.Struct, frozen=True):
    """What wrk saw.

    Attributes:
        duration_us: how long it took.
        requests: complete answers.
        p50_us: the latency that half of them kept within.
        p99_us: the latency that 99 of 100 kept within.
        wrong: answers that weren't what was asked for (another status, not a success, wrongly or not replayed).
        broken: connections that failed to open, read or write.
        timeouts: answers that came too late.
    """

    duration_us: float
    requests: int
    p50_us: float
    p99_us: float
    wrong: int
    broken: int
    timeouts: int
    complaint: str = ""


def send(served: Served, load: Load, core: int, replay_prefix: str) -> Sent:
    """Loads a server and gives what came of it."""
    prefix = replay_prefix if load.kind is Kind.REPLAY else f"{_run}-{next(_numbers)}-"
    wrk = ["wrk", "-t1", f"-c{load.connections}", f"-d{load.duration_s}s", "--latency", "--timeout", f"{ANSWER_S_MAX}s"]
    wrk += ["-s", str(SCRIPT), f"http://{programs.HOST}:{served.port}", "--"]
    wrk += [load.kind.value, prefix, served.key, str(PREPARED), CHARGE_HEAD, CHARGE_TAIL]
    done = subprocess.run(
        programs.pinned(core, wrk),
        env=programs.plain_environment({}),
        check=False,
        capture_output=True,
        text=True,
    )
    found = [line for line in done.stdout.splitlines() if line.startswith(RESULT_MARK)]
    if not found:
        raise programs.ProgramError(f"wrk: {done.stderr.strip() or done.stdout.strip()}")
    sent = msgspec.json.decode(found[-1].removeprefix(RESULT_MARK), type=Sent)
    return msgspec.structs.replace(sent, complaint=done.stderr.strip()[:400])


def new_replay_prefix() -> str:
    """Gives a prefix for the orders of one contender's replay."""
    return f"{_run}-replay-{next(_numbers)}-"


def prepare_replay(served: Served, prefix: str) -> None:
    """Makes the charges that a replay repeats; raises ProgramError when one isn't a success, or isn't answered."""
    connection = http.client.HTTPConnection(programs.HOST, served.port, timeout=ANSWER_S_MAX)
    try:
        for number in range(PREPARED):
            order_id = f"{prefix}{number}"
            headers = {
                "Authorization": f"Bearer {served.key}",
                "Content-Type": "application/json",
                "Idempotency-Key": order_id,
            }
            body = f"{CHARGE_HEAD}{order_id}{CHARGE_TAIL}"
            connection.request("POST", "/gateway/api/payments/charge", body, headers)
            reply = connection.getresponse()
            text = reply.read()
            if reply.status != http.HTTPStatus.OK or json.loads(text)["status"] != 1:
                raise programs.ProgramError(f"a charge to prepare the replay was answered {reply.status}: {text!r}")
    except (OSError, http.client.HTTPException) as error:
        raise programs.ProgramError(f"a charge to prepare the replay was not answered: {error!r}") from error
    finally:
        connection.close()
