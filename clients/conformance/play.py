"""Plays a story with a client's driver, and judges it by what came out and by the simulator's ledger."""

import json
import shutil
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from clients.conformance.proxy import Proxy, Script
from clients.conformance.service import ACCOUNT, Service
from clients.conformance.stories import Counted, Step, Story, Variation, variations

STEP_S_MAX: Final = 90.0
"""Longer than any step's own limits: a driver that takes longer hangs."""
QUIET_S_MAX: Final = 30.0
"""How long the service may take to find out what became of the last operation."""
POLL_S: Final = 0.1
CARD: Final = "D3A0" * 8
DECLINING_CARD: Final = "DEC1" * 8
GOOD_CARD_NUMBER: Final = "4916217501611292"
KILLED: Final = "killed"
OPEN_STATES: Final = {"accepted", "sending", "unknown", "pending"}

_numbers: Final = iter(range(1, 1_000_000_000))
_number_lock: Final = threading.Lock()


class Failed(Exception):
    """A story came to something else than it tells."""


@dataclass(frozen=True)
class Driver:
    """The program that makes one call with a client."""

    command: list[str]
    folder: Path | None = None


@dataclass
class Run:
    """One run of a story: its order, its store, and what its steps came to."""

    story: Story
    driver: Driver
    proxy: Proxy
    order: str
    store: Path | None
    words: dict[str, Any]
    results: list[dict[str, Any]] = field(default_factory=list)
    counted: list[Counted] = field(default_factory=list)

    def filled(self, value: Any) -> Any:  # noqa: ANN401 - what JSON has
        """Puts the run's own values in place of the words that begin with ``$``."""
        if isinstance(value, dict):
            return {name: self.filled(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.filled(each) for each in value]
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        if value.startswith("$order-"):
            return value.replace("$order", self.order, 1)
        head, *rest = value[1:].split(".")
        found: Any = self.results[int(head) - 1] if head.isdigit() else self.words[head]
        for part in rest:
            found = found[int(part)] if isinstance(found, list) else found[part]
        return found

    def has_stored(self, key: str) -> bool:
        """Tells whether the key is in a file of the store at this moment; a client without a store must have none."""
        if self.store is None:
            return False
        return any(key in path.read_text() for path in _files(self.store))


def play(story: Story, service: Service, driver: Driver) -> Iterator[str]:
    """Plays a story and all its variations; gives a line for each run. Raises Failed, with the run's title."""
    counted = _played(story, service, driver, None)
    yield story.title
    for variation in variations(story, counted):
        _played(story, service, driver, variation)
        yield f"{story.title}: {variation.title}"


def _played(story: Story, service: Service, driver: Driver, variation: Variation | None) -> list[Counted]:
    title = story.title if variation is None else f"{story.title}: {variation.title}"
    folder = Path(tempfile.mkdtemp(prefix="conformance-"))
    try:
        return _run(story, service, driver, variation, folder)
    except Failed as failed:
        raise Failed(f"{title}: {failed}") from failed
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(story: Story, service: Service, driver: Driver, variation: Variation | None, folder: Path) -> list[Counted]:
    with _number_lock:
        order = f"Order-{next(_numbers)}"
    store = folder / "keys" if story.store == "file" else None
    with Proxy(service.port) as proxy:
        run = Run(story, driver, proxy, order, store, _words(service, order))
        _plant(story, service, run)
        for number, step in enumerate(story.steps):
            own = variation if variation is not None and variation.step == number else None
            _gateway_faults(service, step, order)
            if "runner" in step:
                _act(service, step, run)
            else:
                _take_step(run, step, own)
    _judge_ledger(story, service, run)
    return run.counted


def _words(service: Service, order: str) -> dict[str, Any]:
    return {
        "order": order,
        "charge_key": f"charge/gateway/{order}/1",
        "card": CARD,
        "declining_card": DECLINING_CARD,
        "key": service.key,
    }


def _plant(story: Story, service: Service, run: Run) -> None:
    """Puts what the story needs into the simulator, and its ids among the run's words."""
    planted = story.told.get("plant")
    if planted == "hold":
        seed = {"holds": [{"order_id": run.order, "amount": 100}]}
        run.words["hold"] = service.simulate("POST", "seed_data", seed)["authorization_tokens"][0]
    if planted in {"active_subscription", "failed_subscription"}:
        status = "ACTIVE" if planted == "active_subscription" else "FAILED"
        row = {"order_id": run.order, "customer_token": CARD, "amount": 20, "status": status}
        ids = service.simulate("POST", "seed_data", {"subscriptions": [row]})["subscription_ids"]
        run.words["subscription"] = str(ids[0])
    if planted == "customer":
        token = service.simulate("POST", "seed_data", {"customers": [{}]})["customer_tokens"][0]
        run.words["customer"] = service.call("POST", "/customers", {"customer_token": token})["id"]
    steps = json.dumps(story.steps)
    if "$webhook" in steps:
        run.words["webhook"] = service.delivery()
    if "$revoked" in steps:
        issued = service.call("POST", "/client-tokens", {"order_id": run.order})
        service.call("DELETE", f"/client-tokens/{issued['id']}")
        run.words["revoked"] = issued["token"]


def _gateway_faults(service: Service, step: Step, order: str) -> None:
    rules = [
        {
            "fault": each["fault"],
            "match": {"endpoint": each["endpoint"], "order_id": order},
            "args": each.get("args", {}),
        }
        for each in step.get("gateway", [])
    ]
    if rules:
        service.simulate("POST", "faults", {"script": rules})


def _act(service: Service, step: Step, run: Run) -> None:
    """Does what nobody does by a client: a customer pays, or the store is emptied."""
    match step["runner"]:
        case "pay":
            service.pay(run.filled(step["form"]), GOOD_CARD_NUMBER)
        case "empty_store":
            if run.store is not None:
                shutil.rmtree(run.store, ignore_errors=True)
        case "until_completed":
            _until_completed(service, run.filled(step["checkout"]))
        case other:
            raise Failed(f"a story tells the runner to {other}, which it can't")
    run.results.append({})
    run.counted.append(Counted(0, 0))


def _take_step(run: Run, step: Step, variation: Variation | None) -> None:
    """Takes a step; once more where the variation killed the client, as a customer who opens the app again.

    Another attempt that the killed client had begun is open then, and is gone on with by the call without ``again``.
    """
    faults = {each["request"]: run.filled(each) for each in step.get("faults", [])}
    store_fault = step.get("storeFault")
    if variation is not None and variation.of_store:
        store_fault = {"put": variation.number, "do": variation.do}
    elif variation is not None:
        faults[variation.number] = {"do": variation.do}
    result, script = _drive(run, step, faults, store_fault)
    if result["result"] == KILLED and variation is not None:
        result, second = _drive(run, step, {}, None)
        script.seen.extend(second.seen)
        if result.get("type") == "AttemptOpen" and step.get("options", {}).get("again"):
            result, third = _drive(run, {**step, "options": {**step["options"], "again": False}}, {}, None)
            script.seen.extend(third.seen)
    run.results.append(result)
    run.counted.append(Counted(len(script.seen), result.get("puts", 0)))
    _judge_step(run, step, result, script, is_varied=variation is not None)


def _drive(run: Run, step: Step, faults: Mapping[int, Any], store_fault: object) -> tuple[dict[str, Any], Script]:
    """Has the driver make the call; gives its result and what the proxy saw."""
    process = subprocess.Popen(  # noqa: S603 - the program that is tested
        run.driver.command,
        cwd=run.driver.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    script = Script(faults=faults, kill=process.kill, has_stored=run.has_stored)
    run.proxy.follow(script)
    told = {
        "address": f"{run.proxy.address}{ACCOUNT}",
        "credentials": run.filled(step.get("credentials", ["$key"])),
        "settings": {**run.story.settings, **step.get("settings", {})},
        "store": None if run.store is None else str(run.store),
        "storeFault": store_fault,
        "call": step["call"],
        "with": run.filled(step["with"]),
        "options": run.filled(step.get("options", {})),
    }
    try:
        out, err = process.communicate(json.dumps(told).encode(), timeout=STEP_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Failed(f"{step['call']}: the driver hangs") from None
    if process.returncode < 0:
        return {"result": KILLED}, script
    lines = out.decode().strip().splitlines()
    if process.returncode != 0 or not lines:
        raise Failed(f"{step['call']}: the driver failed: {err.decode().strip()}")
    result: dict[str, Any] = json.loads(lines[-1])
    return result, script


def _judge_step(run: Run, step: Step, result: dict[str, Any], script: Script, *, is_varied: bool) -> None:
    expected = run.filled(step.get("expect", {}))
    if is_varied:
        expected = {name: value for name, value in expected.items() if name != "is_replay"}
    _require(_holds(expected, result), f"{step['call']} came to {result}, and not to {expected}")
    named = run.filled(step.get("message_names", ""))
    _require(named in result.get("message", ""), f"{step['call']} came to {result}, which doesn't name {named}")
    effects = [each for each in script.seen if each.moves_money]
    for each in effects:
        _require(each.key is None or run.store is not None, "a client without a store sent a key")
        _require(each.is_stored, f"the key {each.key} was sent before it was stored")
    if not is_varied:
        _judge_counts(step, result, script)
    keys = {each.key for each in effects}
    if run.store is not None:
        _require(None not in keys, "a client with a store sent no key")
        _require(len(keys) <= step.get("keys", 1), f"{len(keys)} keys were sent")


def _judge_counts(step: Step, result: dict[str, Any], script: Script) -> None:
    count = len(script.seen)
    _require(count == step.get("requests", count), f"{count} requests were sent, and not {step.get('requests')}")
    _require(count <= step.get("requests_max", count), f"{count} requests were sent: too many")
    waited_s = sum(each["seconds"] for each in result.get("waits", []))
    least_s = step.get("waits_min_s", 0)
    _require(waited_s >= least_s, f"the client paused {waited_s} s in all, and not {least_s} s")


def _judge_ledger(story: Story, service: Service, run: Run) -> None:
    """Compares what happened to the order's money with what the story allows, once nothing is open any more."""
    _until_quiet(service, run.order)
    entries = service.simulate("GET", "ledger")["entries"]
    kinds = Counter(
        entry["kind"] for entry in entries if entry["order_id"] == run.order and entry["arrival"] is not None
    )
    allowed = story.told["ledger"]
    _require(kinds == Counter(allowed), f"the ledger has {dict(kinds)}, and not {allowed}")


def _until_quiet(service: Service, order: str) -> None:
    """Waits until the service knows what became of all operations of an order, or a person must decide."""
    end = time.monotonic() + QUIET_S_MAX
    while time.monotonic() < end:
        operations = service.call("GET", f"/operations?order_id={order}")
        if not any(each["state"] in OPEN_STATES for each in operations):
            return
        time.sleep(POLL_S)
    raise Failed(f"the service doesn't know in {QUIET_S_MAX} s what became of {order}")


def _until_completed(service: Service, checkout: str) -> None:
    """Waits until the service knows that a customer has paid."""
    end = time.monotonic() + QUIET_S_MAX
    while time.monotonic() < end:
        if service.call("GET", f"/checkouts/{checkout}")["state"] == "completed":
            return
        time.sleep(POLL_S)
    raise Failed(f"the service doesn't know in {QUIET_S_MAX} s that {checkout} was paid")


def _holds(expected: Any, found: Any) -> bool:  # noqa: ANN401 - what JSON has
    """Tells whether a result has all that is expected; of an object only the named members are compared."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(
            name in found and _holds(value, found[name]) for name, value in expected.items()
        )
    if isinstance(expected, list):
        return isinstance(found, list) and len(expected) == len(found) and all(map(_holds, expected, found))
    return bool(expected == found)


def _require(holds: bool, message: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise Failed(message)


def _files(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError):
        return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".tmp"]
    return []
