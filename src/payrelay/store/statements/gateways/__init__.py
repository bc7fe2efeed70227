"""Statements about gateway accounts."""
