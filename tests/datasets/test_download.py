"""Whatever goes wrong while fetching: the right file or one clear error, never half a file."""

import errno
import hashlib
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from crowdwise.datasets import download
from crowdwise.datasets.download import (
    addresses,
    cache_folder,
    fetch_file,
    filling_cache,
    is_intact,
    path_of,
)
from crowdwise.errors import CrowdwiseError, DownloadError, FileError
from crowdwise.progress import Bar

pytestmark = pytest.mark.usefixtures("cache")

CONTENT = random.Random(0).randbytes(300_000)  # several blocks, and nothing that repeats


def get(file):
    return fetch_file(file, Bar())


def left_in(cache):
    return sorted(path.name for path in cache.iterdir()) if cache.exists() else []


def test_a_file_comes_whole_and_only_once(shelf, cache):
    file = shelf.put("some/labels.csv", CONTENT)
    path = get(file)
    assert path == cache / f"{hashlib.sha256(CONTENT).hexdigest()}.csv"
    assert path.read_bytes() == CONTENT
    assert get(file) == path
    assert len(shelf.requests) == 1
    assert left_in(cache) == [file.stored_name]


def test_other_people_may_read_a_shared_cache(shelf):
    mask = os.umask(0o022)
    try:
        assert get(shelf.put("a.csv", CONTENT)).stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(mask)


@pytest.mark.parametrize("damaged", [CONTENT[:-1] + b"?", CONTENT[:-1], b""])
def test_a_damaged_file_is_fetched_again(shelf, damaged):
    file = shelf.put("a.csv", CONTENT)
    path = get(file)
    path.write_bytes(damaged)
    assert not is_intact(file)
    assert get(file).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        (["other"], "received other contents, with sha256"),
        (["endless"], ": received 3"),
        (["short", "short", "short"], "received 150,000 bytes"),
        ([404], "404 Not Found"),
        ([403], "403 Forbidden"),
        ([503, 500, 502], "502 Bad Gateway"),
    ],
)
def test_what_is_not_the_file_is_refused(shelf, cache, faults, reason):
    file = shelf.put("a.csv", CONTENT, *faults)
    with pytest.raises(DownloadError) as caught:
        get(file)
    message = str(caught.value)
    assert isinstance(caught.value, CrowdwiseError | OSError)
    assert message.startswith("a.csv could not be fetched; nothing was kept.")
    assert f"{file.url}: " in message
    assert reason in message
    assert f"expected: 300,000 bytes with sha256 {file.sha256}" in message
    assert "fix: " in message
    assert left_in(cache) == []


def test_an_endless_answer_is_cut_off(shelf):
    file = shelf.put("a.csv", CONTENT, "endless")
    came = []
    bar = Bar()
    bar.advance = came.append
    with pytest.raises(DownloadError):
        fetch_file(file, bar)
    assert sum(size for size in came if size > 0) <= file.size + download.BLOCK
    assert len(shelf.requests) == 1


def test_a_missing_file_is_asked_for_once(shelf):
    file = replace(shelf.put("a.csv", CONTENT), url=f"{shelf.address}/nowhere.csv")
    with pytest.raises(DownloadError, match="404"):
        get(file)
    assert len(shelf.requests) == 1


@pytest.mark.parametrize("fault", [503, 429, "drops"])
def test_a_passing_fault_is_overcome(shelf, fault):
    assert get(shelf.put("a.csv", CONTENT, fault)).read_bytes() == CONTENT
    assert len(shelf.requests) == 2


def test_a_broken_download_resumes_where_it_stopped(shelf):
    file = shelf.put("a.csv", CONTENT, "drops", "drops")
    assert get(file).read_bytes() == CONTENT
    first, second, third = (asked for _, asked in shelf.requests)
    assert first is None
    assert second == "bytes=100000-"
    assert int(third.removeprefix("bytes=").removesuffix("-")) > 100_000


def test_a_server_without_ranges_is_asked_for_all_of_it(shelf):
    file = shelf.put("a.csv", CONTENT, "drops", "no ranges")
    bar = Bar()
    assert fetch_file(file, bar).read_bytes() == CONTENT
    assert bar.done == file.size


def test_a_server_that_never_finishes_is_given_up(shelf, cache):
    with pytest.raises(DownloadError, match=r"received .* bytes|Incomplete"):
        get(shelf.put("a.csv", CONTENT, "drops", "drops", "drops"))
    assert len(shelf.requests) == 3
    assert left_in(cache) == []


@pytest.mark.parametrize("fault", ["unresponsive", "stalls"])
def test_a_server_that_does_not_answer_is_not_waited_for(shelf, cache, monkeypatch, fault):
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    monkeypatch.setattr(download, "ATTEMPTS", 2)
    started = time.monotonic()
    with pytest.raises(DownloadError, match=r"no answer within 0\.2 seconds"):
        get(shelf.put("a.csv", CONTENT, fault, fault))
    assert time.monotonic() - started < 20  # TIMEOUT is 30
    assert left_in(cache) == []


def test_no_network_is_one_clear_error(shelf, cache):
    file = shelf.put("a.csv", CONTENT)
    nowhere = replace(file, url="http://host.invalid/a.csv")
    with pytest.raises(DownloadError, match="check the network and try again, or set CROWDWISE_"):
        get(nowhere)
    assert left_in(cache) == []


def test_nobody_listening_is_one_clear_error(shelf):
    file = replace(shelf.put("a.csv", CONTENT), url="http://127.0.0.1:9/a.csv")
    with pytest.raises(DownloadError, match="refused"):
        get(file)


# -- the disk ------------------------------------------------------------------------------


class FullDisk:
    """A file on a disk with room for a few bytes; closing it fails too, as it really does."""

    def __init__(self, handle):
        self.handle = handle

    def __getattr__(self, name):
        return getattr(self.handle, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.handle.close()
        raise OSError(errno.ENOSPC, "No space left on device")

    def write(self, block):
        self.handle.write(block[:10])
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_nothing_behind(shelf, cache, monkeypatch):
    real = Path.open

    def full(self, mode="r", *options):
        handle = real(self, mode, *options)
        return FullDisk(handle) if self.suffix == ".part" else handle

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(FileError, match="No space left on device") as caught:
        get(shelf.put("a.csv", CONTENT))
    assert "free some space, or set CROWDWISE_CACHE to another folder" in str(caught.value)
    assert len(shelf.requests) == 1
    assert left_in(cache) == []


def test_a_cache_that_cannot_be_written_says_so(shelf, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("CROWDWISE_CACHE", str(tmp_path / "file"))
    monkeypatch.delenv("CROWDWISE_MIRROR", raising=False)
    with pytest.raises(FileError, match="cannot be written; nothing was kept"):
        get(shelf.put("a.csv", CONTENT))
    assert shelf.requests == []


def test_a_read_only_cache_serves_what_it_holds_and_refuses_the_rest(shelf, cache, monkeypatch):
    held, missing = shelf.put("held.csv", CONTENT), shelf.put("missing.csv", CONTENT[:1000])
    get(held)
    real = Path.open

    def read_only(self, mode="r", *options):  # as root, permissions would not stop us
        if set(mode) & set("wxa+"):
            raise OSError(errno.EROFS, "Read-only file system")
        return real(self, mode, *options)

    monkeypatch.setattr(Path, "open", read_only)
    assert get(held).read_bytes() == CONTENT
    with pytest.raises(FileError, match="Read-only file system"):
        get(missing)
    assert left_in(cache) == [held.stored_name]


def test_permissions_are_respected(shelf, cache, unprivileged):
    cache.mkdir(parents=True)
    cache.chmod(0o555)
    file = shelf.put("a.csv", CONTENT)
    with unprivileged(), pytest.raises(FileError, match="Permission denied"):
        get(file)


def test_an_unreadable_file_is_one_clear_error(shelf):
    file = shelf.put("a.csv", CONTENT[:4096])
    path_of(file).mkdir(parents=True)
    file = replace(file, size=path_of(file).stat().st_size)
    with pytest.raises(FileError, match="cannot be read"):
        get(file)


def test_an_interrupted_writer_leaves_nothing(cache):
    def write():
        with filling_cache(cache / "a.csv") as handle:
            handle.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert left_in(cache) == []


# -- more than one process -----------------------------------------------------------------

PROGRAM = """
import sys
from crowdwise.datasets.download import fetch_file
from crowdwise.progress import Bar
from crowdwise.datasets.registry import RemoteFile
url, size, sha256, limit = sys.argv[1:]
if int(limit):
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
file = RemoteFile(url, int(size), sha256, "", "")
print("ready", flush=True)
sys.stdin.readline()
print(fetch_file(file, Bar()))
"""


def start(file, limit=0):
    """Another process that fetches the file on request."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    arguments = [file.url, str(file.size), file.sha256, str(limit)]
    return subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], text=True, **pipes)


def test_several_processes_at_once_all_succeed(shelf, cache):
    file = shelf.put("a.csv", CONTENT, "drops", "drops")
    processes = [start(file) for _ in range(3)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        output, complaints = process.communicate(timeout=120)
        assert (process.returncode, output.strip(), complaints) == (0, str(path_of(file)), "")
    assert path_of(file).read_bytes() == CONTENT
    assert left_in(cache) == [file.stored_name]


def test_a_killed_process_does_no_harm(shelf, cache):
    file = shelf.put("a.csv", CONTENT, "stalls")
    with start(file) as process:
        process.stdin.write("go\n")
        process.stdin.flush()
        deadline = time.monotonic() + 20
        while not shelf.requests and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
    (rest,) = left_in(cache)
    assert rest.endswith(".part")
    assert get(file).read_bytes() == CONTENT
    assert left_in(cache) == sorted([file.stored_name, rest])  # it may still be somebody's
    os.utime(cache / rest, (0, 0))
    path_of(file).unlink()
    get(file)
    assert left_in(cache) == [file.stored_name]


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on file size there")
def test_a_disk_that_really_takes_no_more_is_one_clear_error(shelf, cache):
    process = start(shelf.put("a.csv", CONTENT), limit=100_000)
    _, complaints = process.communicate("go\n", timeout=120)
    assert process.returncode == 1
    assert "crowdwise.errors.FileError: The cache" in complaints.splitlines()[-4]
    assert "File too large" in complaints
    assert left_in(cache) == []


# -- where files come from and go to -------------------------------------------------------


def test_a_mirror_is_asked_first_by_sha256(shelf, monkeypatch):
    file = replace(shelf.put("a.csv", CONTENT), url="http://host.invalid/b/a.csv")
    shelf.put(f"copy/{file.stored_name}", CONTENT)
    monkeypatch.setenv("CROWDWISE_MIRROR", f"{shelf.address}/copy/")
    assert get(file).read_bytes() == CONTENT
    assert [path for path, _ in shelf.requests] == [f"/copy/{file.stored_name}"]


@pytest.mark.parametrize("form", ["path", "file address"])
def test_a_mirror_may_be_a_folder(shelf, tmp_path, monkeypatch, form):
    file = shelf.put("a.csv", CONTENT)
    folder = tmp_path / "a copy"
    folder.mkdir()
    (folder / file.stored_name).write_bytes(CONTENT)
    monkeypatch.setenv("CROWDWISE_MIRROR", str(folder) if form == "path" else folder.as_uri())
    assert get(file).read_bytes() == CONTENT
    assert shelf.requests == []


def test_a_cache_is_a_mirror(shelf, tmp_path, monkeypatch):
    file = shelf.put("a.csv", CONTENT)
    get(file)
    monkeypatch.setenv("CROWDWISE_MIRROR", str(cache_folder()))
    monkeypatch.setenv("CROWDWISE_CACHE", str(tmp_path / "second"))
    assert get(file).read_bytes() == CONTENT
    assert len(shelf.requests) == 1


@pytest.mark.parametrize("fault", ["other", 404, "short"])
def test_a_bad_mirror_falls_back_to_the_publisher(shelf, monkeypatch, fault):
    file = shelf.put("a.csv", CONTENT)
    shelf.put(f"copy/{file.stored_name}", CONTENT, fault, fault, fault)
    monkeypatch.setenv("CROWDWISE_MIRROR", f"{shelf.address}/copy")
    bar = Bar()
    assert fetch_file(file, bar).read_bytes() == CONTENT
    assert bar.done == file.size


@pytest.mark.parametrize("mirror", ["nonsense://somewhere", "http://[not-an-address"])
def test_an_error_names_every_address_that_was_asked(shelf, monkeypatch, mirror):
    file = shelf.put("a.csv", CONTENT, 404)
    monkeypatch.setenv("CROWDWISE_MIRROR", mirror)
    with pytest.raises(DownloadError) as caught:
        get(file)
    assert f"{mirror}/{file.stored_name}: " in str(caught.value)
    assert f"{file.url}: 404" in str(caught.value)


def test_without_a_mirror_only_the_publisher_is_asked(shelf):
    file = shelf.put("a.csv", CONTENT)
    assert addresses(file) == [file.url]


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"CROWDWISE_CACHE": "/chosen"}, "/chosen/datasets"),
        ("linux", {"XDG_CACHE_HOME": "/xdg"}, "/xdg/crowdwise/datasets"),
        ("linux", {"HOME": "/home/ann"}, "/home/ann/.cache/crowdwise/datasets"),
        ("darwin", {"HOME": "/Users/ann"}, "/Users/ann/Library/Caches/crowdwise/datasets"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/crowdwise/datasets"),
    ],
)
def test_the_cache_is_where_the_platform_keeps_such_things(
    monkeypatch, platform, variables, expected
):
    for name in ("CROWDWISE_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache_folder() == Path(expected)
