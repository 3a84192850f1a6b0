"""What a file is, told from its first bytes and its name: ``PNG image, 640 x 480``, ``SQLite database``."""

from __future__ import annotations

import codecs
import struct
from dataclasses import dataclass
from pathlib import PurePath

SAMPLE_SIZE = 8192
"""How many bytes of a file's beginning are enough to tell."""


@dataclass(frozen=True, slots=True)
class FileKind:
    """``encoding`` is None for what is not text."""

    description: str
    encoding: str | None = None

    @property
    def is_text(self) -> bool:
        """Whether it can be shown as lines."""
        return self.encoding is not None


_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "PNG image"),
    (0, b"\xff\xd8\xff", "JPEG image"),
    (0, b"GIF8", "GIF image"),
    (8, b"WEBP", "WebP image"),
    (0, b"BM", "BMP image"),
    (0, b"\x00\x00\x01\x00", "icon"),
    (0, b"II*\x00", "TIFF image"),
    (0, b"MM\x00*", "TIFF image"),
    (0, b"%PDF-", "PDF document"),
    (0, b"SQLite format 3\x00", "SQLite database"),
    (0, b"PK\x03\x04", "ZIP archive"),
    (0, b"PK\x05\x06", "ZIP archive (empty)"),
    (0, b"\x1f\x8b", "gzip data"),
    (0, b"BZh", "bzip2 data"),
    (0, b"\xfd7zXZ\x00", "xz data"),
    (0, b"(\xb5/\xfd", "Zstandard data"),
    (0, b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (0, b"Rar!\x1a\x07", "RAR archive"),
    (257, b"ustar", "tar archive"),
    (0, b"\x7fELF", "ELF program or library"),
    (0, b"MZ", "Windows program or library"),
    (0, b"\xcf\xfa\xed\xfe", "Mach-O program or library"),
    (0, b"\xca\xfe\xba\xbe", "Java class or universal Mach-O"),
    (0, b"\x00asm", "WebAssembly module"),
    (0, b"GGUF", "GGUF model weights"),
    (0, b"\x93NUMPY", "NumPy array"),
    (0, b"PAR1", "Parquet table"),
    (0, b"ARROW1", "Arrow table"),
    (0, b"\x89HDF\r\n\x1a\n", "HDF5 data"),
    (0, b"PACK", "Git pack"),
    (0, b"wOF2", "WOFF2 font"),
    (0, b"wOFF", "WOFF font"),
    (0, b"OTTO", "OpenType font"),
    (0, b"\x00\x01\x00\x00\x00", "TrueType font"),
    (0, b"OggS", "Ogg audio or video"),
    (0, b"fLaC", "FLAC audio"),
    (0, b"ID3", "MP3 audio"),
    (8, b"WAVE", "WAV audio"),
    (4, b"ftyp", "MP4 video or audio"),
    (0, b"\x1aE\xdf\xa3", "Matroska or WebM video"),
)

_ZIP_BASED = {
    ".docx": "Word document",
    ".xlsx": "Excel workbook",
    ".pptx": "PowerPoint slides",
    ".odt": "OpenDocument text",
    ".ods": "OpenDocument spreadsheet",
    ".epub": "EPUB book",
    ".jar": "Java archive",
    ".whl": "Python wheel",
    ".apk": "Android package",
    ".npz": "NumPy arrays",
}

_BINARY_SUFFIXES = {
    ".pyc": "Python bytecode",
    ".pkl": "Python pickle",
    ".o": "object file",
    ".a": "static library",
    ".safetensors": "model weights (safetensors)",
    ".pt": "PyTorch data",
    ".bin": "binary data",
}

_TEXT_SUFFIXES = {
    ".py": "Python source",
    ".pyi": "Python type stubs",
    ".ipynb": "Jupyter notebook",
    ".md": "Markdown",
    ".rst": "reStructuredText",
    ".txt": "plain text",
    ".json": "JSON",
    ".jsonl": "JSON lines",
    ".toml": "TOML",
    ".yaml": "YAML",
    ".yml": "YAML",
    ".ini": "INI settings",
    ".cfg": "INI settings",
    ".csv": "CSV table",
    ".tsv": "TSV table",
    ".xml": "XML",
    ".svg": "SVG image",
    ".html": "HTML",
    ".css": "CSS",
    ".js": "JavaScript source",
    ".mjs": "JavaScript source",
    ".ts": "TypeScript source",
    ".tsx": "TypeScript source (JSX)",
    ".jsx": "JavaScript source (JSX)",
    ".c": "C source",
    ".h": "C header",
    ".cpp": "C++ source",
    ".hpp": "C++ header",
    ".rs": "Rust source",
    ".go": "Go source",
    ".java": "Java source",
    ".kt": "Kotlin source",
    ".rb": "Ruby source",
    ".php": "PHP source",
    ".swift": "Swift source",
    ".cs": "C# source",
    ".sh": "shell script",
    ".bash": "shell script",
    ".ps1": "PowerShell script",
    ".sql": "SQL",
    ".tex": "LaTeX",
    ".bib": "BibTeX references",
    ".log": "log",
    ".diff": "diff",
    ".patch": "diff",
    ".lock": "lock file",
}

_TEXT_NAMES = {
    "makefile": "Makefile",
    "dockerfile": "Dockerfile",
    "license": "licence text",
    "licence": "licence text",
    "copying": "licence text",
    ".gitignore": "Git ignore rules",
    "readme": "plain text",
    "changelog": "plain text",
}

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def kind_of_file(name: str, head: bytes) -> FileKind:
    """What the file ``name`` that begins with ``head`` is.

    >>> kind_of_file("a.py", b"print('hi')").description
    'Python source'
    >>> kind_of_file("misnamed.txt", b"SQLite format 3" + bytes(1)).description
    'SQLite database'
    """
    path = PurePath(name)
    suffix = path.suffix.lower()
    if not head:
        return FileKind("empty file", "utf-8")
    encoding = _encoding(head)
    for offset, magic, description in _MAGIC:
        # Two letters of plain text are no proof: "BMW sales" is no bitmap, "MZ" may begin a name.
        if head.startswith(magic, offset) and (len(magic) > 2 or encoding is None):
            return FileKind(_refined(description, suffix, head))
    if encoding is None:
        return FileKind(_BINARY_SUFFIXES.get(suffix, "binary data"))
    return FileKind(_text_description(path.name.lower(), suffix, head), encoding)


def _refined(description: str, suffix: str, head: bytes) -> str:
    if description == "PNG image" and len(head) >= 24:
        width, height = struct.unpack(">II", head[16:24])
        return f"{description}, {width} x {height}"
    if description == "GIF image" and len(head) >= 10:
        width, height = struct.unpack("<HH", head[6:10])
        return f"{description}, {width} x {height}"
    if description == "ZIP archive":
        return _ZIP_BASED.get(suffix, description)
    if description == "gzip data" and suffix == ".tgz":
        return "gzip-compressed tar archive"
    return description


def _text_description(name: str, suffix: str, head: bytes) -> str:
    known = _TEXT_SUFFIXES.get(suffix) or _TEXT_NAMES.get(name) or _TEXT_NAMES.get(name.partition(".")[0])
    if known:
        return known
    if head.startswith(b"#!"):
        interpreter = head[2:].splitlines()[0].decode("latin-1") if len(head) > 2 else ""
        return "Python script" if "python" in interpreter else "script"
    return "plain text"


def _encoding(head: bytes) -> str | None:
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return encoding
    if b"\x00" in head:
        return None
    # The sample may end in the middle of a character, so the decoder must not be told that it is all.
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=False)
    except UnicodeDecodeError:
        pass
    else:
        return "utf-8" if _controls(head) < 0.05 else None
    return "latin-1" if _controls(head) < 0.01 else None


_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b"))


def _controls(head: bytes) -> float:
    """The share of control characters that text does not hold."""
    return 1 - len(head.translate(None, _CONTROLS)) / len(head)
