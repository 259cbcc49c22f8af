"""The feeder of this process: which one, its start, the connection to it and the batches that come."""
