"""One published table a file."""
