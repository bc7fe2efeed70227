"""Orders and payments for somebody at the console: find them, tell what happened, ask the gateway."""
