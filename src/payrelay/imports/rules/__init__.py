"""Imports: card tokens, subscriptions and payments from before Payrelay, as files and tables tell of them."""
