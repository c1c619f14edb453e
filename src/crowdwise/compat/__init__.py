"""Other libraries' names for what crowdwise does, so that switching only takes a new import.

``crowdwise.compat.crowdkit``, ``crowdwise.compat.cleanlab`` and ``crowdwise.compat.snorkel`` take
the arguments and return the tables of the library they are named after, which need not be
installed.
"""
