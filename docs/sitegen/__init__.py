"""The parts of the documentation's builder; see docs/build.py."""
