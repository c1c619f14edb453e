"""What pyproject.toml cannot say: compiled loops remember the sources they were built from."""

import zlib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext


class BuildLoops(build_ext):
    """Compiles always: the times of copied files do not tell which is newer."""

    def finalize_options(self):
        super().finalize_options()
        files = sorted(Path("src/crowdwise").glob("_native*.[ch]"))
        sources = (
            zlib.crc32(b"".join(file.read_bytes() for file in files)) >> 1
        )  # as in compiled.py
        self.define = [*(self.define or []), ("SOURCES", str(sources))]
        self.force = True


setup(cmdclass={"build_ext": BuildLoops})
