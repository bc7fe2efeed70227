"""How operators sign in: what a code, a passkey or a provider's answer proves, and how often somebody may try."""
