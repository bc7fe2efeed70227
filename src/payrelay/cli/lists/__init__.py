"""The commands that list and show what is stored, and change nothing: checkouts, subscriptions and payments."""
