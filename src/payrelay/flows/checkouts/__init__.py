"""Opens checkouts, shows them, and brings them to their end."""
