"""What lost commits leave in doubt: which effects, which payments, and of whom."""
