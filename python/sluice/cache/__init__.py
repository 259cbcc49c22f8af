"""What a cache keeps: source files, and results of functions that the user has marked."""
