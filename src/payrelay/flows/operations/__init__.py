"""What becomes of a request at once: its intent, and the answer to a repeat."""
