"""Who makes a loop's batches, and what that costs: accounts, forks, when an executor pays."""
