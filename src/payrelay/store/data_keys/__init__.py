"""The keys of what can be erased, and how the database loses them."""
