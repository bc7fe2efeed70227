"""Tries what PayHere's sandbox does, call by call and form by form, and compares it with the protocol that we know.

Rules:

1. Nothing is sent on an account that is live, whatever the environment is called: the host decides too.
2. A finding is noted as soon as there is one. A trial that is broken off has lost nothing.
3. A finding has shapes, and no values: neither ids nor tokens, names or addresses.
"""

import asyncio
import base64
import secrets
from collections.abc import Callable, Collection, Iterator, MutableMapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from payrelay.clock import Clock
from payrelay.core.moments import day_at
from payrelay.core.money import decimal_text
from payrelay.gateways.http.exchange import CallHeaders, Exchanger, Loss
from payrelay.gateways.payhere.account import Account, signer_of
from payrelay.gateways.payhere.connections import GatewayConnections
from payrelay.gateways.payhere.wire.checkout_forms import Merchant, md5_capitals
from payrelay.gateways.payhere.wire.requests import (
    WireRequest,
    basic_authorization,
    form_headers_of,
    headers_of,
    token_request,
)
from payrelay_tools.sandbox_trial.payhere import steps
from payrelay_tools.sandbox_trial.payhere.forms import FORMS, FormStep, filled, order_of
from payrelay_tools.sandbox_trial.payhere.shapes import Shape, described, differences, formed_name, masked, parsed
from payrelay_tools.sandbox_trial.trial import (
    Finding,
    TrialDesk,
    TrialNotification,
    TrialVerdict,
    TrialVisit,
)

PAUSE_S: Final = 0.6
"""Between two calls: the gateway takes 20 in 10 s."""
BURST: Final = 30
"""Calls without a pause, to see how the gateway refuses too many."""
SHOWN_WITHIN_S: Final = 60.0
"""How long a payment may take until a search shows it, before the step goes on without it."""
CHARGE_HEARD_S: Final = 30.0
"""How long a notification of a charge is waited for."""
LIVE_DOMAIN: Final = "payhere.lk"
SANDBOX_HOST: Final = "sandbox.payhere.lk"

_TOKENS: Final = ("access token", "access token again", "access token with a wrong secret")
_LAST: Final = ("notification of a charge", "signature of a charge", "payment shown", "too many calls")
_TOKEN_SHAPE: Final = {"access_token": "uuid", "token_type": "=bearer", "expires_in": "whole", "scope": "=SANDBOX"}
_EXPIRES_MAX: Final = 600

_SHOWN_QUESTION: Final = "How soon does a search show a payment?"
_CHARGE_QUESTION: Final = "Is a charge of the API notified to the address that it names?"
_SIGNATURE_QUESTION: Final = "Is the signature in a charge's reply the one that its notification has?"

Note = Callable[[Finding], None]


class PayHereTrial:
    """The trial of one account. ``pace`` multiplies the pauses between its calls; a test takes less than PAUSE_S."""

    def __init__(self, account: Account, clock: Clock, *, pace: float = 1.0) -> None:
        self._account = account
        self._clock = clock
        self._pause_s = PAUSE_S * pace
        self._connections = GatewayConnections(account.base_url, clock, timeout_s=account.timeout_s)

    @property
    def refusal(self) -> str | None:
        """Why nothing may be tried: the account is live, or signs nothing."""
        host = (urlsplit(self._account.base_url).hostname or "").lower()
        is_live_host = (host == LIVE_DOMAIN or host.endswith(f".{LIVE_DOMAIN}")) and host != SANDBOX_HOST
        if self._account.environment == "live" or is_live_host:
            return f"the account {self._account.name} is live: a trial moves money, and is for a sandbox only"
        if signer_of(self._account) is None:
            return f"MERCHANT_ID or MERCHANT_SECRET of {self._account.name} is not set: no form can be signed"
        return None

    @property
    def step_names(self) -> tuple[str, ...]:
        """The names of all steps, in their order."""
        of_forms = [name for form in FORMS for name in (form.name, *(call.name for call in form.after))]
        return (*_TOKENS, *(call.name for call in steps.BEFORE), *of_forms, *_LAST)

    async def run(self, desk: TrialDesk, *, done: Collection[str], kept: MutableMapping[str, str], note: Note) -> None:
        """Takes the steps that aren't done; see ``SandboxTrial``."""
        merchant = signer_of(self._account)
        if self.refusal is not None or merchant is None:
            raise ValueError(self.refusal)
        kept.setdefault("prefix", f"payrelay-{secrets.token_hex(4)}-")
        for name in ("charge", "authorization"):
            kept.setdefault(f"order of {name}", f"{kept['prefix']}{name}")
        run = _Run(self._account, merchant, self._clock, desk, pause_s=self._pause_s)
        await run.through(kept, _Noting(note, set(done)), self._connections.effects)

    async def close(self) -> None:
        """Closes all connections."""
        await self._connections.close()


class _Run:
    """One run through the steps."""

    def __init__(self, account: Account, merchant: Merchant, clock: Clock, desk: TrialDesk, *, pause_s: float) -> None:
        self._account = account
        self._merchant = merchant
        self._clock = clock
        self._desk = desk
        self._pause_s = pause_s
        self._token = ""
        self._has_charged = False

    async def through(self, kept: MutableMapping[str, str], noting: "_Noting", exchanger: Exchanger) -> None:
        """Takes all steps that aren't done."""
        self._kept, self._noting, self._exchanger = kept, noting, exchanger
        if "notification of a charge" not in noting.done:
            noting.done.discard("charge")  # what came of one in an earlier run can't be known any more
        await self._try_tokens()
        if not self._token:
            return  # nothing else can be tried
        for call in steps.BEFORE:
            await self._try_call(call)
        for form in FORMS:
            await self._try_form(form)
        await self._try_last()

    async def _try_tokens(self) -> None:
        own = basic_authorization(self._account.app_id, self._account.app_secret.reveal())
        status, first = await self._send(token_request(), form_headers_of(own))
        if isinstance(first, dict):
            self._token = str(first.get("access_token", ""))
        found = _differences_of(200, _TOKEN_SHAPE, status, first)
        life_s = first.get("expires_in") if isinstance(first, dict) else None
        if isinstance(life_s, int) and life_s > _EXPIRES_MAX:
            found.append(f"expires_in is over {_EXPIRES_MAX}")
        self._noting.compare("access token", "What does a token have?", steps.DOCUMENTED, found, _seen(status, first))
        status, second = await self._send(token_request(), form_headers_of(own))
        is_same = isinstance(second, dict) and str(second.get("access_token", "")) == self._token
        if isinstance(second, dict) and not is_same:
            self._token = str(second.get("access_token", self._token))
        found = [] if is_same else ["another token came, known as the same one with less life"]
        question = "Does a second request get the same token?"
        self._noting.compare("access token again", question, steps.GUESSED, found, _seen(status, second))
        wrong = "Basic " + base64.b64encode(f"{self._account.app_id}:wrong".encode()).decode()
        seen = _seen(*await self._send(token_request(), form_headers_of(wrong)))
        self._noting.learn("access token with a wrong secret", "How is a wrong secret refused?", seen)

    async def _try_call(self, call: steps.CallStep) -> None:
        if call.name in self._noting.done:
            return
        try:
            request = call.build(self._kept)
        except KeyError as missing:
            self._noting.leave(call.name, call.question, f"an earlier step yielded no {missing.args[0]}")
            return
        status, value = await self._send(request, self._headers(call.bearer))
        self._has_charged = self._has_charged or call.name == "charge"
        if isinstance(value, dict) and "status" in value:
            _keep(call, value.get("data"), self._kept)
        seen = _seen(status, value)
        if call.known is None:
            self._noting.learn(call.name, call.question, seen)
        else:
            found = _differences_of(call.http_status, call.known, status, value)
            self._noting.compare(call.name, call.question, call.source, found, seen)

    async def _try_form(self, step: FormStep) -> None:
        prefix = self._kept["prefix"]
        if step.name not in self._noting.done:
            today = day_at(self._clock.now_ms(), self._account.timezone)
            # An order of its own for each attempt: a payment of one that was broken off is none of this one.
            attempt = int(self._kept.get(f"attempts of {step.name}", "0")) + 1
            self._kept[f"attempts of {step.name}"] = str(attempt)
            prefix += "again-" * (attempt - 1)
            form = filled(step, self._merchant, prefix, self._desk, today=today)
            visit = await self._desk.bring(form, notifications=len(step.known))
            self._note_visit(step, order_of(step, prefix), visit)
            if step.name == "payment" and visit.notifications:
                await self._await_shown(self._kept["order of payment"])
        if step.order == "approve" and "customer_token" in self._kept:
            self._kept["notify"] = self._desk.address_of("charge", "notify")
        for call in step.after:
            await self._try_call(call)
        if self._has_charged and "notification of a charge" not in self._noting.done:
            await self._note_charge()

    def _note_visit(self, step: FormStep, order_id: str, visit: TrialVisit) -> None:
        seen = {
            "answer": visit.answer,
            "came back": visit.came_back,
            "parameters": [formed_name(each) for each in visit.parameters],
            "notifications": [_seen_notification(each) for each in visit.notifications],
        }
        if visit.answer == "skipped":
            self._noting.leave(step.name, step.question, "it was skipped")
            return
        if step.source == steps.OPEN:
            self._noting.learn(step.name, step.question, seen)
            return
        found = list(_visit_differences(step, self._merchant, order_id + (step.shifted or ""), visit))
        self._noting.compare(step.name, step.question, step.source, found, seen)
        if visit.notifications:
            fields = _fields_of(visit.notifications[0])
            self._kept.update({name: fields[member] for member, name in step.keeps.items() if member in fields})
            if step.order_as:
                self._kept[step.order_as] = fields.get("order_id", order_id)

    async def _await_shown(self, order_id: str) -> None:
        """Searches for a payment until the gateway shows it, and notes how long that took."""
        build = steps.get("payment/search?order_id={}", "order of payment")
        began_s = self._clock.boot_s()
        self._kept["order of payment"] = order_id
        while self._clock.boot_s() - began_s < SHOWN_WITHIN_S:
            _, value = await self._send(build(self._kept), self._headers("own"))
            if isinstance(value, dict) and value.get("data"):
                break
            await asyncio.sleep(self._pause_s * 4)
        elapsed_s = round(self._clock.boot_s() - began_s)
        self._noting.learn("payment shown", _SHOWN_QUESTION, f"within {elapsed_s + 1} s of its notification")

    async def _try_last(self) -> None:
        await self._note_charge()
        self._noting.leave("payment shown", _SHOWN_QUESTION, "no payment was notified")
        if "too many calls" not in self._noting.done:
            self._noting.learn("too many calls", f"How are {BURST} calls at once refused?", await self._burst())

    async def _note_charge(self) -> None:
        """Notes what came of the charge beside its reply.

        Its notification is learnt in the run that charged: a later run can't know what came in between.
        """
        if "charged" in self._kept:
            signature = self._kept.get("signature of charge")
            found = [] if signature == self._charge_signature() else ["another signature came"]
            self._noting.compare("signature of a charge", _SIGNATURE_QUESTION, steps.GUESSED, found, None)
        if self._has_charged:
            heard = await self._desk.hear("charge", for_s=CHARGE_HEARD_S)
            seen = [_seen_notification(each) for each in heard]
            self._noting.learn("notification of a charge", _CHARGE_QUESTION, seen)
        else:
            self._noting.leave("notification of a charge", _CHARGE_QUESTION, "nothing was charged in this run")
            self._noting.leave("signature of a charge", _SIGNATURE_QUESTION, "nothing was charged")

    def _charge_signature(self) -> str:
        merchant = self._merchant
        signed = f"{merchant.merchant_id}{self._kept['order of charge']}123.45LKR2"
        return md5_capitals(signed + md5_capitals(merchant.merchant_secret.reveal()))

    async def _burst(self) -> object:
        search = steps.get(f"payment/search?order_id={steps.NOWHERE}")({})
        replies = [await self._send(search, self._headers("own"), pause_s=0) for _ in range(BURST)]
        usual = replies[0][0]
        refused = [each for each in replies if each[0] != usual]
        return f"none of {BURST} was refused" if not refused else {"refused": len(refused), "as": _seen(*refused[0])}

    def _headers(self, bearer: str) -> CallHeaders:
        if bearer == "none":
            return headers_of(None)
        return headers_of(f"Bearer {steps.BAD_UUID if bearer == 'unknown' else self._token}")

    async def _send(
        self, request: WireRequest, headers: CallHeaders, *, pause_s: float | None = None
    ) -> tuple[int | str, Any]:
        """Sends one call; gives its HTTP status, or why none came, and what its body says."""
        await asyncio.sleep(self._pause_s if pause_s is None else pause_s)
        reply = await self._exchanger.exchange(request, headers)
        if isinstance(reply, Loss):
            return f"no reply: {reply.cause}", None
        return reply.http_status, parsed(reply.body)


class _Noting:
    """Notes findings, each step once."""

    def __init__(self, note: Note, done: set[str]) -> None:
        self._note = note
        self.done = done

    def compare(self, step: str, question: str, source: str, found: list[str], seen: object) -> None:
        """Notes a step whose outcome is known."""
        verdict = TrialVerdict.DIFFERS if found else TrialVerdict.AS_KNOWN
        self._add(
            Finding(step=step, question=question, known=source, verdict=verdict, differences=tuple(found), seen=seen)
        )

    def learn(self, step: str, question: str, seen: object) -> None:
        """Notes a step of which nothing was known."""
        self._add(Finding(step=step, question=question, known=steps.OPEN, verdict=TrialVerdict.LEARNT, seen=seen))

    def leave(self, step: str, question: str, why: str) -> None:
        """Notes a step that was not taken, and why."""
        self._add(Finding(step=step, question=question, known="", verdict=TrialVerdict.NOT_TRIED, seen=why))

    def _add(self, finding: Finding) -> None:
        if finding.step not in self.done:
            self.done.add(finding.step)
            self._note(finding)


def _differences_of(known_status: int | None, known: Shape, status: int | str, value: object) -> list[str]:
    found = [] if known_status in {None, status} else [f"HTTP {status}, known as {known_status}"]
    return found + list(differences(known, value))


def _seen(status: int | str, value: object) -> dict[str, object]:
    return {"http": status, "body": described(value)}


def _keep(call: steps.CallStep, data: object, kept: MutableMapping[str, str]) -> None:
    record = data[0] if isinstance(data, list) and data else data
    if isinstance(record, dict):
        kept.update({name: str(record[member]) for member, name in call.keeps.items() if record.get(member)})


def _fields_of(notification: TrialNotification) -> dict[str, str]:
    return dict(parse_qsl(notification.body.decode(errors="replace"), keep_blank_values=True))


def _seen_notification(notification: TrialNotification) -> dict[str, object]:
    fields = _fields_of(notification)
    return {
        "content type": masked(notification.content_type),
        "after_s": round(notification.after_s),
        "fields": described(fields),
        "payhere_amount": fields.get("payhere_amount"),
    }


def _visit_differences(step: FormStep, merchant: Merchant, order_id: str, visit: TrialVisit) -> Iterator[str]:
    if visit.answer == "refused":
        yield "the page did not take the form"
    if len(visit.notifications) < len(step.known):
        yield f"{len(visit.notifications)} notifications came, known as {len(step.known)}"
    for index, (shape, notification) in enumerate(zip(step.known, visit.notifications, strict=False), start=1):
        name, fields = f"notification {index}", _fields_of(notification)
        if not notification.content_type.startswith("application/x-www-form-urlencoded"):
            yield f"{name} is {masked(notification.content_type)}, known as a form"
        yield from differences(shape, fields, name)
        if fields.get("order_id") != order_id:
            yield f"{name} is of another order than was posted"
        if not _is_signed(fields, merchant):
            yield f"{name} is not signed by the known formula"
    if step.reported_minor is not None and visit.notifications:
        amount = _fields_of(visit.notifications[0]).get("payhere_amount")
        if amount != decimal_text(step.reported_minor):
            yield "notification 1 has another amount than the form"


def _is_signed(fields: dict[str, str], merchant: Merchant) -> bool:
    names = ("merchant_id", "order_id", "payhere_amount", "payhere_currency", "status_code")
    signed = "".join(fields.get(name, "") for name in names)
    return fields.get("md5sig", "").upper() == md5_capitals(signed + md5_capitals(merchant.merchant_secret.reveal()))
