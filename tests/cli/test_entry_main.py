"""The command as a process: exit codes, what goes to which stream, and what it imports."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from midturn_core.version import VERSION
from tests.support.midturn_process import midturn_environment, run_midturn, run_python

BANNED = ("anthropic", "pydantic", "httpx", "httpx2", "mcp", "typer", "rich")


def write_config(home: Path, text: str) -> Path:
    file = home / ".config" / "midturn" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def test_the_version_is_shown() -> None:
    done = run_midturn("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"midturn {VERSION}\n".encode(), b"")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--bad"],
        ["a", "b"],
        ["-p"],
        ["--max-steps", "x"],
        ["--config", "/no/such"],
        ["config", "x"],
    ],
)
def test_a_usage_error_is_one_line_on_stderr_and_code_2(arguments: list[str]) -> None:
    done = run_midturn(*arguments)
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.startswith(b"midturn: ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("arguments", [[], ["hello"], ["-p", "hello"], ["demo"], ["config"]])
def test_a_broken_configuration_stops_every_start_with_its_line(
    home: Path, arguments: list[str]
) -> None:
    """MB-1101."""
    file = write_config(home, "[ui]\nplain = 3\n")
    done = run_midturn(*arguments)
    assert done.returncode == 2
    assert done.stderr.decode() == f"midturn: {file}:2: [ui] plain must be true or false, not 3\n"


@pytest.mark.parametrize("words", [["--output-format", "json"], ["--output-format=stream-json"]])
def test_json_stays_json_when_nothing_can_start(home: Path, words: list[str]) -> None:
    write_config(home, "[ui\n")
    done = run_midturn("-p", "hello", *words)
    assert done.returncode == 2
    answer = json.loads(done.stdout)
    assert answer["ok"] is False
    assert "config.toml:1" in answer["error"]


def test_an_unknown_key_is_a_warning_and_the_rest_works(home: Path) -> None:
    write_config(home, "future_key = 1\n[ui]\nplian = true\nkeys = 'vi'\n")
    done = run_midturn("config")
    assert done.returncode == 0
    assert b'keys = "vi"' in done.stdout
    assert done.stderr.count(b"\n") == 2
    assert b"the nearest is plain" in done.stderr


def test_a_defect_is_one_sentence_and_its_details_go_to_a_file(home: Path) -> None:
    code = (
        "import sys; from midturn_cli import main, options\n"
        "def broken(argv): raise ValueError('broken on purpose')\n"
        "options.parse_quickly = broken\n"
        "sys.exit(main.main())"
    )
    done = run_python(["-c", code])
    crash = home / ".local" / "state" / "midturn" / "crash.log"
    assert done.returncode == 1
    assert done.stderr.decode() == (
        f"midturn: internal error (ValueError: broken on purpose); the details are in {crash}\n"
    )
    assert "Traceback" in crash.read_text()
    assert crash.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("error", "code"),
    [("KeyboardInterrupt", 130), ("BrokenPipeError", 1), ("SystemExit(143)", 143)],
)
def test_an_ending_from_outside_has_its_own_code_and_no_traceback(error: str, code: int) -> None:
    program = (
        "import sys; from midturn_cli import main, options\n"
        f"def ended(argv): raise {error}\n"
        "options.parse_quickly = ended\n"
        "sys.exit(main.main())"
    )
    done = run_python(["-c", program])
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.parametrize(
    ("closed", "replaced"),
    [("<&-", [0]), (">&-", [1]), ("2>&-", [2]), ("<&- >&- 2>&-", [0, 1, 2])],
)
def test_it_starts_without_a_standard_stream(
    closed: str, replaced: list[int], tmp_path: Path
) -> None:
    """And no file that is opened takes the place of the stream."""
    program = (
        "import os, sys; from midturn_cli import main, options\n"
        "def look(argv):\n"
        "    null = os.stat(os.devnull)\n"
        "    streams = [s.fileno() for s in (sys.stdin, sys.stdout, sys.stderr)]\n"
        "    empty = [n for n in streams if os.path.samestat(os.fstat(n), null)]\n"
        f"    with open({str(tmp_path / 'seen')!r}, 'w') as file:\n"
        "        file.write(f'{streams} {empty}')\n"
        "    raise SystemExit\n"
        "options.parse_quickly = look\n"
        "main.main()"
    )
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(program)} {closed}"
    subprocess.run(
        ["sh", "-c", command],
        stdin=subprocess.PIPE,
        capture_output=True,
        env=midturn_environment(),
        check=False,
    )
    assert (tmp_path / "seen").read_text() == f"[0, 1, 2] {replaced}"


def test_a_reader_that_leaves_early_ends_it_quietly(tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    program = (
        "import subprocess, sys\n"
        "reader = subprocess.Popen(['true'], stdin=subprocess.PIPE)\n"
        "reader.wait()\n"
        f"with open({str(errors)!r}, 'wb') as file:\n"
        "    code = subprocess.call([sys.executable, '-m', 'midturn_cli.main', 'config'],\n"
        "                           stdout=reader.stdin, stderr=file)\n"
        "reader.stdin = None\n"
        "print(code)"
    )
    done = run_python(["-c", program])
    assert done.stdout == b"1\n"
    assert errors.read_bytes() == b""


def test_nothing_slow_is_imported_on_the_way_to_the_input_line(home: Path) -> None:
    write_config(home, "[parallel]\nenabled = true\n")
    program = (
        "import os, sys\n"
        "from midturn_cli import main\n"
        "from midturn_cli.options import parse_quickly\n"
        "from midturn_cli.launch import prepare\n"
        "prepare(parse_quickly(['--plain', '--model', 'm', 'hello']), os.environ)\n"
        "print('\\n'.join(sys.modules))"
    )
    done = run_python(["-c", program])
    loaded = set(done.stdout.decode().split())
    assert "midturn_cli.launch" in loaded
    too_much = (*BANNED, "asyncio", "tomlkit", "platformdirs", "difflib", "subprocess", "json")
    assert not loaded & set(too_much)


def test_without_a_configuration_file_no_toml_reader_is_imported() -> None:
    program = (
        "import os, sys\n"
        "from midturn_cli.options import parse_quickly\n"
        "from midturn_cli.launch import prepare\n"
        "prepare(parse_quickly([]), os.environ)\n"
        "print('tomllib' in sys.modules)"
    )
    assert run_python(["-c", program]).stdout == b"False\n"


def test_the_entry_module_imports_sys_alone() -> None:
    program = "import sys; before = set(sys.modules); import midturn_cli.main\n" + (
        "print(sorted(set(sys.modules) - before))"
    )
    done = run_python(["-S", "-c", program])
    assert done.stdout == b"['midturn_cli', 'midturn_cli.main']\n"


def test_a_prompt_of_odd_bytes_is_taken() -> None:
    done = run_midturn(b"--output-format", b"x\xff", environ=midturn_environment())
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
