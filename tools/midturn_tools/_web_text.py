"""From the bytes of a page to characters: what kind of content it is, and in which charset."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from midturn_tools._text import binary_kind, size_text
from midturn_tools._web_page import Page

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_UNKNOWN = frozenset({"", "application/octet-stream", "binary/octet-stream"})
_TEXT_TYPE = re.compile(
    r"text/.+|.+\+(json|xml|yaml)|application/(json|xml|javascript|ecmascript|x-javascript|"
    r"ld\+json|x-ndjson|jsonlines|yaml|x-yaml|toml|x-toml|sql|graphql|x-sh|x-httpd-php|"
    r"x-www-form-urlencoded|rtf|x-tex|x-python|typescript)"
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_HEADER_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_META_CHARSET = re.compile(rb"<meta\b[^>]*?\bcharset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_XML_CHARSET = re.compile(rb"\s*<\?xml\b[^>]*?\bencoding\s*=\s*[\"']([\w.:-]+)", re.IGNORECASE)
_HTML_START = re.compile(r"<(!doctype html|html|head|body)\b", re.IGNORECASE)
_HEAD = 4_096
_SAMPLE = 64 * 1024
_UNREADABLE_SHARE = 0.1

# What the names mean on the web (browsers read the wider encoding), by Python's name.
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "euc_kr": "cp949",
    "ksx1001": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
}
_ALIASES = {"x-sjis": "shift_jis", "x-euc-jp": "euc_jp", "windows-949": "cp949", "x-gbk": "gbk"}
_WEB_ENCODING = re.compile(
    r"utf-8(-sig)?|utf-16(-[lb]e)?|cp(125[0-8]|866|874|932|949)|iso8859-(1[0-6]|[2-9])|koi8-[ru]|"
    r"gb18030|big5hkscs|euc_jp|iso2022_jp|mac-(roman|cyrillic)|johab|hz"
)
"""Python knows more codecs, some of which are no charset of any page (or a trap: idna, utf-7)."""


@dataclass(frozen=True, slots=True)
class PageText:
    """The characters of a page."""

    text: str
    is_html: bool
    notes: tuple[str, ...] = ()


def is_binary_type(media_type: str) -> bool:
    """Whether a media type promises something that is no text."""
    return media_type not in _UNKNOWN and not _TEXT_TYPE.fullmatch(media_type)


def read_text(page: Page) -> PageText | None:
    """The characters of a page; None when it is no text."""
    if is_binary_type(page.media_type):
        return None
    declared = [*_declared_encodings(page)]
    wide = any(encoding.startswith("utf-16") for encoding in declared)
    if not wide and binary_kind(page.body) is not None:
        return None
    decoded = _decode(page, declared)
    if decoded is None:
        return None
    notes = () if "\ufffd" not in decoded else ("Some bytes fit no charset; shown as U+FFFD.",)
    text = decoded.replace("\r\n", "\n").replace("\0", "\ufffd")
    is_html = page.media_type in _HTML or (
        page.media_type in _UNKNOWN and _begins_as_html(text[:_HEAD])
    )
    return PageText(text, is_html, notes)


def describe_binary(page: Page) -> str:
    """Type and size of a page that is no text."""
    kind = binary_kind(page.body) if page.body else None
    names = [name for name in (page.media_type or "no content type", kind) if name]
    size = size_text(page.size) if page.size else "size unknown"
    return f"{', '.join(names)}, {'more than ' if page.cut else ''}{size}"


def _begins_as_html(head: str) -> bool:
    """Whether the first thing that is neither space nor comment says so."""
    # Comment by comment: in one pattern they could be told apart in as many ways as there are
    # sums, and a page of nothing else would hold up the whole program.
    head = head.lstrip()
    while head.startswith("<!--") and (end := head.find("-->", 4)) >= 0:
        head = head[end + 3 :].lstrip()
    return _HTML_START.match(head) is not None


def _declared_encodings(page: Page) -> Iterator[str]:
    """What the page says of itself, the strongest word first."""
    for bom, encoding in _BOMS:
        if page.body.startswith(bom):
            yield encoding
            return
    header = _HEADER_CHARSET.search(page.content_type)
    if header is not None:
        yield from _web_encoding(header[1])
    head = page.body[:_HEAD]
    inside = _XML_CHARSET.match(head)
    if inside is None and page.media_type in _HTML | _UNKNOWN:
        inside = _META_CHARSET.search(head)
    if inside is not None:
        for encoding in _web_encoding(inside[1].decode("ascii", "replace")):
            # The declaration itself was readable, so the page is not in UTF-16.
            yield "utf-8" if encoding.startswith("utf-16") else encoding


def _web_encoding(label: str) -> Iterator[str]:
    label = label.lower()
    try:
        name = codecs.lookup(_ALIASES.get(label, label)).name
    except (LookupError, ValueError):
        return
    name = _WIDER.get(name, name)
    if _WEB_ENCODING.fullmatch(name):
        yield name


def _decode(page: Page, declared: list[str]) -> str | None:
    # Many servers declare Latin-1 for everything; what is valid UTF-8 practically never is it.
    first = ("utf-8",) if declared[:1] == ["cp1252"] else ()
    for encoding in (*first, *declared, "utf-8"):
        text = _strictly(page, encoding)
        if text is not None:
            return text.removeprefix("\ufeff")
    if page.media_type in _UNKNOWN:
        return None
    # Some servers declare UTF-8 for everything as well. A guess costs time: only if needed.
    for encoding in chain(declared[:1], map(_guess, [page.body])):
        text = page.body.decode(encoding, "replace")
        if text.count("\ufffd") <= _UNREADABLE_SHARE * len(text):
            return text
    return None


def _strictly(page: Page, encoding: str) -> str | None:
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    try:
        # A body that was cut may end in the middle of a character.
        return decoder.decode(page.body, final=not page.cut)
    except UnicodeDecodeError:
        return None


def _guess(body: bytes) -> str:
    import charset_normalizer  # 20 ms, and needed for few pages

    best = charset_normalizer.from_bytes(body[:_SAMPLE]).best()
    return best.encoding if best is not None else "utf-8"
