"""From the bytes of a page to text: charsets, binary content, Markdown."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from midturn_tools import _web_text
from midturn_tools._web_markdown import to_markdown
from midturn_tools._web_page import Page
from midturn_tools._web_text import describe_binary, is_binary_type, read_text

URL = "https://example.com/docs/page"
KOREAN = "안녕하세요, 뷁"


def page(body: bytes, content_type: str = "text/plain", cut: bool = False) -> Page:
    return Page(URL, 200, "OK", content_type, body, len(body), cut)


def text_of(body: bytes, content_type: str = "text/plain", cut: bool = False) -> str | None:
    content = read_text(page(body, content_type, cut))
    return content.text if content is not None else None


@pytest.mark.parametrize(
    ("label", "encoding", "text"),
    [
        ("euc-kr", "cp949", KOREAN),
        ("EUC-KR", "euc_kr", "안녕"),
        ("ks_c_5601-1987", "cp949", KOREAN),
        ("iso-8859-1", "cp1252", "naïve “café” €"),
        ("Shift_JIS", "cp932", "日本語①"),
        ("gb2312", "gb18030", "汉字镕"),
        ("big5", "big5hkscs", "漢字"),
        ("windows-1251", "cp1251", "Привет"),
        ("koi8-r", "koi8-r", "Привет"),
        ("utf-16le", "utf-16-le", "wide"),
        ('"utf-8"', "utf-8", KOREAN),
    ],
)
def test_the_charset_of_the_header_is_used(label: str, encoding: str, text: str) -> None:
    assert text_of(text.encode(encoding), f"text/plain; charset={label}") == text


@pytest.mark.parametrize(
    "declaration",
    [
        '<meta charset="euc-kr">',
        "<META CharSet=euc-kr />",
        '<meta http-equiv="Content-Type" content="text/html; charset=euc-kr">',
        '<?xml version="1.0" encoding="euc-kr"?>',
    ],
)
def test_the_charset_that_the_page_declares_is_used(declaration: str) -> None:
    body = f"{declaration}<title>{KOREAN}</title>"
    assert text_of(body.encode("cp949"), "text/html") == body


def test_a_byte_order_mark_wins_and_is_not_shown() -> None:
    assert text_of(b"\xef\xbb\xbf" + KOREAN.encode(), "text/plain; charset=euc-kr") == KOREAN
    assert text_of("\ufeffwide 글".encode("utf-16-le"), "text/plain") == "wide 글"
    assert text_of("\ufeffwide 글".encode("utf-16-be"), "text/html") == "wide 글"


def test_a_wrong_or_unknown_charset_does_not_spoil_utf8() -> None:
    for label in ("ascii", "klingon", "base64", "idna", "utf-7", "unicode_escape"):
        assert text_of("글 +AGE-".encode(), f"text/plain; charset={label}") == "글 +AGE-"


@pytest.mark.parametrize("declared", ["", "; charset=utf-8"])
def test_a_legacy_charset_that_is_not_declared_or_wrongly_is_recognised(declared: str) -> None:
    text = "인터넷에서 내려받은 오래된 문서는 아직도 완성형으로 쓰여 있는 경우가 많다. " * 20
    assert text_of(text.encode("cp949"), f"text/html{declared}") == text


def test_no_charset_is_guessed_where_the_declared_one_fits_but_for_a_byte(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A guess takes the time of many pages."""

    def guess(_: bytes) -> str:
        raise AssertionError("guessed")

    monkeypatch.setattr(_web_text, "_guess", guess)
    body = "déjà vu ".encode() * 100 + b"\xff"
    assert text_of(body, "text/plain; charset=utf-8") == "déjà vu " * 100 + "\ufffd"


def test_a_body_that_was_cut_within_a_character_is_no_error() -> None:
    body = ("가" * 1_000).encode()[:-1]
    assert text_of(body, cut=True) == "가" * 999


def test_lone_bytes_are_marked_and_said() -> None:
    content = read_text(page(b"text " * 100 + b"\x81\xff", "text/plain; charset=utf-8"))
    assert content is not None
    assert content.text.startswith("text text")
    assert content.notes or "\ufffd" not in content.text


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/pdf", b"%PDF-1.7 plain so far"),
        ("image/png", b"\x89PNG\r\n\x1a\n"),
        ("application/octet-stream", bytes(range(256))),
        ("application/octet-stream", random.Random(1).randbytes(5_000)),
        ("text/html", random.Random(2).randbytes(5_000)),
        ("text/html; charset=utf-8", random.Random(2).randbytes(5_000)),
        ("text/html; charset=utf-8", b"\x89PNG\r\n\x1a\n" + bytes(50)),
        ("", b"\x1f\x8b\x08"),
        ("application/zip", b"PK\x03\x04"),
        ("application/octet-stream", b"\xb0\xb1\xb2\xc0" * 50),
    ],
)
def test_what_is_no_text_is_named_instead_of_shown(content_type: str, body: bytes) -> None:
    found = page(body, content_type)
    assert read_text(found) is None
    assert "bytes" in describe_binary(found) or "kB" in describe_binary(found)


def test_the_note_on_binary_content_has_type_and_size() -> None:
    assert describe_binary(page(b"%PDF-1.7", "application/pdf")) == (
        "application/pdf, a PDF document, 8 bytes"
    )
    unread = replace(page(b"", "image/png"), size=4_200_000)
    assert describe_binary(unread) == "image/png, 4.2 MB"
    assert describe_binary(page(b"", "image/png")) == "image/png, size unknown"


@pytest.mark.parametrize(
    "media_type",
    [
        "text/markdown",
        "application/json",
        "application/problem+json",
        "image/svg+xml",
        "text/x-rust",
    ],
)
def test_textual_types_are_text(media_type: str) -> None:
    assert not is_binary_type(media_type)


def test_text_without_a_content_type_is_shown() -> None:
    assert text_of(b"plain words", "") == "plain words"
    content = read_text(page(b"<!DOCTYPE html><p>x", ""))
    assert content is not None
    assert content.is_html


def test_a_page_of_comments_is_recognised_in_no_time() -> None:
    for end, is_html in (("<html><p>x", True), ("words", False)):
        content = read_text(page(f"{'<!---->' * 580} {end}".encode(), ""))
        assert content is not None
        assert content.is_html is is_html


def test_a_content_type_that_was_sent_twice_is_read_once() -> None:
    found = page(b"<p>x", "text/html, text/html; charset=utf-8")
    assert found.media_type == "text/html"
    assert text_of(b"<p>x", found.content_type) == "<p>x"


def test_markdown_keeps_structure_and_drops_what_is_not_content() -> None:
    source = """<html><head><title> A
      page </title><style>b{}</style><script>var x</script></head><body>
      <nav><a href=/home>Home</a></nav><main><h1>Top<a class=headerlink href=#top>¶</a></h1>
      <p>See <a href="other">this</a>.</p><pre><code class="language-py">x = 1\n\n\ny = 2</code></pre>
      <table><tr><th>k</th><th>v</th></tr><tr><td>1</td><td>2</td></tr></table></main>
      <footer>imprint</footer></body></html>"""
    found = to_markdown(source, URL)
    assert found.title == "A page"
    assert not found.is_plain
    assert found.text.startswith("# Top\n")
    assert "[this](https://example.com/docs/other)" in found.text
    assert "```py\nx = 1\n\n\ny = 2\n```" in found.text
    assert "| 1 | 2 |" in found.text
    for noise in ("Home", "imprint", "var x", "b{}", "¶", "---\ntitle"):
        assert noise not in found.text


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        " JavaScript:x",
        "java\nscript:x",
        "&#106;avascript:x",
        "data:text/html,x",
    ],
)
def test_links_that_are_code_or_data_lose_their_address_and_keep_their_words(address: str) -> None:
    found = to_markdown(f'<p>a <a href="{address}">link</a> b <img src="{address}" alt="pic">', URL)
    assert "link" in found.text
    assert "pic" in found.text
    assert "](" not in found.text
    assert "script:" not in found.text.lower()
    assert "data:" not in found.text


def test_a_page_without_a_main_part_is_shown_whole() -> None:
    found = to_markdown("<p>one<p>two", URL)
    assert found.text == "one\n\ntwo"


def test_a_tiny_main_part_is_not_believed() -> None:
    found = to_markdown(f"<article>ad</article><p>{'real text ' * 50}", URL)
    assert "real text" in found.text


def test_several_articles_are_all_shown() -> None:
    found = to_markdown("<article><p>one</article><article><p>two</article>", URL)
    assert found.text == "one\n\ntwo"


def test_a_page_within_one_form_is_shown_without_its_fields() -> None:
    found = to_markdown("<form><h1>Old</h1><p>words</p><button>Go</button></form>", URL)
    assert found.text == "# Old\n\nwords"


@pytest.mark.parametrize(
    "source",
    [
        "<div>" * 1_500 + "the words" + "</div>" * 1_500,
        "<style>" + ".a{color:red}\n" * 40_000 + "</style>" + "<div>" * 20_000 + "the words",
        "<div " + " ".join(f"a{n}=1" for n in range(20_000)) + ">the words</div>",
        "<b><i><a href=x>" * 20_000 + "the words",
        "<!-- <div> -->" + "<ul><li>" * 50_000 + "the words<script>color:red",
        "<select>" + "<option>" * 100_000 + "</select>the words",
        "<select>" + "<option></option>" * 100_000 + "</select>the words",
        "<div></x>" * 100_000 + "the words",
        "<p:x>" * 100_000 + "the words",
        "".join(f"<p><font color={n}>" for n in range(5_000)) + "the words",
    ],
    ids=[
        *("nested", "css-and-nested", "attributes", "unclosed", "lists"),
        *("options", "closed-options", "ends-of-nothing", "prefixes", "fonts"),
    ],
)
def test_a_page_of_hostile_shape_still_gives_its_words(source: str) -> None:
    found = to_markdown(source, URL)
    assert found.text == "the words"
    assert "color" not in found.text


@pytest.mark.parametrize(
    "part",
    [
        "<script>" + "for(i=0;i<n;i++)f(i);" * 3_000 + "</script>",
        "<form><select>" + "<option>A town" * 3_000 + "</select></form>",
    ],
    ids=["comparisons-in-a-script", "options-without-ends"],
)
def test_a_page_of_honest_size_is_read_as_markdown(part: str) -> None:
    found = to_markdown(f"<body><main><h1>Top</h1><p>The <b>words</b></p></main>{part}", URL)
    assert not found.is_plain
    assert found.text == "# Top\n\nThe **words**"


def test_the_plain_reading_keeps_lines_entities_and_stray_brackets() -> None:
    shape = "<div>" * 3_000
    found = to_markdown(f"{shape}<h1>Top</h1><p>1 &lt; 2 &amp; a < b</p><SCRIPT>x</SCRIPT>end", URL)
    assert found.is_plain
    assert found.text == "Top\n1 < 2 & a < b\nend"
