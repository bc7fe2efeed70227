"""What is kept of gateway accounts: budgets, access tokens, pauses, what was read last."""
