"""Pictures of tasks, from a single folder."""

from __future__ import annotations

from pathlib import Path

from crowdwise.serve.draft import RefusedError

MOST_BYTES = 30_000_000
# First bytes of pictures, and their types. SVG is not allowed: it may contain scripts.
KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
)


class ImageFolder:
    """Reads pictures in a folder; without a folder there are none."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = None if folder is None else folder.resolve()

    def read(self, name: str) -> tuple[bytes, str]:
        """Read a picture and its type; anything else gets the same error."""
        data = self._read(name)
        kind = "" if data is None else find_kind(data)
        if data is None or not kind:
            raise RefusedError(404, "There is no such picture.")
        return data, kind

    def _read(self, name: str) -> bytes | None:
        if self.folder is None or not name:
            return None
        try:
            path = (self.folder / name).resolve()
            inside = path.is_relative_to(self.folder) and path.is_file()
            if not inside or path.stat().st_size > MOST_BYTES:
                return None
            return path.read_bytes()
        except (OSError, ValueError):
            return None


def find_kind(data: bytes) -> str:
    """Detect the type of a picture by its first bytes, empty if it is not one."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in KINDS if data.startswith(start)), "")
