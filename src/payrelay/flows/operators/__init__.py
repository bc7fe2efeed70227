"""What operators do and are told: alerts, the audit, decisions, reviews."""
