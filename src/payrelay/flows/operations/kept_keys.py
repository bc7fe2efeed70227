"""The Idempotency-Key under which an earlier version kept a request, or under which this one keeps it since."""

from payrelay.flows.relay import Relay, Request


def other_key(relay: Relay, request: Request, idempotency_key: str | None) -> str | None:
    """Gives the other key under which the operation of a request may be stored; None for most.

    Of an app it is the one with the person's name, which earlier versions stored. A server may name such a key, which
    the service has rewritten meanwhile.
    """
    if request.credential.bound is not None:
        return request.earlier_key
    return None if idempotency_key is None else relay.person_names.renamed(idempotency_key)
