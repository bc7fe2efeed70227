"""The trial of a sandbox, run against the simulator by a person who follows its instructions."""

import asyncio
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import aiohttp
import msgspec
import pytest
from tests.scenarios.program import free_port

from payrelay.cli.terminal.messages import CommandError
from payrelay.settings import Settings
from payrelay_simulator import DEFAULT_MERCHANT, Arguments, Match, Rule, Simulator, Switches, serve
from payrelay_tools.sandbox_trial.command import TrialOptions, TrialReport, try_sandbox
from payrelay_tools.sandbox_trial.trial import Finding, TrialVerdict

PACE: Final = 0.03
"""Of the pauses, so that a window of the simulator's budget is as many times shorter."""
USUAL: Final = Switches(
    rate_limit_window_s=10 * PACE, accelerated_interval_s=1, authorize="refused", payment_authorization_tokens="null"
)
GOOD_CARD: Final = "4916217501611292"
REFUSED_CARD: Final = "4024007194349121"


class Person:
    """Follows the instructions of a trial: opens its pages, posts their forms, pays and comes back."""

    def __init__(self, port: int) -> None:
        self.lines: asyncio.Queue[str] = asyncio.Queue()
        self.said: list[str] = []
        self.break_at: str | None = None
        self._local = f"http://127.0.0.1:{port}"
        self._tasks: set[asyncio.Task[None]] = set()
        self.trial: asyncio.Task[int] | None = None

    def say(self, line: str, _colour: str) -> None:
        """Hears a line of the trial's."""
        self.said.append(line)
        asked = re.search(r"^\n?(.*): open (http\S+)$", line)
        if asked is None:
            return
        if asked[1] == self.break_at:
            assert self.trial is not None
            self.trial.cancel()
            return
        task = asyncio.ensure_future(self._bring(asked[1], asked[2]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _bring(self, name: str, address: str) -> None:
        async with aiohttp.ClientSession() as browser:
            page = await (await browser.get(address)).text()
            action = re.search(r'action="([^"]*)"', page)
            assert action is not None
            fields = dict(re.findall(r'name="([^"]*)" value="([^"]*)"', page))
            origin = address.partition("/")[0] + "//" + address.split("/")[2] + "/"
            entered = await browser.post(action[1], data=fields, headers={"Referer": origin}, allow_redirects=False)
            if entered.status != 303:
                self.lines.put_nowait("r")
                return
            visit = action[1].partition("/pay/")[0] + entered.headers["Location"]
            is_refused = name == "refused card"
            card = {"cardHolderName": "CANARY PERERA", "cardExpiry": "12/29", "cardSecureId": "123"}
            number = REFUSED_CARD if is_refused else GOOD_CARD
            await browser.post(f"{visit}/pay", data={**card, "cardNo": number}, allow_redirects=False)
            if is_refused:
                await browser.post(f"{visit}/cancel", allow_redirects=False)
            back = await browser.get(f"{visit}/return", allow_redirects=False)
            await browser.get(back.headers["Refresh"].partition("url=")[2])


@pytest.fixture
def port() -> int:
    """Gives a port at which the trial can listen."""
    return free_port()


def settings_at(base_url: str, port: int, other: Mapping[str, str] = {}) -> Settings:
    """Gives the settings of a sandbox account at the simulator."""
    account: dict[str, object] = {
        "app_id": DEFAULT_MERCHANT.app_id,
        "app_secret": DEFAULT_MERCHANT.app_secret,
        "merchant_id": DEFAULT_MERCHANT.merchant_id,
        "merchant_secret": DEFAULT_MERCHANT.merchant_secret,
        "base_url": base_url,
        **other,
    }
    return Settings.model_validate({"gateways": {"gateway": account}, "public_url": f"http://127.0.0.1:{port}"})


async def tried(
    folder: Path, port: int, switches: Switches = USUAL, *, prepare: Callable[[Simulator], None] | None = None
) -> tuple[int, TrialReport, str]:
    """Runs a whole trial; gives its exit code, its report, and the report's text."""
    simulator = Simulator(switches=switches)
    if prepare is not None:
        prepare(simulator)
    person = Person(port)
    async with serve(simulator) as running:
        options = options_in(folder, port)
        code = await try_sandbox(settings_at(running.base_url, port), options, person.say, person.lines)
    text = options.report.read_text()
    return code, msgspec.json.decode(text, type=TrialReport), text


def options_in(folder: Path, port: int) -> TrialOptions:
    """Gives the options of a trial that waits for little."""
    return TrialOptions(
        account="gateway", report=folder / "report.json", host="127.0.0.1", port=port, wait_s=20, pace=PACE
    )


def differing(report: TrialReport) -> dict[str, Finding]:
    """Gives the findings that differ, by their steps."""
    return {each.step: each for each in report.findings if each.verdict is TrialVerdict.DIFFERS}


@pytest.mark.deep
def test_a_gateway_as_we_know_it_differs_in_nothing(tmp_path: Path, port: int) -> None:
    """Every step was tried, what nobody documents was learnt, and there is nothing to be gone on with."""
    code, report, _ = asyncio.run(tried(tmp_path, port))
    assert {step: each.differences for step, each in differing(report).items()} == {}
    left = [each.step for each in report.findings if each.verdict is TrialVerdict.NOT_TRIED]
    assert (code, left, list(tmp_path.iterdir())) == (0, [], [tmp_path / "report.json"])


PLANTED: Final[dict[str, tuple[Switches, str, str]]] = {
    "HTTP of an invalid token": (
        Switches(invalid_token_http=200),
        "unknown access token",
        "HTTP 200, known as 401",
    ),
    "HTTP of a refusal": (
        Switches(business_error_http=422),
        "search of an unknown order",
        "HTTP 422, known as 200",
    ),
    "another token each time": (Switches(access_tokens="new"), "access token again", "another token came"),
    "a refusal of a part": (Switches(partial_refund="refused"), "refund of a part", "answer.status is -1"),
    "another word for cancelled": (
        Switches(cancelled_subscription="CANCELED"),
        "subscription that was cancelled",
        "answer.data.status is 'CANCELED', known as 'CANCELLED'",
    ),
    "another expired hold": (Switches(rest_md5sig="wrong"), "signature of a charge", "another signature came"),
    "another amount in the hash": (
        Switches(preapproval_hash_amount="1.01"),
        "approval in dollars",
        "the page did not take the form",
    ),
    "a hash without the startup fee": (
        Switches(startup_fee_hash="amount"),
        "subscription",
        "the page did not take the form",
    ),
    "a form from another domain": (
        Switches(allowed_domains=("shop.example",)),
        "payment",
        "the page did not take the form",
    ),
}


@pytest.mark.integration
@pytest.mark.parametrize("planted", PLANTED)
def test_each_planted_difference_is_named(tmp_path: Path, port: int, planted: str) -> None:
    """A trial that overlooks a difference would have the maintainers believe what isn't so."""
    switches, step, words = PLANTED[planted]
    short = {name: getattr(USUAL, name) for name in ("rate_limit_window_s", "accelerated_interval_s", "authorize")}
    code, report, _ = asyncio.run(tried(tmp_path, port, msgspec.structs.replace(switches, **short)))
    found = differing(report)
    assert step in found
    assert any(words in each for each in found[step].differences), found[step].differences
    assert code == 1


@pytest.mark.integration
def test_a_record_of_another_shape_is_named_member_by_member(tmp_path: Path, port: int) -> None:
    """What Payrelay doesn't know of, and what it misses, is what the maintainers have to know."""
    record = {"payment_number": 320025000001, "status": "PAID"}
    body = {"status": 1, "msg": "Payments with order_id:1", "data": [record]}

    def prepare(simulator: Simulator) -> None:
        rule = Rule(fault="wrong_shape", match=Match(endpoint="search"), times=None, args=Arguments(body=body))
        simulator.world.faults.add_rules(rule)

    _, report, _ = asyncio.run(tried(tmp_path, port, prepare=prepare))
    found = differing(report)["search of the payment"].differences
    assert "answer.data[] has no payment_id" in found
    assert "answer.data[] has payment_number, which is new" in found
    assert any(each.startswith("answer.data[].status is ") for each in found)


@pytest.mark.integration
def test_a_notification_that_comes_again_is_learnt(tmp_path: Path, port: int) -> None:
    """The documents say nothing of it, and a service that is down for a minute depends on it."""
    switches = msgspec.structs.replace(USUAL, notification_retries=2, notification_retry_interval_s=0.5)
    _, report, _ = asyncio.run(tried(tmp_path, port, switches))
    [found] = [each for each in report.findings if each.step == "notification that is refused"]
    assert isinstance(found.seen, dict)
    assert (found.verdict, len(found.seen["notifications"])) == (TrialVerdict.LEARNT, 2)


@pytest.mark.story
def test_a_report_has_no_secret_and_no_personal_data(tmp_path: Path, port: int) -> None:
    """It is sent to people who have no business with them."""
    ledger: list[str] = []

    def prepare(simulator: Simulator) -> None:
        ledger.append(simulator.merchant.merchant_secret)

    _, _, text = asyncio.run(tried(tmp_path, port, prepare=prepare))
    merchant = DEFAULT_MERCHANT
    secret = (merchant.app_id, merchant.app_secret, merchant.merchant_id, merchant.merchant_secret, *ledger)
    named = ("CANARY", "Payrelay Trial", "trial@example.com", "0771234567", GOOD_CARD, GOOD_CARD[-4:], f":{port}")
    assert [each for each in (*secret, *named) if each in text] == []
    values = re.findall(r"\d{12}|[0-9A-F]{32}|[0-9a-f]{8}-[0-9a-f]{4}-|payrelay-[0-9a-f]{8}", text)
    assert [each for each in values if set(each) - set("9A")] == []  # the form of a value is made of these two


@pytest.mark.parametrize(
    "other",
    [
        {"environment": "live"},
        {"base_url": "https://www.payhere.lk"},
        {"base_url": "https://payhere.lk"},
    ],
    ids=str,
)
def test_a_live_account_is_refused_before_anything_is_sent(tmp_path: Path, port: int, other: dict[str, str]) -> None:
    """Live, each of its payments would be somebody's money; what the host is counts beside what the setting says."""

    async def asked() -> int:
        async with serve(Simulator()) as running:
            settings = settings_at(running.base_url, port, other)
            try:
                return await try_sandbox(settings, options_in(tmp_path, port), Person(port).say)
            finally:
                assert running.simulator.world.calls.arrived == 0

    with pytest.raises(CommandError, match=r"is live.*nothing was sent"):
        asyncio.run(asked())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.story
def test_a_trial_that_was_broken_off_is_gone_on_with(tmp_path: Path, port: int) -> None:
    """What was found stays in the report, and no form has to be paid again."""

    async def broken_off_and_again() -> tuple[list[str], TrialReport, list[str]]:
        simulator = Simulator(switches=USUAL)
        first, second = Person(port), Person(port)
        first.break_at = "authorization"
        async with serve(simulator) as running:
            settings, options = settings_at(running.base_url, port), options_in(tmp_path, port)
            first.trial = asyncio.ensure_future(try_sandbox(settings, options, first.say, first.lines))
            with pytest.raises(asyncio.CancelledError):
                await first.trial
            before = [each.step for each in report_of(options.report).findings]
            await try_sandbox(settings, options, second.say, second.lines)
            return before, report_of(options.report), second.said

    before, report, said = asyncio.run(broken_off_and_again())
    assert {"access token", "payment", "refund of a part", "approval", "charge"} <= set(before)
    assert not any(re.match(r"\n(payment|approval): open", line) for line in said)
    assert [each.step for each in report.findings if each.verdict is TrialVerdict.NOT_TRIED] == []
    assert len(report.findings) == len({each.step for each in report.findings}) > len(before)


def report_of(path: Path) -> TrialReport:
    """Reads a report."""
    return msgspec.json.decode(path.read_bytes(), type=TrialReport)


def test_the_report_of_a_trial_that_is_over_is_not_overwritten(tmp_path: Path, port: int) -> None:
    """It may not have been sent yet."""
    (tmp_path / "report.json").write_text("{}")
    with pytest.raises(CommandError, match="is the report of a trial that is over"):
        asyncio.run(try_sandbox(settings_at("http://127.0.0.1:1", port), options_in(tmp_path, port), Person(port).say))


def test_a_wrong_secret_ends_the_trial_with_its_finding(tmp_path: Path, port: int) -> None:
    """Without an access token nothing else can be tried, and the report says so."""

    async def asked() -> int:
        async with serve(Simulator()) as running:
            settings = settings_at(running.base_url, port, {"app_secret": "wrong"})
            return await try_sandbox(settings, options_in(tmp_path, port), Person(port).say)

    assert asyncio.run(asked()) == 1
    [first, *_] = report_of(tmp_path / "report.json").findings
    assert (first.step, first.differences[0]) == ("access token", "HTTP 401, known as 200")
