"""The client for programs that run on an event loop; ``_sync`` is written from it."""
