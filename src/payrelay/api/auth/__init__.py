"""Authentication of callers, their quotas, and the limit on failed attempts."""
