"""Blobs: texts that records name by digest."""

from __future__ import annotations

from hashlib import sha256

import pytest

from orchestrator_events import Blob, EventError


def test_size_and_digest_are_those_of_the_utf8_bytes() -> None:
    """A blob's size is in bytes and its digest is SHA-256 over them, not over characters."""
    blob = Blob("größe")
    data = "größe".encode()
    assert (blob.data, blob.size, blob.digest) == (data, 7, sha256(data).hexdigest())


def test_a_blob_known_by_digest_equals_the_one_with_the_text() -> None:
    """A blob read from an export without texts stands for the same content, also as a dictionary key."""
    whole = Blob("text")
    bare = Blob(None, whole.digest, whole.size)
    assert (bare == whole, hash(bare) == hash(whole), bare.size) == (True, True, 4)


def test_blobs_of_different_texts_differ() -> None:
    """Equality is that of the content."""
    assert Blob("a") != Blob("b")
    assert Blob("a") != "a"


def test_a_missing_text_is_an_error_that_names_the_digest_and_the_fix() -> None:
    """Bytes cannot be had from a digest alone; the message says where they are."""
    with pytest.raises(EventError, match=r"the text of blob abc was not loaded: read it from its journal"):
        Blob(None, "abc", 1).data  # noqa: B018


def test_a_lone_surrogate_is_refused_with_its_place() -> None:
    """What no reader would give back cannot be hashed."""
    with pytest.raises(EventError, match="lone surrogate at character 2"):
        Blob("ab\ud800").digest  # noqa: B018


def test_the_text_is_not_shown() -> None:
    """A candidate does not flood a traceback or a log."""
    assert repr(Blob("a" * 1000)) == "Blob(41edece42d63, 1000 bytes)"
