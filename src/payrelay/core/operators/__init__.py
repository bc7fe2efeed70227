"""Who operates the installation, and what each role may do."""
