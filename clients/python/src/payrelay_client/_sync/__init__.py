"""The client for programs without an event loop; but for ``runtime``, it is written from ``_async``."""
