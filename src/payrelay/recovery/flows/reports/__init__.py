"""Reports of the gateway's payments that an operator feeds into a recovery."""
