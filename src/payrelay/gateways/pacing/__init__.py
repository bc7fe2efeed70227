"""Keeps to a gateway's budget of calls; knows no provider."""
