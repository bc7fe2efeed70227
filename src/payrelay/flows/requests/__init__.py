"""What a request wants done at the gateway, and what must be asked before it is."""
