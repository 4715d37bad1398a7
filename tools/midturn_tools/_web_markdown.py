"""From HTML to Markdown: the main part of a page, without navigation, scripts and styles.

Runs on a worker. The native libraries release the interpreter lock while they parse and convert,
and what would make them slow (deep nesting and thousands of attributes take quadratic time) is
found by a linear look beforehand and read as plain text instead.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_MAIN = ("main", "[role=main]", "article")
_NOISE = (
    "script, style, nav, aside, footer, noscript, template, iframe, object, embed, svg, canvas, "
    "audio, video, button, input, select, textarea, [hidden], [aria-hidden=true], a.headerlink, "
    "a.anchorjs-link"
)
_MIN_MAIN_SHARE = 0.1
"""Below this share of the page's text, what calls itself the main part is not believed."""
_MAX_DEPTH = 1_000
_MAX_OPTIONS = 5_000
"""Of all choice lists: the time that the parser takes for one grows with their square."""
_MAX_TAGS = 500_000
_MAX_ATTRIBUTES = 300
_LONG_TAG = 1_000
_OPTION = re.compile(r"<option\b", re.IGNORECASE)
_OPENING = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)")
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*+)[^>]*+")
"""As a browser reads it, up to its end: ``i<n;i++`` of a script begins no other before that."""
_VERY_LONG_TAG = re.compile(rf"<[a-zA-Z][^<>]{{{_LONG_TAG},}}")
_VOID = re.compile(
    r"area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr|p|li|dt|dd|tr|td|th|"
    r"thead|tbody|tfoot|option",
    re.IGNORECASE,
)
"""Elements without an end tag, or whose end tag is often left out and implied."""
_SKIPPED = ("script", "style", "noscript", "template", "svg")
_BLOCKS = re.compile(
    r"address|article|aside|blockquote|br|dd|div|dl|dt|fieldset|figure|footer|form|h[1-6r]|header|"
    r"li|main|nav|ol|option|p|pre|section|table|t[dhr]|title|ul",
    re.IGNORECASE,
)
_UNSAFE_URL = re.compile(r"(?:javascript|vbscript|data):", re.IGNORECASE)
_URL_NOISE = re.compile(r"[\x00-\x20]+")


@dataclass(frozen=True, slots=True)
class Markdown:
    title: str
    text: str
    is_plain: bool = False
    """The page was too deeply nested for Markdown; ``text`` has its words only."""


def to_markdown(source: str, base_url: str) -> Markdown:
    """The readable part of an HTML page; links are absolute, ``javascript:`` and ``data:`` gone."""
    if _is_hostile(source):
        return Markdown("", _plain(source), is_plain=True)
    # 60 ms together; not before the first page.
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(source)
    title = tree.css_first("title")
    heading = " ".join(title.text().split()) if title is not None else ""
    root = _main_part(tree)
    if root is None:
        return Markdown(heading, "")
    # Old pages are one form as a whole; the fields of forms are gone already.
    forms = PreprocessingOptions(remove_forms=False)
    options = ConversionOptions(extract_metadata=False, base_url=base_url, preprocessing=forms)
    result = convert(root.html or "", options)
    if any("depth" in str(warning.kind).lower() for warning in result.warnings):
        return Markdown(heading, root.text(separator="\n", strip=True), is_plain=True)
    return Markdown(heading, (result.content or "").strip())


def _main_part(tree: LexborHTMLParser) -> LexborNode | None:
    body = tree.body
    if body is None:
        return None
    for node in body.css(_NOISE):
        node.decompose()
    for node in body.css("[href], [src]"):
        _disarm(node)
    for selector in _MAIN:
        found = body.css(selector)
        # Several of them are a list of equals, such as the answers of a forum.
        if len(found) == 1:
            is_credible = len(found[0].text()) >= _MIN_MAIN_SHARE * len(body.text())
            return found[0] if is_credible else body
    return body


def _disarm(node: LexborNode) -> None:
    """Keep the words of a link or picture whose address is code or data, and drop the address."""
    for name in ("href", "src"):
        address = node.attributes.get(name)
        if address is None or not _UNSAFE_URL.match(_URL_NOISE.sub("", address)):
            continue
        if node.tag == "img":
            node.replace_with(node.attributes.get("alt") or "")
            return
        del node.attrs[name]


def _is_hostile(source: str) -> bool:
    """Whether tags, nesting or attributes go beyond what any honest page has."""
    for tag in _VERY_LONG_TAG.finditer(source):
        if tag[0].count("=") > _MAX_ATTRIBUTES or len(tag[0].split()) > _MAX_ATTRIBUTES:
            return True
    tags = source.count("<")
    if tags <= _MAX_DEPTH or tags > _MAX_TAGS:
        return tags > _MAX_TAGS
    if sum(1 for _ in _OPTION.finditer(source)) > _MAX_OPTIONS:
        return True
    return _deepest(source) > _MAX_DEPTH


def _deepest(source: str) -> int:
    """How deep the elements of a page go, up to where that is too deep."""
    # An end tag counts only when it ends something: others are passed over by every reader.
    open_names: list[str] = []
    how_many: dict[str, int] = {}
    for tag in _TAG.finditer(source):
        name = tag[2].lower()
        if _VOID.fullmatch(name):
            continue
        if not tag[1]:
            open_names.append(name)
            how_many[name] = how_many.get(name, 0) + 1
            if len(open_names) > _MAX_DEPTH:
                break
        elif how_many.get(name):
            while (ended := open_names.pop()) != name:
                how_many[ended] -= 1
            how_many[name] -= 1
    return len(open_names)


def _plain(source: str) -> str:
    """The words of a page in one linear pass, whatever its shape."""
    pieces: list[str] = []
    lowered = source.lower()
    position = 0
    while (start := source.find("<", position)) >= 0:
        pieces.append(source[position:start])
        tag = _OPENING.match(source, start)
        name = tag[2].lower() if tag is not None else ""
        if tag is not None and not tag[1] and name in _SKIPPED:
            position = _after(lowered, f"</{name}", start)
        elif source.startswith("<!--", start):
            position = _after(source, "-->", start)
            continue
        elif tag is None and not source.startswith(("<!", "<?"), start):
            pieces.append("<")
            position = start + 1
            continue
        else:
            position = start
        if _BLOCKS.fullmatch(name):
            pieces.append("\n")
        position = _after(source, ">", position)
    pieces.append(source[position:])
    # Line by line: one long call of the regex engine would hold up every other thread.
    lines = (" ".join(html.unescape(line).split()) for line in "".join(pieces).split("\n"))
    return "\n".join(line for line in lines if line)


def _after(text: str, end: str, start: int) -> int:
    """The position behind the next ``end``; the end of the text when there is none."""
    found = text.find(end, start)
    return len(text) if found < 0 else found + len(end)
