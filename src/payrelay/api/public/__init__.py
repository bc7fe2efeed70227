"""Requests without a credential: health, docs, the pages of a checkout, and the gateway's notifications."""
