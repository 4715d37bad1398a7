"""``midturn doctor`` and ``midturn config``."""

from __future__ import annotations

import os
import threading
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import midturn_cli
from midturn_cli.options import Arguments, Command
from midturn_cli.subcommands.config import config_lines
from midturn_cli.subcommands.doctor import (
    Check,
    Verdict,
    checks,
    find_program,
    online_check,
    render,
    run,
)
from midturn_core.config import Config, ModelConfig
from midturn_core.config_keys import CONFIG_KEYS
from midturn_core.config_loader import ConfigSource, FlagSetting, load_config
from midturn_core.version import VERSION
from tests.support.midturn_process import run_midturn

SECRET = "secret-of-a-test"


def program(folder: Path, name: str, script: str = "echo 1.0") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def all_checks(environ: dict[str, str] | None = None) -> list[Check]:
    return list(checks(Arguments(Command.DOCTOR), {**os.environ, **(environ or {})}))


def of(subject: str, found: list[Check]) -> list[Check]:
    return [check for check in found if check.subject == subject]


def test_every_line_is_ok_or_says_how_to_fix_it() -> None:
    done = run_midturn("doctor")
    lines = done.stdout.decode().splitlines()
    assert done.stderr == b""
    assert {line.split()[0] for line in lines if line[0] != " "} <= {"ok", "warn", "fail"}
    assert all(bool(check.fix) is (check.verdict is not Verdict.OK) for check in all_checks())


def test_where_midturn_lies_is_shown() -> None:
    (check,) = of("midturn", all_checks())
    assert check.finding == f"{VERSION}, at {Path(midturn_cli.__file__).parent}"


def test_a_key_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://user:{SECRET}@127.0.0.1:9/v1")
    for command in ("doctor", "config"):
        done = run_midturn(command)
        assert SECRET.encode() not in done.stdout + done.stderr
        assert b"ANTHROPIC_API_KEY" in done.stdout
        assert b"127.0.0.1:9" in done.stdout


def test_without_a_key_the_way_out_is_named() -> None:
    (check,) = of("key", all_checks())
    assert check.verdict is Verdict.WARN
    assert "ANTHROPIC_API_KEY" in check.fix and "midturn demo" in check.fix


def test_a_broken_configuration_fails_and_the_other_checks_go_on(home: Path) -> None:
    file = home / ".config" / "midturn" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[ui]\nplain = 3\n")
    done = run_midturn("doctor")
    shown = " ".join(done.stdout.decode().split())
    assert done.returncode == 1
    assert "fail config" in shown and "plain must be true or false" in shown
    assert "bash" in shown


def test_a_misspelt_key_and_an_open_file_are_warnings(home: Path) -> None:
    file = home / ".config" / "midturn" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[ui]\nplian = true\nkeys = 'vi'\n")
    file.chmod(0o666)
    opened, misspelt = of("config", all_checks())
    assert "1 values from it; others may change it" in opened.finding
    assert opened.fix == f"chmod go-w {file}"
    assert "the nearest is plain" in misspelt.finding


def test_a_missing_shell_fails_and_a_missing_helper_warns(tmp_path: Path) -> None:
    found = all_checks({"PATH": str(tmp_path)})
    assert [of(name, found)[0].verdict for name in ("bash", "rg", "git")] == [
        Verdict.FAIL,
        Verdict.WARN,
        Verdict.WARN,
    ]


def test_a_program_of_the_current_folder_is_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    ran = tmp_path / "ran"
    for name in ("rg", "bash", "git"):
        program(project / "bin", name, f"touch {ran}")
    elsewhere.mkdir()
    (elsewhere / "rg").symlink_to(project / "bin" / "rg")
    monkeypatch.chdir(project)
    found = all_checks({"PATH": f"{project / 'bin'}:bin:.::{elsewhere}"})
    assert of("rg", found)[0].verdict is Verdict.WARN
    assert not ran.exists()
    good = program(tmp_path / "good", "rg")
    path = {"PATH": f"{project / 'bin'}:{good.parent}"}
    assert find_program("rg", project, path) == good


def test_a_program_that_does_not_run_fails(tmp_path: Path) -> None:
    program(tmp_path / "bin", "rg", "exit 3")
    (check,) = of("rg", all_checks({"PATH": str(tmp_path / "bin")}))
    assert check.verdict is Verdict.FAIL


def test_a_folder_that_cannot_be_written_fails(home: Path) -> None:
    (home / ".local").write_text("a file where a folder should be")
    found = of("folder", all_checks())
    assert [check.verdict for check in found] == [Verdict.OK, Verdict.FAIL, Verdict.FAIL]


def test_checking_leaves_nothing_behind(home: Path) -> None:
    all_checks()
    assert list(home.iterdir()) == []


def test_a_failed_check_is_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(Arguments(Command.DOCTOR)) == 1
    assert "fail bash" in capsys.readouterr().out


def test_lines_fit_the_width_and_hold_no_control_characters() -> None:
    shown = render(Check(Verdict.WARN, "config", "word " * 30 + "\x1b[2J", "do this"), 60)
    assert max(map(len, shown.splitlines())) <= 60
    assert "\x1b" not in shown


@contextmanager
def service(status: int) -> Generator[tuple[str, list[str]], None, None]:
    """A service on loopback that answers everything with a status."""
    keys: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            keys.append(self.headers["x-api-key"])
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", keys
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "verdict", "words"),
    [
        (200, Verdict.OK, "takes the key"),
        (401, Verdict.FAIL, "refuses the key"),
        (404, Verdict.OK, "lists no models"),
        (500, Verdict.WARN, "status 500"),
    ],
)
def test_online_says_what_the_service_answers(status: int, verdict: Verdict, words: str) -> None:
    with service(status) as (address, keys):
        check = online_check(Config(model=ModelConfig(base_url=address, api_key=SECRET)))
    assert (check.verdict, keys) == (verdict, [SECRET])
    assert words in check.finding


def test_online_says_when_nothing_answers() -> None:
    with service(200) as (address, _):
        pass
    check = online_check(Config(model=ModelConfig(base_url=address)))
    assert check.verdict is Verdict.FAIL
    assert "cannot be reached" in check.finding


def test_no_request_is_sent_without_online(monkeypatch: pytest.MonkeyPatch) -> None:
    with service(200) as (address, keys):
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
        run_midturn("doctor")
        assert keys == []
        assert b"online" in run_midturn("doctor", "--online").stdout
        assert len(keys) == 1


def test_config_shows_every_value_as_toml_with_the_place_that_set_it(home: Path) -> None:
    file = home / ".config" / "midturn" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[ui]\nkeys = 'vi'\n[model.prices.'a.b']\ninput = 1\noutput = 2\n")
    flags = (FlagSetting("permissions.mode", "--permission-mode", "plan"),)
    loaded = load_config(ConfigSource({**os.environ, "MIDTURN_QUEUE_CAP": "3"}, flags=flags))
    text = "\n".join(config_lines(loaded))
    values = tomllib.loads(text)
    shown = {f"{section}.{key}" for section, table in values.items() for key in table}
    assert shown == {key.id for key in CONFIG_KEYS} - {
        "parallel.per_batch_max",
        "parallel.per_context_max",
    }
    assert values["model"]["prices"]["a.b"]["output"] == 2.0
    for line in (
        f'keys = "vi" # user file: {file}:2',
        "# environment: MIDTURN_QUEUE_CAP",
        'mode = "plan" # flag: --permission-mode',
        "# per_batch_max is unset # built-in",
    ):
        assert line in " ".join(text.split())


def test_a_path_is_never_broken() -> None:
    path = "/a-long-folder-name/" * 5 + "config.toml"
    assert path in render(Check(Verdict.OK, "config", f"{path}, 3 values from it"), 60)
