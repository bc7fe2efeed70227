"""What calls others by aiohttp's client. Its modules are loaded by their names, where there is something to send.

The client takes 11 MB, which a service does without that sends no webhooks and no alerts to an address.
"""
