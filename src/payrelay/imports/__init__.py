"""Taking over what a shop had before Payrelay."""
