"""A stand-in for the real package: a child that does what a test's pipeline says, with nothing but the standard library."""
