"""Payrelay relays payment operations to a gateway so that nobody is charged twice and no answer is lost."""
