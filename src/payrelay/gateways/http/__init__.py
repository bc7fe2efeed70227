"""HTTP/1.1 to a gateway: what comes back of one call, and whether anything was sent. Knows no gateway."""
