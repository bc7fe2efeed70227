"""What ``payrelay check`` checks, one subject a module."""
