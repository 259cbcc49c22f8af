"""What is read of a user's pipeline so that native executors can run it."""
