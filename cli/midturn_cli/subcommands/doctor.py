"""``midturn doctor``: look at the machine and the set-up; every line is ok or says how to fix it.

Nothing is sent anywhere without ``--online``, no program of the current folder is run, and no
secret is shown.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import midturn_cli
from midturn_cli.launch import config_source, workspace
from midturn_cli.options import EXIT_FAILED, Arguments
from midturn_core import paths
from midturn_core.config import Config
from midturn_core.config_loader import CREDENTIAL_VARIABLES, LoadedConfig, load_config
from midturn_core.errors import ConfigError
from midturn_core.version import VERSION

OLDEST_PYTHON = (3, 11)
SMALLEST_TERMINAL = os.terminal_size((40, 10))
PROGRAM_TIMEOUT = 5.0
"""Seconds for a program to say its version."""
ONLINE_TIMEOUT = 10.0


class Verdict(Enum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One line. ``fix`` says what to do; it is empty when the verdict is ok."""

    verdict: Verdict
    subject: str
    finding: str
    fix: str = ""


def run(arguments: Arguments) -> int:
    """Print every check; the exit code is 1 when one failed."""
    failed = False
    width = max(40, min(shutil.get_terminal_size().columns, 100))
    for check in checks(arguments, os.environ):
        failed = failed or check.verdict is Verdict.FAIL
        sys.stdout.write(render(check, width))
        sys.stdout.flush()
    return EXIT_FAILED if failed else 0


def render(check: Check, width: int) -> str:
    text = check.finding + (f" -> {check.fix}" if check.fix else "")
    clean = "".join(char if char.isprintable() else "?" for char in text)
    head = f"{check.verdict.value:<5}{check.subject:<10}"
    # A path stays in one piece: it is there to be copied.
    wrapper = textwrap.TextWrapper(
        width,
        initial_indent=head,
        subsequent_indent=" " * 15,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapper.fill(clean) + "\n"


def checks(arguments: Arguments, environ: Mapping[str, str]) -> Iterator[Check]:
    yield python_check()
    yield Check(Verdict.OK, "midturn", f"{VERSION}, at {Path(midturn_cli.__file__).parent}")
    if sys.platform == "win32":
        yield Check(Verdict.FAIL, "system", "Windows", "run Midturn inside WSL")
    yield from terminal_checks(environ)
    config = Config()
    try:
        loaded = load_config(config_source(arguments, environ))
        config = loaded.config
        yield from config_checks(loaded)
    except ConfigError as error:
        for problem in error.problems:
            yield Check(Verdict.FAIL, "config", problem, "correct that, then start again")
    yield credential_check(config)
    yield from program_checks(workspace(), environ)
    yield from folder_checks(environ)
    if arguments.is_on("online"):
        yield online_check(config)


def python_check() -> Check:
    version = sys.version.split()[0]
    if sys.version_info < OLDEST_PYTHON:
        return Check(Verdict.FAIL, "python", version, "install Python 3.11 or newer")
    return Check(Verdict.OK, "python", f"{version}, {sys.executable}")


def terminal_checks(environ: Mapping[str, str]) -> Iterator[Check]:
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        yield Check(
            Verdict.WARN,
            "terminal",
            "input or output is not a terminal, so Midturn would run in plain mode",
            "run it in a terminal without redirection",
        )
    else:
        yield _terminal_check(environ)
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if encoding == "utf8":
        yield Check(Verdict.OK, "locale", "UTF-8")
    else:
        fix = "set LANG=C.UTF-8 (or another UTF-8 locale)"
        yield Check(Verdict.WARN, "locale", f"the encoding is {encoding or 'unknown'}", fix)


def _terminal_check(environ: Mapping[str, str]) -> Check:
    term = environ.get("TERM", "")
    size = shutil.get_terminal_size()
    if term in ("", "dumb"):
        finding = f"TERM is {term or 'not set'}, so Midturn runs in plain mode"
        return Check(Verdict.WARN, "terminal", finding, "set TERM, such as TERM=xterm-256color")
    finding = f"{term}, {size.columns} x {size.lines}, {_colours(environ, term)}"
    if size.columns < SMALLEST_TERMINAL.columns or size.lines < SMALLEST_TERMINAL.lines:
        least = f"{SMALLEST_TERMINAL.columns} x {SMALLEST_TERMINAL.lines}"
        return Check(Verdict.WARN, "terminal", finding, f"make the window at least {least}")
    return Check(Verdict.OK, "terminal", finding)


def _colours(environ: Mapping[str, str], term: str) -> str:
    if environ.get("NO_COLOR"):
        return "no colours (NO_COLOR)"
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "true colour"
    return "256 colours" if "256" in term else "16 colours"


def config_checks(loaded: LoadedConfig) -> Iterator[Check]:
    if not loaded.file_read:
        yield Check(Verdict.OK, "config", f"no file, built-in values (it would be {loaded.file})")
    else:
        yield _config_file_check(loaded)
    for warning in loaded.warnings:
        yield Check(Verdict.WARN, "config", warning, "correct the name or remove it")


def _config_file_check(loaded: LoadedConfig) -> Check:
    from_file = sum(
        any(origin.place.startswith(f"{loaded.file}:") for origin in origins)
        for origins in loaded.origins.values()
    )
    finding = f"{loaded.file}, {from_file} values from it"
    if os.name == "posix" and loaded.file.stat().st_mode & 0o022:
        fix = f"chmod go-w {loaded.file}"
        return Check(Verdict.WARN, "config", f"{finding}; others may change it", fix)
    return Check(Verdict.OK, "config", finding)


def credential_check(config: Config) -> Check:
    address = config.model.base_url or "the service's own address"
    for variable, field in CREDENTIAL_VARIABLES.items():
        if getattr(config.model, field):
            return Check(Verdict.OK, "key", f"{variable} is set, for {_host(address)}")
    return Check(
        Verdict.WARN,
        "key",
        f"no key for {_host(address)}",
        "export ANTHROPIC_API_KEY=..., or try it without one: midturn demo",
    )


def _host(address: str) -> str:
    """An address without a user name, a password or a query."""
    scheme, separator, rest = address.partition("://")
    if not separator:
        return address
    return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"


def program_checks(folder: Path, environ: Mapping[str, str]) -> Iterator[Check]:
    found = _program_check("rg", folder, environ)
    yield found or Check(
        Verdict.WARN,
        "rg",
        "not found, so Grep and Glob use the slower built-in search",
        "install ripgrep",
    )
    found = _program_check("bash", folder, environ)
    fix = "install bash"
    yield found or Check(Verdict.FAIL, "bash", "not found, so no command can be run", fix)
    found = _program_check("git", folder, environ)
    fix = "install git"
    yield found or Check(Verdict.WARN, "git", "not found, so /diff does not work", fix)


def find_program(name: str, folder: Path, environ: Mapping[str, str]) -> Path | None:
    """A program on PATH that is not inside ``folder``: those may be anybody's."""
    for entry in environ.get("PATH", os.defpath).split(os.pathsep):
        if not os.path.isabs(entry):
            continue
        found = shutil.which(name, path=entry)
        if found is None:
            continue
        resolved = Path(found).resolve()
        inside = any(folder in (path, *path.parents) for path in (resolved, Path(found)))
        if not inside:
            return Path(found)
    return None


def _program_check(name: str, folder: Path, environ: Mapping[str, str]) -> Check | None:
    import subprocess

    program = find_program(name, folder, environ)
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "--version"],
            cwd="/" if os.name == "posix" else None,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROGRAM_TIMEOUT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return Check(Verdict.FAIL, name, f"{program} does not run", f"install {name} again")
    version = next(iter(done.stdout.decode(errors="replace").splitlines()), "")
    return Check(Verdict.OK, name, f"{program}, {version}")


def folder_checks(environ: Mapping[str, str]) -> Iterator[Check]:
    folders = (
        paths.config_folder(environ),
        paths.state_folder(environ),
        paths.sessions_folder(environ),
    )
    for folder in folders:
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        problem = _write_problem(existing)
        if problem:
            fix = f"make {existing} a folder that you may write to"
            yield Check(Verdict.FAIL, "folder", f"{folder} cannot be written: {problem}", fix)
        else:
            state = "writable" if existing == folder else "can be made"
            yield Check(Verdict.OK, "folder", f"{folder}, {state}")


def _write_problem(folder: Path) -> str:
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def online_check(config: Config) -> Check:
    """Ask the service for its list of models: the smallest request that needs the key."""
    import urllib.error
    import urllib.request

    address = (config.model.base_url or "https://api.anthropic.com").rstrip("/")
    headers = {"anthropic-version": "2023-06-01", "user-agent": f"midturn/{VERSION}"}
    if config.model.api_key:
        headers["x-api-key"] = config.model.api_key
    elif config.model.auth_token:
        headers["authorization"] = f"Bearer {config.model.auth_token}"
    where = _host(address)
    try:
        request = urllib.request.Request(f"{address}/v1/models?limit=1", headers=headers)
        with urllib.request.urlopen(request, timeout=ONLINE_TIMEOUT):
            return Check(Verdict.OK, "online", f"{where} answers and takes the key")
    except urllib.error.HTTPError as error:
        return _refusal(where, error.code)
    except (OSError, ValueError) as error:
        fix = "check the network, the proxy settings and [model] base_url"
        return Check(Verdict.FAIL, "online", f"{where} cannot be reached: {error}", fix)


def _refusal(where: str, status: int) -> Check:
    if status in (401, 403):
        fix = "set ANTHROPIC_API_KEY to a valid key"
        return Check(Verdict.FAIL, "online", f"{where} refuses the key ({status})", fix)
    if status == 404:
        return Check(Verdict.OK, "online", f"{where} answers (it lists no models)")
    return Check(Verdict.WARN, "online", f"{where} answers with status {status}", "try again later")
