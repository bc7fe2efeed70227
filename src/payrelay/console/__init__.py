"""The console: pages for the people who look after payments. Parse, call one flow, render; no store is read here."""
