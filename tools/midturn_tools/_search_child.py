"""Our own search, for machines without ripgrep: same request, same output, a process of its own.

A process, since a regular expression holds the interpreter while it searches and cannot be
stopped; a process can be killed. Runs as ``python -I _search_child.py REQUEST`` with the request
as JSON, and prints what ``_search_results.py`` reads: the lines of ripgrep's ``--json``, or paths.
Patterns are Python's regular expressions; ignore files count as they do for ripgrep.
"""

from __future__ import annotations

import base64
import codecs
import fnmatch
import json
import os
import re
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pathspec import GitIgnoreSpec

_CPU_SECONDS = 120
_TELL_SECONDS = 0.1
_MAX_FILE_BYTES = 200 * 1024 * 1024
_LINE_BREAK_IN_PATTERN = re.compile(r"(?<!\\)(?:\\\\)*\\n|\n")
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_TYPES = {
    "c": "*.[chH] *.[chH].in *.cats",
    "cpp": "*.[ChH] *.[ch]pp *.[ch]xx *.cc *.hh *.inl",
    "cs": "*.cs",
    "css": "*.css *.scss",
    "dart": "*.dart",
    "docker": "*Dockerfile*",
    "elixir": "*.ex *.eex *.exs",
    "go": "*.go",
    "h": "*.h *.hh *.hpp",
    "haskell": "*.hs *.lhs",
    "html": "*.htm *.html *.ejs",
    "java": "*.java *.jsp *.jspx *.properties",
    "js": "*.cjs *.js *.jsx *.mjs *.vue",
    "json": "*.json",
    "kotlin": "*.kt *.kts",
    "lua": "*.lua",
    "make": "*.mk *.mak [Mm]akefile GNUmakefile",
    "markdown": "*.markdown *.md *.mdown *.mdx *.mkdn",
    "md": "*.markdown *.md *.mdown *.mdx *.mkdn",
    "perl": "*.pl *.pm *.t",
    "php": "*.php *.phtml",
    "protobuf": "*.proto",
    "py": "*.py *.pyi",
    "python": "*.py *.pyi",
    "r": "*.R *.r *.Rmd",
    "ruby": "*.rb *.gemspec Gemfile Rakefile config.ru",
    "rust": "*.rs",
    "scala": "*.scala *.sbt",
    "sh": "*.sh *.bash *.zsh *.ksh",
    "sql": "*.sql *.psql",
    "swift": "*.swift",
    "toml": "*.toml Cargo.lock",
    "ts": "*.cts *.mts *.ts *.tsx",
    "txt": "*.txt",
    "xml": "*.xml *.xsd *.xsl *.xslt",
    "yaml": "*.yaml *.yml",
    "zig": "*.zig",
}


class RequestError(Exception):
    """The request cannot be done; the text is for the model."""


@dataclass(frozen=True, slots=True)
class Request:
    root: str
    mode: str
    pattern: str
    names: str
    """A regular expression that relative paths must match (or must not, if ``negative``)."""
    negative: bool
    depth: int | None
    """How many levels down files can be at most."""
    file_type: str
    before: int
    after: int
    ignore_case: bool
    multiline: bool
    hidden: bool
    ignored: bool


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The ignore files that apply in one folder, outermost first.

    An ``.ignore`` file beats every ``.gitignore``, a deeper file beats a higher one.
    """

    ignore: tuple[tuple[str, GitIgnoreSpec], ...] = ()
    gitignore: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    @classmethod
    def above(cls, folder: str) -> IgnoreRules:
        """The rules of the folders above; those of git only within the same repository.

        None when they exclude the folder itself: it was named outright.
        """
        rules = cls()
        parents = [str(parent) for parent in reversed(Path(folder).parents)]
        for parent in parents:
            if os.path.exists(os.path.join(parent, ".git")):
                rules = cls(rules.ignore)
            rules = rules.inside(parent)
        if os.path.exists(os.path.join(folder, ".git")):
            rules = cls(rules.ignore)
        return cls() if rules.exclude(folder, folder=True) else rules

    def inside(self, folder: str) -> IgnoreRules:
        ignore = self.ignore + _rules_of(folder, ".ignore")
        local = _rules_of(folder, os.path.join(".git", "info", "exclude"))
        return IgnoreRules(ignore, self.gitignore + local + _rules_of(folder, ".gitignore"))

    def exclude(self, path: str, *, folder: bool) -> bool:
        for chain in (self.ignore, self.gitignore):
            for base, spec in reversed(chain):
                relative = os.path.relpath(path, base) + ("/" if folder else "")
                verdict = spec.check_file(relative).include
                if verdict is not None:
                    return verdict
        return False


@dataclass(slots=True)
class Walk:
    """Every file below a folder that counts, in path order; links are not followed."""

    request: Request
    names: re.Pattern[str]
    types: tuple[str, ...]

    def files(self) -> Iterator[str]:
        root = self.request.root
        if os.path.isdir(root):
            rules = IgnoreRules() if self.request.ignored else IgnoreRules.above(root)
            yield from self._below(root, rules, self.request.depth or sys.maxsize)
        else:
            yield root

    def _below(self, folder: str, rules: IgnoreRules, depth: int) -> Iterator[str]:
        if not self.request.ignored:
            rules = rules.inside(folder)
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            complain(folder, error)
            return
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if self._hidden(entry.name) or rules.exclude(entry.path, folder=is_folder):
                continue
            if is_folder:
                if depth > 1:
                    yield from self._below(entry.path, rules, depth - 1)
            elif entry.is_file(follow_symlinks=False) and self._wanted(entry.path):
                yield entry.path

    def _hidden(self, name: str) -> bool:
        return name == ".git" if self.request.hidden else name.startswith(".")

    def _wanted(self, path: str) -> bool:
        name = os.path.basename(path)
        if self.types and not any(fnmatch.fnmatchcase(name, glob) for glob in self.types):
            return False
        relative = path.removeprefix(self.request.root).lstrip("/")
        return (self.names.fullmatch(relative) is None) is self.request.negative


@dataclass(slots=True)
class Searcher:
    """Looks into files and prints what was found."""

    request: Request
    pattern: re.Pattern[str]
    out: BinaryIO
    found: bool = False

    def search(self, path: str) -> None:
        text = self._text(path)
        if text is None:
            return
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        matched = self._spans(text) if self.request.multiline else self._matched(lines)
        if not matched:
            return
        self.found = True
        self._print(path, lines, matched, "\0" in text)

    def _text(self, path: str) -> str | None:
        try:
            if os.path.getsize(path) > _MAX_FILE_BYTES:
                raise OSError(None, "too large for the built-in search")
            data = Path(path).read_bytes()
        except OSError as error:
            complain(path, error)
            return None
        for mark, encoding in _BYTE_ORDER_MARKS:
            if data.startswith(mark):
                return data[len(mark) :].decode(encoding, "replace")
        # What holds a NUL is no text; a file that was named outright is searched all the same.
        if b"\0" in data and path != self.request.root:
            return None
        return data.decode("utf-8", "surrogateescape")

    def _matched(self, lines: list[str]) -> dict[int, Span]:
        search = self.pattern.search
        return {
            index: Span(index, index, found.start(), found[0])
            for index, line in enumerate(lines)
            if (found := search(line.removesuffix("\r"))) is not None
        }

    def _spans(self, text: str) -> dict[int, Span]:
        """Matches across lines; one that begins on the last line of another extends it."""
        spans: list[Span] = []
        for found in self.pattern.finditer(text):
            first = text.count("\n", 0, found.start())
            last = text.count("\n", 0, max(found.end() - 1, found.start()))
            if spans and first <= spans[-1].last:
                spans[-1].last = max(last, spans[-1].last)
            else:
                column = found.start() - (text.rfind("\n", 0, found.start()) + 1)
                spans.append(Span(first, last, column, found[0]))
        return {span.first: span for span in spans}

    def _print(self, path: str, lines: list[str], matched: dict[int, Span], binary: bool) -> None:
        name = os.fsencode(path)
        match self.request.mode:
            case "files":
                self.out.write(name + b"\0")
            case "count":
                self.out.write(name + b"\0%d\n" % len(matched))
            case _:
                self._record("begin", path, {})
                for kind, data in self._shown(lines, matched):
                    self._record(kind, path, data)
                self._record("end", path, {"binary_offset": 0 if binary else None})

    def _shown(
        self, lines: list[str], matched: dict[int, Span]
    ) -> Iterator[tuple[str, dict[str, object]]]:
        done = -1
        for first, span in sorted(matched.items()):
            for index in range(max(first - self.request.before, done + 1), first):
                yield "context", _line(lines[index : index + 1], Span(index, index, 0, ""))
            yield "match", _line(lines[first : span.last + 1], span)
            done = span.last
            after = done + self.request.after
            while done < after and done + 1 < len(lines) and done + 1 not in matched:
                done += 1
                yield "context", _line(lines[done : done + 1], Span(done, done, 0, ""))

    def _record(self, kind: str, path: str, data: dict[str, object]) -> None:
        record = {"type": kind, "data": {"path": _text_or_bytes(path), **data}}
        self.out.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")


@dataclass(slots=True)
class Span:
    """The lines of a match by index, and the column where it begins."""

    first: int
    last: int
    column: int
    text: str


def _line(lines: list[str], span: Span) -> dict[str, object]:
    text = "\n".join(lines) + "\n"
    start = len(text[: span.column].encode("utf-8", "surrogateescape"))
    submatch = {"match": _text_or_bytes(span.text), "start": start}
    return {
        "lines": _text_or_bytes(text),
        "line_number": span.first + 1,
        "submatches": [submatch],
    }


def _text_or_bytes(text: str) -> dict[str, str]:
    raw = text.encode("utf-8", "surrogateescape")
    try:
        return {"text": raw.decode("utf-8")}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(raw).decode()}


def _rules_of(folder: str, name: str) -> tuple[tuple[str, GitIgnoreSpec], ...]:
    try:
        text = Path(folder, name).read_text("utf-8", "replace")
    except OSError:
        return ()
    return ((folder, GitIgnoreSpec.from_lines(text.split("\n"))),)


def complain(path: str, error: OSError) -> None:
    """In ripgrep's words, on the error output."""
    sys.stderr.write(f"{path}: {error.strerror} (os error {error.errno or 0})\n")


def compile_pattern(request: Request) -> re.Pattern[str]:
    """Raises RequestError with the position, as ripgrep shows it."""
    if not request.multiline and _LINE_BREAK_IN_PATTERN.search(request.pattern):
        raise RequestError("the literal '\"\\n\"' is not allowed in a regex without --multiline")
    flags = re.IGNORECASE if request.ignore_case else re.NOFLAG
    if request.multiline:
        flags |= re.MULTILINE | re.DOTALL
    try:
        return re.compile(request.pattern, flags)
    except re.error as error:
        caret = " " * (error.pos or 0) + "^"
        raise RequestError(
            f"regex parse error:\n    {request.pattern}\n    {caret}\nerror: {error.msg}"
        ) from None
    except (OverflowError, RecursionError) as error:
        raise RequestError(f"regex parse error: {error}") from None


def file_types(name: str) -> tuple[str, ...]:
    if name and name not in _TYPES:
        raise RequestError(f"unrecognized file type: {name}; known: {', '.join(_TYPES)}")
    return tuple(_TYPES.get(name, "").split())


def main(argument: str, out: BinaryIO) -> int:
    """Exit code as ripgrep's: 0 found, 1 nothing found, 2 the request cannot be done."""
    request = Request(**json.loads(argument))
    try:
        walk = Walk(request, re.compile(request.names, re.DOTALL), file_types(request.file_type))
        searcher = Searcher(request, compile_pattern(request), out)
    except RequestError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if request.mode == "list":
        return _list(walk, out)
    for path in walk.files():
        searcher.search(path)
        # The next file may be one for which there is not time enough.
        out.flush()
    return 0 if searcher.found else 1


def _list(walk: Walk, out: BinaryIO) -> int:
    found = False
    told = time.monotonic()
    for path in walk.files():
        found = True
        out.write(os.fsencode(path) + b"\0")
        if time.monotonic() - told > _TELL_SECONDS:
            out.flush()
            told = time.monotonic()
    out.flush()
    return 0 if found else 1


if __name__ == "__main__":
    # Nobody may be left to kill it.
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    sys.exit(main(sys.argv[1], sys.stdout.buffer))
