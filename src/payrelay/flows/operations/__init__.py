"""What becomes of a request at once: the answer to a repeat, and an outcome that is not known."""
