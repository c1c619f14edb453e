"""One published table per file."""
