"""The demo: its parts and where they stand, and what is printed."""
