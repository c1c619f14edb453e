"""Storage of the events: a SQLite file or a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from crowdwise.errors import CrowdwiseError, MissingExtraError, ParameterError, explain
from crowdwise.serve.schema import migrate

LOCK = 7_240_119  # our key among the advisory locks of a PostgreSQL database
SIGNATURE = b"SQLite format 3\0"  # at the start of a file
WAIT = 10.0  # seconds to wait for another writer, or for a connection


class UnavailableError(CrowdwiseError, OSError):
    """The database cannot be reached or written to; the action was not done."""


class Database:
    """A database in which one writer at a time appends events.

    Parameters
    ----------
    address : str
        ``sqlite:///file.db`` or ``postgresql://user@host/name``.
    """

    def __init__(self, address: str) -> None:
        self.url = parse_address(address)
        self.is_server = self.url.get_backend_name() == "postgresql"
        self.engine = connect_server(self.url) if self.is_server else open_file(self.url)
        lock = f"BEGIN; SELECT pg_advisory_xact_lock({LOCK})"
        self._begin_alone = lock if self.is_server else "BEGIN IMMEDIATE"
        with self.exclusive() as connection:
            migrate(connection)

    @contextmanager
    def exclusive(self) -> Iterator[Connection]:
        """Run a transaction without any other writer; what it writes is durable afterward."""
        with explain_failures(self.url), closing(self._begin(self._begin_alone)) as connection:
            yield connection
            connection.commit()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Run a transaction that sees one state of the database, whatever others write."""
        one_state = "BEGIN ISOLATION LEVEL REPEATABLE READ" if self.is_server else "BEGIN"
        with explain_failures(self.url), closing(self._begin(one_state)) as connection:
            yield connection
            connection.rollback()

    def _begin(self, words: str) -> Connection:
        """Begin a transaction on a connection, replacing one that has died."""
        connection = self.engine.connect()
        try:
            connection.exec_driver_sql(words)
        except DBAPIError as error:
            connection.close()
            if not error.connection_invalidated:
                raise
            connection = self.engine.connect()  # the pool has dropped all that were open
            connection.exec_driver_sql(words)
        return connection

    def close(self) -> None:
        """Close all connections."""
        with suppress(SQLAlchemyError):
            self.engine.dispose()


def parse_address(address: str) -> URL:
    """Parse the address of a database, and refuse one that we cannot use."""
    try:
        url = make_url(address)
    except ArgumentError:
        url = None
    kind = "" if url is None else url.get_backend_name()
    if url is None or kind not in ("sqlite", "postgresql"):
        raise ParameterError(
            explain(
                f"--database {address.partition('://')[0]} is not a supported address.",
                expected="sqlite:///votes.db or postgresql://user@host/name",
                fix="write it like one of these",
            )
        )
    return url if kind == "sqlite" else url.set(drivername="postgresql+psycopg")


def open_file(url: URL) -> Engine:
    """Open a SQLite file whose commits reach the disk before they are acknowledged."""
    refuse_other_file(url)
    engine = create_engine(url, connect_args={"timeout": WAIT, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions begin where we begin them
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    return engine


def refuse_other_file(url: URL) -> None:
    """Refuse a file of another kind, which SQLite would write over if it is short."""
    path = Path(url.database or "")
    if not url.database or not path.is_file():
        return
    try:
        with path.open("rb") as file:
            start = file.read(len(SIGNATURE))
    except OSError as error:
        raise explain_refusal(path, error.strerror or str(error)) from None
    if start not in (b"", SIGNATURE):
        raise explain_refusal(path, "it is not a SQLite file")


def explain_refusal(path: Path, why: str) -> ParameterError:
    expected, fix = "a new file, or a database of this service", "name another with --database"
    return ParameterError(
        explain(f"{path} cannot be the database: {why}.", expected=expected, fix=fix)
    )


def connect_server(url: URL) -> Engine:
    """Connect to a PostgreSQL server; transactions begin where we begin them, as in a file."""
    options = {"connect_timeout": int(WAIT), "options": f"-c lock_timeout={int(WAIT)}s"}
    try:
        return create_engine(url, connect_args=options, isolation_level="AUTOCOMMIT", pool_size=4)
    except (ImportError, NoSuchModuleError):
        raise MissingExtraError.of("PostgreSQL", "psycopg", "serve") from None


@contextmanager
def explain_failures(url: URL) -> Iterator[None]:
    """Turn errors of the database into ours, without the data that was to be stored."""
    try:
        yield
    except DBAPIError as error:
        reason = str(error.orig).strip().splitlines() or [type(error.orig).__name__]
        where = url.render_as_string(hide_password=True)
        raise UnavailableError(
            explain(
                "The database is not available; nothing was stored.",
                first=f"{where}: {reason[0]}",
                fix="send the request again; if it keeps failing, check the disk and the server",
            )
        ) from error
