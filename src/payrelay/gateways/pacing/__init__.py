"""Keeps calls within a gateway's budget; knows no gateway."""
