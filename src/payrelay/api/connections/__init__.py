"""Callers' connections: whose each one is, and which are closed so that one caller doesn't take the others' places."""
