"""`python -m sluice.executor --socket-fd N --arena-fd M`: the Python executor's child (child.py)."""

from sluice.executor.child import main

if __name__ == "__main__":
    main()
