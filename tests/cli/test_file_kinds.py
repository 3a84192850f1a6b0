"""What a file is: by content first, by name where the content does not tell."""

from __future__ import annotations

import pytest

from rx_agent.cli.file_kinds import SAMPLE_SIZE, kind_of_file

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x02\x80\x00\x00\x01\xe0"


@pytest.mark.parametrize(
    ("name", "head", "kind", "encoding"),
    [
        ("a.py", b"import os\n", "Python source", "utf-8"),
        ("README", b"Hello\n", "plain text", "utf-8"),
        ("LICENSE", b"MIT", "licence text", "utf-8"),
        ("run", b"#!/usr/bin/env python3\n", "Python script", "utf-8"),
        ("run", b"#!/bin/sh\n", "script", "utf-8"),
        ("empty.bin", b"", "empty file", "utf-8"),
        ("x.png", PNG, "PNG image, 640 x 480", None),
        ("lies.txt", PNG, "PNG image, 640 x 480", None),
        ("x.gif", b"GIF89a\x10\x00\x08\x00\xf7", "GIF image, 16 x 8", None),
        ("app.db", b"SQLite format 3\x00" + bytes(80), "SQLite database", None),
        ("x.docx", b"PK\x03\x04\x14\x00", "Word document", None),
        ("x.zip", b"PK\x03\x04\x14\x00", "ZIP archive", None),
        ("x.tgz", b"\x1f\x8b\x08", "gzip-compressed tar archive", None),
        ("x.tar", bytes(257) + b"ustar", "tar archive", None),
        ("x", b"\x7fELF\x02\x01", "ELF program or library", None),
        ("a.pyc", b"\xcb\x0d\x0d\x0a\x00\x00\x00\x00", "Python bytecode", None),
        ("noise", bytes(range(256)), "binary data", None),
        ("BMW.txt", b"BMW sells cars", "plain text", "utf-8"),
        ("latin.txt", "Grüße, schöne Straße und vieles mehr".encode("latin-1"), "plain text", "latin-1"),
        ("utf16.txt", "hello".encode("utf-16"), "plain text", "utf-16"),
        ("bom.csv", b"\xef\xbb\xbfa,b\n", "CSV table", "utf-8-sig"),
    ],
)
def test_a_file_is_what_it_holds(name: str, head: bytes, kind: str, encoding: str | None) -> None:
    told = kind_of_file(name, head)
    assert (told.description, told.encoding) == (kind, encoding)


def test_a_sample_that_ends_in_the_middle_of_a_character_is_still_text() -> None:
    head = ("x" + "ü" * SAMPLE_SIZE).encode()[:SAMPLE_SIZE]
    assert kind_of_file("a.txt", head).encoding == "utf-8"
