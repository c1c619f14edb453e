"""The shared maths of truth inference: the sweep, the stopping rule, distributions."""
