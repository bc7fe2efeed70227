"""What the console keeps: operators, invitations, sessions, counted tries, and the history of what operators did."""
