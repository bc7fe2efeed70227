"""Reads laravel-payhere's tables, wherever a shop has them."""
