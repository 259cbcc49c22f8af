"""The trainer's side of a loader: its iterators, its passes and its states."""
