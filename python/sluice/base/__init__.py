"""What all parts of the client use: settings, the log, signals, CPUs, what a thread inherits."""
