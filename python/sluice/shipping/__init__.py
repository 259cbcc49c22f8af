"""What goes from this process to another one: frames, pickles, surroundings, exceptions."""
