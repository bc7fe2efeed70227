"""Stored customers: who can be charged by a handle."""
