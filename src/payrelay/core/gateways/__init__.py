"""What is known of gateway accounts whatever the provider: budgets, rates, pauses, what each can do."""
