"""The journal's SQLite file: opening, creating and refusing it, and its faults in words."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from orchestrator_events.errors import JournalError

__all__ = ["SCHEMA_VERSION", "STORAGE_FAULTS", "is_lock", "open_database", "storage_error"]

SCHEMA_VERSION = 1
APPLICATION_ID = int.from_bytes(b"OrcJ", "big")
FIRST_WITH_STRICT = (3, 37)
CHECKPOINT_PAGES = 500
"""2 MB of WAL: half of SQLite's default, which was measured 3 % slower, as it leaves the CPU's cache."""
SWITCH_ATTEMPTS = 20
STORAGE_FAULTS = (sqlite3.Error, UnicodeDecodeError)
"""What the sqlite3 module raises; the second where a damaged schema is in the message."""
PRIMARY = 0xFF
"""Mask of SQLite's primary result code within an extended one."""

# A plain rowid table: rows of 2 to 5 kB in the tree of a WITHOUT ROWID key were measured a fifth slower, and
# blobs in a table of their own two fifths slower, with half as much again on disk.
TABLES = (
    """
    CREATE TABLE run (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE
    ) STRICT
    """,
    """
    CREATE TABLE batch (
        run INTEGER NOT NULL REFERENCES run (number),
        first INTEGER NOT NULL, -- sequence of the batch's first record: the key is the compare-and-swap
        count INTEGER NOT NULL,
        epoch INTEGER NOT NULL, -- fencing number of the writer
        digest BLOB NOT NULL, -- of the last entry, 32 bytes
        bodies BLOB NOT NULL, -- JSON lines
        blobs BLOB, -- frames of digest, holder, length, bytes
        PRIMARY KEY (run, first)
    ) STRICT
    """,
)

EXPLANATIONS = {
    sqlite3.SQLITE_BUSY: "another process holds its lock: wait for it or end it",
    sqlite3.SQLITE_LOCKED: "another process holds its lock: wait for it or end it",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: check the path and who may read and write there",
    sqlite3.SQLITE_CORRUPT: "damaged: restore the file from a copy",
    sqlite3.SQLITE_FULL: "storage failed, the disk is full: free space, open the journal again and resume",
    sqlite3.SQLITE_IOERR: "storage failed: check the disk, open the journal again and resume",
    sqlite3.SQLITE_NOTADB: "damaged, or not a journal: restore the file from a copy or name another",
    sqlite3.SQLITE_READONLY: "may not be written: check who may write the file and its folder",
}


def open_database(path: Path, *, read_only: bool, lock_wait_s: float) -> sqlite3.Connection:
    """A connection to a journal, created unless `read_only`; raises JournalError when it cannot be."""
    if sqlite3.sqlite_version_info < FIRST_WITH_STRICT:
        raise JournalError(f"SQLite {sqlite3.sqlite_version} is too old for a journal: install 3.37 or newer")
    if not path.parent.is_dir():
        raise JournalError(f"{path}: the folder {path.parent} does not exist: create it first")
    if read_only and not path.exists():
        raise JournalError(f"{path}: there is no journal: check the path")
    mode = "ro" if read_only else "rwc"
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=lock_wait_s,
            isolation_level=None,  # transactions are ours to begin
            check_same_thread=False,  # its owner holds a lock
        )
    except STORAGE_FAULTS as error:
        raise storage_error(path, error) from error
    try:
        prepare(connection, path, read_only)
    except STORAGE_FAULTS as error:
        connection.close()
        raise storage_error(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def storage_error(path: Path, error: Exception, run_id: str = "") -> JournalError:
    """What SQLite reports, with the path and what to do about it."""
    code = getattr(error, "sqlite_errorcode", 0) & PRIMARY
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    code = sqlite3.SQLITE_CORRUPT if isinstance(error, UnicodeDecodeError) else code
    explanation = EXPLANATIONS.get(code, "storage failed: open the journal again and resume")
    return JournalError(f"{path}: {explanation} ({name}: {error})", run_id=run_id)


def is_lock(error: Exception) -> bool:
    """Whether the store only waited for another process in vain, having written nothing."""
    code = getattr(error, "sqlite_errorcode", 0) & PRIMARY
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def prepare(connection: sqlite3.Connection, path: Path, read_only: bool) -> None:  # noqa: FBT001 -- private
    """Check whose file it is, create the tables in a new one, and set how it is written."""
    if is_empty(connection):
        if read_only:
            raise JournalError(f"{path}: the file is empty, there is no journal in it: check the path")
        write_ahead(connection)
        create(connection)
    refuse_foreign(connection, path)
    if not read_only:
        write_ahead(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether nobody has made a table in the file yet."""
    return (
        pragma(connection, "application_id") == 0
        and not connection.execute("SELECT EXISTS (SELECT 1 FROM sqlite_schema)").fetchone()[0]
    )


def write_ahead(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL; SQLite gives up at once where two processes do that, so each waits its turn."""
    for _ in range(SWITCH_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_lock(error):
                raise
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        else:
            return
    connection.execute("PRAGMA journal_mode = WAL")


def create(connection: sqlite3.Connection) -> None:
    """Make the tables, unless another process did while this one waited for the lock."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if is_empty(connection):
            for table in TABLES:
                connection.execute(table)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    """Raise JournalError for a file of another program or of a release that is newer than this one."""
    if pragma(connection, "application_id") != APPLICATION_ID:
        raise JournalError(f"{path}: the database of another program: name another file for the journal")
    version = pragma(connection, "user_version")
    if version != SCHEMA_VERSION:
        raise JournalError(
            f"{path}: the journal has schema {version}, this release reads {SCHEMA_VERSION}: "
            "open it with the release that wrote it, or a newer one"
        )


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """The value of a pragma that is a number."""
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value
