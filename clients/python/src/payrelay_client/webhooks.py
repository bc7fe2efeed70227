"""Verifies what Payrelay posts to a shop, by the library of the standard."""

from collections.abc import Mapping, Sequence

from standardwebhooks import Webhook, WebhookVerificationError

from payrelay_client import exact_json
from payrelay_client.errors import WebhookRefused
from payrelay_client.models import Event


def verify_webhook(secret: str | Sequence[str], headers: Mapping[str, str], body: bytes | str) -> Event:
    """Gives the event of a webhook whose signature is right and whose time is at most five minutes off.

    ``body`` is what came, byte for byte. ``secret`` may be two, while an endpoint's secret is changed. The same event
    may come twice: store its ``id`` with what you did. Raises WebhookRefused.
    """
    secrets = [secret] if isinstance(secret, str) else list(secret)
    named = {name.lower(): value for name, value in headers.items()}
    reasons = []
    for each in secrets:
        try:
            Webhook(each).verify(body, named, json_parse=False)
        except WebhookVerificationError as error:
            reasons.append(str(error))
        except Exception as error:  # noqa: BLE001 - the library raises what its parts raise: of base64, of JSON
            reasons.append(f"{type(error).__name__}: {error}")
        else:
            return _event(body)
    raise WebhookRefused(reasons[0] if reasons else "no secret was given to verify it with")


def _event(body: bytes | str) -> Event:
    try:
        members = exact_json.decode(body.encode() if isinstance(body, str) else body)
    except ValueError as error:
        raise WebhookRefused("the body is no JSON") from error
    event = Event.of(members)
    if not event.id or not event.type:
        raise WebhookRefused("the body is no event")
    return event
