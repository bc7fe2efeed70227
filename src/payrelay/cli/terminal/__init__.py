"""What every command shares: how it is declared, what it prints, and how it fails."""
