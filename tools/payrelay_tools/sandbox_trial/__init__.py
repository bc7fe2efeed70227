"""Tries what a gateway's sandbox does, and compares it with the protocol that the adapter was written for."""
