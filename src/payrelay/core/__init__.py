"""Decides; pure: no await, clock, randomness, environment or I/O. Time and ids come in as arguments."""
