"""The tables, and the migrations of older databases.

``event`` is everything that ever happened, in order and without gaps; its rows are never changed
or removed. ``lease`` says which worker holds which task, ``receipt`` has the answers to requests
that may be sent again.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    inspect,
    select,
)

from crowdwise.errors import FormatError, explain

METADATA = MetaData()
BIG = BigInteger().with_variant(Integer, "sqlite")
NAME = String(500)  # of tasks, workers and classes

EVENT = Table(
    "event",
    METADATA,
    Column("seq", BIG, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),  # seconds since 1970, by the service's clock
    Column("kind", String(20), nullable=False),
    Column("actor", NAME, nullable=False),  # who did it
    Column("task", NAME, nullable=False),  # "" if it has none, like the next two
    Column("worker", NAME, nullable=False),
    Column("label", NAME, nullable=False),
    Column("turn", Integer, nullable=False),  # 0 for the first such event about this, then 1, …
    Column("body", Text, nullable=False),  # JSON, "" for none
    UniqueConstraint("kind", "task", "worker", "turn", name="event_once"),
)
LEASE = Table(
    "lease",
    METADATA,
    Column("id", BIG, primary_key=True),  # never reused
    Column("task", NAME, nullable=False),
    Column("worker", NAME, nullable=False),
    Column("seconds", Float, nullable=False),
    Index("lease_of_worker", "worker", "task"),
    sqlite_autoincrement=True,
)
RECEIPT = Table(
    "receipt",
    METADATA,
    Column("id", String(64), primary_key=True),  # digest of the sender and the key
    Column("request", String(64), nullable=False),  # digest of the request
    Column("answer", Text, nullable=False),  # JSON
)
VERSION = Table("crowdwise_schema", METADATA, Column("version", Integer, primary_key=True))


def create_tables(connection: Connection) -> None:
    """Create version 1 of the tables."""
    METADATA.create_all(connection)


# One migration per version, in order. Released ones are never edited, only followed by more.
MIGRATIONS = (create_tables,)


def migrate(connection: Connection) -> int:
    """Bring the database up to date within the caller's transaction; returns its version."""
    version = find_version(connection)
    if version > len(MIGRATIONS):
        raise FormatError(
            explain(
                f"The database has version {version} of our tables.",
                expected=f"version {len(MIGRATIONS)} or older",
                fix="install the version of crowdwise that last used it, or a newer one",
            )
        )
    for step in MIGRATIONS[version:]:
        step(connection)
    if version < len(MIGRATIONS):
        connection.execute(VERSION.delete())
        connection.execute(VERSION.insert().values(version=len(MIGRATIONS)))
    return version


def find_version(connection: Connection) -> int:
    """Return the version of the tables in the database, 0 if there are none."""
    if not inspect(connection).has_table(VERSION.name):
        return 0
    return int(connection.execute(select(VERSION.c.version)).scalar() or 0)
