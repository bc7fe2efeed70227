"""The demo: its parts and where they stand, a day that has something to reconcile, and what is printed."""
