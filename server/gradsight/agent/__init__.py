"""What runs inside the interpreter of the user: standard library and torch only, Python 3.9 and later."""
