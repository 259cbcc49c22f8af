"""What a user is told: what batches cost and why, and what works on this machine."""
