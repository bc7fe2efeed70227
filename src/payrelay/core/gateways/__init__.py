"""Gateway accounts of any gateway: budgets, rate limits, pauses and capabilities."""
