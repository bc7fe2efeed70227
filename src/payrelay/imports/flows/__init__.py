"""Imports: takes over card tokens, subscriptions and payments from before Payrelay."""
