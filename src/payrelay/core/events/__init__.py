"""Events, the addresses that they may go to, and the schedule of their deliveries."""
