"""Other libraries' names for what crowdwise does, so that switching costs one import.

``crowdwise.compat.crowdkit``, ``crowdwise.compat.cleanlab`` and ``crowdwise.compat.snorkel`` take
the arguments and give back the tables of the library they are named after. None of them needs it
to be installed.
"""
