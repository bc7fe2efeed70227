"""The second factor once more, in the midst of something: what somebody typed is kept, and done once it was shown.

The page says what is done then, and to what. What was shown there counts for that alone: for the act, the address and
everything that was typed.
"""

import hmac
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import msgspec

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.flows.passkeys import PasskeyAnswer, ask_to_show, confirm_passkey
from payrelay.console.flows.sign_in import Failure, SignedIn, Visitor, confirm_code
from payrelay.console.pages.sign_in.password import SENTENCES, STATUSES, told_when
from payrelay.console.web.asked import SIGN_IN, Asked
from payrelay.console.web.cookies import act_token
from payrelay.console.web.rendering import PASSKEY_SCRIPT_PATH, redirect
from payrelay.console.web.route import Facts
from payrelay.core.operators.act_texts import ACT_TEXTS
from payrelay.core.operators.roles import Act

MARK: Final = "again"
"""The field by which a form says that it brings the second factor along, and for what."""
_OWN: Final = frozenset({MARK, "token", "code", "answer"})


class AskedFor(NamedTuple):
    """What is done once the second factor was shown.

    ``way`` is the page where somebody begins anew who has to sign in for it; ``about`` reads what it is done to.
    """

    way: str
    about: Callable[[Asked], Awaitable[Facts]]


async def ask_again(asked: Asked, asked_for: AskedFor, act: Act, failure: Failure | None = None) -> ConsoleAnswer:
    """Asks for the second factor, by a form that sends everything else of this request once more.

    What is done is decided when it is done. Raises StoreError.
    """
    visitor, mark = asked.visited, _mark(asked, act)
    asked_to_show = await ask_to_show(asked.parts, visitor, asked.party, asked.cookie, shown_for=mark)
    error = None
    if failure is not None:
        error = "That was wrong, or was used before." if failure is Failure.WRONG else SENTENCES[failure]
    text = ACT_TEXTS.get(act)
    page = asked.page(
        "again.html",
        status=403 if failure is None else STATUSES[failure],
        script=PASSKEY_SCRIPT_PATH if asked_to_show else None,
        error=error,
        asked_to_show=asked_to_show,
        takes_code=visitor.operator.has_totp,
        kept=_kept(asked),
        next=asked_for.way,
        mark=mark,
        act_name=act.replace("_", " ").capitalize() if text is None else text.name,
        facts=await asked_for.about(asked),
    )
    return page if failure is None else told_when(page, failure)


async def shown_again(asked: Asked, asked_for: AskedFor) -> Asked | ConsoleAnswer:
    """Takes the second factor that a form brings along: gives the request of the new session, or a page instead.

    It is not looked at where the form is of another act than the page that asked for it. Raises StoreError.
    """
    mark, answer = asked.form[MARK], asked.form.get("answer")
    name = mark.partition(" ")[0]
    if name not in set(Act) or not hmac.compare_digest(_mark(asked, Act(name)).encode(), mark.encode(errors="replace")):
        text = "It asks for something else than its page said. Nothing was done: begin again."
        return asked.page("message.html", status=403, title="This form is not from here", text=text)
    if answer is not None:
        brought = PasskeyAnswer(answer, asked.cookie, asked.party, asked.browser, mark)
        found = await confirm_passkey(asked.parts, asked.visited, brought)
    elif asked.visited.operator.has_totp:
        code = asked.form.get("code", "")
        found = await confirm_code(asked.parts, asked.visited, code, asked.browser, token=asked.cookie)
    else:  # such a code would set an app up
        found = Failure.WRONG
    if isinstance(found, SignedIn):
        visitor = Visitor(found.operator, found.session)
        return msgspec.structs.replace(asked, visitor=visitor, cookie=found.token.reveal())
    if found is Failure.COPIED:
        return asked.without_session(redirect(f"{SIGN_IN}?why={found}"))
    return await ask_again(asked, asked_for, Act(name), found)


def _kept(asked: Asked) -> dict[str, str]:
    return {name: text for name, text in asked.form.items() if name not in _OWN}


def _mark(asked: Asked, act: Act) -> str:
    """Binds an act to the browser, the address and what was typed; blanks count as browsers send them, as one."""
    typed = sorted((name, " ".join(text.split())) for name, text in _kept(asked).items())
    what = msgspec.json.encode([act, asked.request.path.decode("latin-1"), typed])
    return f"{act} {act_token(asked.cookie, what)}"
