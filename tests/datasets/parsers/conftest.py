"""Files as a publisher would lay them out, made up for one test."""

import pytest


@pytest.fixture
def published(tmp_path):
    """Write files by name, text or bytes; returns what a parser takes."""

    def write(**contents):
        files = {}
        for key, content in contents.items():
            name = key.replace("__", ".")
            path = files[name] = tmp_path / name
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return files

    return write
