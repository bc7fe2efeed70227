"""What is used beside Payrelay, once: the trial of a gateway's sandbox, and readers of what a shop had before."""
