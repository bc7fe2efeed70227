"""Machines that live as long as the process and know no flow."""
