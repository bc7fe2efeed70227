"""A webhook's receiver, whole: registers its own address, checks each event's signature, and prints what it hears.

Run it beside ``make demo``, with the key that was printed:

    PAYRELAY_KEY=prk_… .venv/bin/python examples/hear.py
"""

import asyncio
import os
import signal

import aiohttp
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

PAYRELAY = os.environ.get("PAYRELAY", "http://127.0.0.1:8080/gateway/api")
HOST = "127.0.0.1"
SECRET = web.AppKey("secret", asyncio.Future[str])


def tell(line: str) -> None:
    """Prints a line at once."""
    print(line, flush=True)  # noqa: T201 - it is there to print


async def take(request: web.Request) -> web.Response:
    """Takes one event; what isn't signed with our secret is nobody's news."""
    webhook = Webhook(await request.app[SECRET])
    try:
        event = webhook.verify(await request.read(), dict(request.headers))
    except WebhookVerificationError:
        return web.Response(status=401)
    tell(f"{event['timestamp']} {event['type']} {event['subject']}")
    return web.Response(status=204)


async def main() -> None:
    """Listens until Ctrl-C, and takes its address back then."""
    app = web.Application()
    app[SECRET] = asyncio.get_running_loop().create_future()
    app.router.add_post("/", take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, HOST, 0)
    await site.start()
    _, port = runner.addresses[0]
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if "PAYRELAY_KEY" not in os.environ:
        raise SystemExit("name the key that the demo printed: PAYRELAY_KEY=prk_…")
    key = {"Authorization": f"Bearer {os.environ['PAYRELAY_KEY']}"}
    async with aiohttp.ClientSession(headers=key) as api:
        wanted = {"url": f"http://{HOST}:{port}/", "types": ["*"], "label": "examples/hear.py"}
        async with api.post(f"{PAYRELAY}/endpoints", json=wanted) as answer:
            told = await answer.json()
        if not answer.ok:
            raise SystemExit(told["msg"])
        endpoint = told["data"]
        app[SECRET].set_result(endpoint["secret"])
        tell(f"listening as {endpoint['id']}; Ctrl-C ends it")
        await stop.wait()
        async with api.delete(f"{PAYRELAY}/endpoints/{endpoint['id']}"):
            await runner.cleanup()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except aiohttp.ClientConnectorError as error:
        raise SystemExit(f"nobody answers at {PAYRELAY}: {error.strerror}") from error
