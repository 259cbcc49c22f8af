"""How a batch is made in Python, in an executor's child, a fork or the trainer's own process."""
