"""What is said about a configuration that cannot be used (D43, MB-1101..1103)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from midturn_core.config import Config
from midturn_core.config_keys import SECTIONS
from midturn_core.config_loader import ConfigSource, FlagSetting, LoadedConfig, load_config
from midturn_core.errors import ConfigError
from tests.support.ordinary_user import ordinary_user_folder


def parse_rule(text: str) -> str:
    if not text.endswith(")"):
        raise ValueError(f"{text!r}: the parenthesis is not closed")
    return text


def load(file: Path, environ: dict[str, str] | None = None) -> LoadedConfig:
    return load_config(ConfigSource(environ or {}, file), parse_rule)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


@pytest.mark.parametrize(
    ("data", "position", "words"),
    [
        (b'[model]\nname = "claude\n', ":2:15:", "invalid TOML"),
        (b"[ui]\nplain = true\ntheme 1\n", ":3:7:", "invalid TOML"),
        (b"[ui", ":1:4:", "invalid TOML"),
        (b"x = [1,\n", ":2:1:", "invalid TOML"),
        (b'[ui]\nkeys = "vi"\nkeys = "vi"\n', ":3:", "keys is set a second time"),
        (b"[ui]\n[log]\n[ui]\n", ":3:", "[ui] is set a second time"),
        (b"\xef\xbb\xbf[ui]\n", ":1:1:", "byte order mark"),
        ("[ui]\n# \uac00 ".encode() + "\uac00".encode("cp949"), ":2:5:", "not UTF-8"),
        (b'[ui]\nkeys = "v\0i"\n', ":2:10:", "NUL byte"),
        (b"x = " + b"9" * 5000, "", "cannot be read as TOML"),
        (b"x = " + b"[" * 5000, "", "TOML"),
        (b"#" * 1_000_001, "", "larger than"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(
    file: Path, data: bytes, position: str, words: str
) -> None:
    """MB-1101."""
    file.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        load(file)
    message = str(caught.value)
    assert message.startswith(f"{file}{position}")
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("ui = 3\n", 1, "ui must be a table: [ui]"),
        ("[ui]\nplain = 1\n", 2, "[ui] plain must be true or false, not 1"),
        ('[ui]\nkeys = "ed"\n', 2, '[ui] keys must be one of "emacs", "vi", not "ed"'),
        ("\n[queue]\n\ncap = -1\n", 4, "[queue] cap must be a whole number, at least 0, not -1"),
        ("[queue]\ncap = true\n", 2, "must be a whole number"),
        ("[queue]\ncap = 1.0\n", 2, "must be a whole number"),
        ("[parallel]\nmax_concurrency = 11\n", 2, "must be a whole number from 1 to 10, not 11"),
        ("[parallel]\nper_context_max = 11\n", 2, "must be a whole number from 1 to 10, not 11"),
        ("[parallel]\nper_batch_max = 0\n", 2, "must be a whole number from 1 to 10, not 0"),
        ("[parallel]\nmax_calls = 51\n", 2, "must be a whole number from 1 to 50, not 51"),
        ('[parallel]\nmixed = "parallel"\n', 2, 'must be one of "sequential", "segments"'),
        (
            '[parallel]\nstart = "streaming"\n',
            2,
            'start = "streaming" needs mixed = "segments"',
        ),
        (
            "[parallel]\nmax_concurrency = 2\nper_batch_max = 3\n",
            3,
            "per_batch_max must be 1..2 (max_concurrency), not 3",
        ),
        ("[web]\ntimeout = 0\n", 2, "must be a number of seconds, more than 0, not 0"),
        ("[web]\ntimeout = nan\n", 2, "must be a number of seconds"),
        ("[web]\ntimeout = inf\n", 2, "must be a number of seconds"),
        (f"[web]\ntimeout = {'9' * 400}\n", 2, "must be a number of seconds"),
        ('[web]\nallow_hosts = "localhost"\n', 2, "must be a list of hosts"),
        ('[web]\nallow_hosts = ["http://x/"]\n', 2, "each host or host:port"),
        ('[web]\nallow_hosts = ["x:99999"]\n', 2, "each host or host:port"),
        ('[files]\nencodings = "cp949"\n', 2, "must be a list of encodings"),
        ('[files]\nencodings = ["cp949", "x"]\n', 2, "an encoding that is not known: 'x'"),
        ('[files]\nencodings = ["rot13"]\n', 2, "an encoding that is not known: 'rot13'"),
        ('[model]\nname = ""\n', 2, "must be a model name"),
        ('[model]\nname = "a\\u001b[2Jb"\n', 2, "must be a model name"),
        ('[model]\nbase_url = "example.com"\n', 2, "must be an http:// or https:// address"),
        ("[model.prices]\nm = { input = 1 }\n", 1, "has a price for 'm' that cannot be read"),
        ('[log]\nfile = "here.log"\n', 2, "absolute or beginning with ~/"),
        ('[permissions]\ndeny = [\n  "Bash(x)",\n  "Bash(rm"\n]\n', 2, "cannot be read: 'Bash(rm'"),
        ("[permissions]\nallow = [1]\n", 2, "must be a list of rules in quotes, not [1]"),
        ('[permissions]\nmode = "yes"\n', 2, '"accept-edits"'),
    ],
)
def test_a_bad_value_is_refused_with_its_line_and_what_is_allowed(
    file: Path, text: str, line: int, words: str
) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(file)
    message = str(caught.value)
    assert message.startswith(f"{file}:{line}: ")
    assert words in message
    assert "\n" not in message and "\x1b" not in message


def test_everything_that_is_wrong_is_told_at_once(file: Path) -> None:
    file.write_text(
        'web = 1\n[ui]\nplain = 1\ntheme = "pink"\n[queue]\ncap = -1\n'
        '[keys]\nstash = "f5"\nexpand = "f5"\n'
        '[permissions]\ndeny = ["Bash(x)", "Bash(rm"]\nallow = ["Read(a"]\n'
    )
    with pytest.raises(ConfigError) as caught:
        load(file, {"MIDTURN_LOG_LEVEL": "loud"})
    assert sorted(
        (problem.removeprefix(f"{file}:").split(" must")[0].split(", but")[0])
        for problem in caught.value.problems
    ) == sorted(
        [
            "1: web",
            "3: [ui] plain",
            "4: [ui] theme",
            "6: [queue] cap",
            '8: [keys] stash cannot have "f5", which expand has; give one of them another key, '
            "or none: expand = []",
            "11: [permissions] deny has a rule that cannot be read: 'Bash(rm': the parenthesis is "
            "not closed",
            "12: [permissions] allow has a rule that cannot be read: 'Read(a': the parenthesis is "
            "not closed",
            "MIDTURN_LOG_LEVEL",
        ]
    )
    assert str(caught.value) == "; ".join(caught.value.problems)


def test_every_rule_that_cannot_be_read_is_told(file: Path) -> None:
    file.write_text('[permissions]\ndeny = ["Bash(rm", "Bash(x)", "Read(a"]\n')
    with pytest.raises(ConfigError) as caught:
        load(file)
    first, second = caught.value.problems
    assert "'Bash(rm'" in first and "'Read(a'" in second
    assert first.startswith(f"{file}:2: [permissions] deny ")
    assert second.startswith(f"{file}:2: [permissions] deny ")


def test_a_bad_value_does_not_make_a_good_one_beside_it_look_wrong(file: Path) -> None:
    """``per_batch_max`` would be too large for the built-in ``max_concurrency``."""
    file.write_text("[parallel]\nmax_concurrency = 11\nper_batch_max = 8\n")
    with pytest.raises(ConfigError) as caught:
        load(file)
    [problem] = caught.value.problems
    assert "max_concurrency must be" in problem


def test_a_bad_variable_and_a_bad_flag_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="^MIDTURN_UI_PLAIN must be true or false"):
        load_config(ConfigSource({"HOME": str(tmp_path), "MIDTURN_UI_PLAIN": "maybe"}))
    flag = FlagSetting("parallel.max_concurrency", "--max-concurrency", "many")
    with pytest.raises(ConfigError, match="^--max-concurrency must be a whole number"):
        load_config(ConfigSource({"HOME": str(tmp_path)}, flags=(flag,)))


def test_values_of_two_layers_that_do_not_fit_name_the_key_and_the_range(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "MIDTURN_PARALLEL_PER_BATCH_MAX": "4"}
    flag = FlagSetting("parallel.max_concurrency", "--max-concurrency", "2")
    with pytest.raises(ConfigError, match=r"^MIDTURN_PARALLEL_PER_BATCH_MAX: .* must be 1\.\.2"):
        load_config(ConfigSource(environ, flags=(flag,)))


def test_an_empty_file_is_fine(file: Path) -> None:
    """MB-1101."""
    file.touch()
    assert load(file).config == Config()


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        load(tmp_path)


def test_a_pipe_in_place_of_the_file_does_not_hang(file: Path) -> None:
    os.mkfifo(file)
    with pytest.raises(ConfigError, match="not a regular file"):
        load(file)


def test_a_file_without_read_permission_is_refused() -> None:
    """MB-1101."""
    with ordinary_user_folder() as folder:
        file = folder / "config.toml"
        file.write_text("[ui]\n")
        file.chmod(0)
        with pytest.raises(ConfigError, match="cannot be read: Permission denied"):
            load(file)


def test_an_unknown_key_is_one_warning_with_the_nearest_name(file: Path) -> None:
    """MB-1102."""
    file.write_text("future_key = 1\n[parallel]\nenabeld = true\nenabled = true\n[paralel]\n")
    loaded = load(file)
    assert loaded.config.parallel.enabled
    assert loaded.warnings == (
        f"{file}:1: unknown key future_key; known are {', '.join(SECTIONS)}",
        f"{file}:3: unknown key [parallel] enabeld; the nearest is enabled",
        f"{file}:5: unknown key paralel; the nearest is parallel",
    )


def test_a_key_in_the_file_is_not_used_and_not_shown(file: Path) -> None:
    file.write_text('[model]\napi_key = "secret-of-a-test"\n')
    loaded = load(file)
    assert loaded.config.model.api_key == ""
    assert len(loaded.warnings) == 1
    assert "ANTHROPIC_API_KEY" in loaded.warnings[0]
    assert "secret-of-a-test" not in loaded.warnings[0]


def test_a_mistyped_variable_is_a_warning_and_a_foreign_one_is_not(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "MIDTURN_PARALEL_ENABLED": "1", "MIDTURN_X": "1"}
    assert load_config(ConfigSource(environ)).warnings == (
        "unknown variable MIDTURN_PARALEL_ENABLED; the nearest is MIDTURN_PARALLEL_ENABLED",
    )


def test_places_are_right_in_every_way_to_write_a_key(file: Path) -> None:
    file.write_text(
        "# comment\nui.plain = true\n\n[web]\nallow_hosts = [\n  'a', # x\n  'b',\n]\n"
        "timeout = 3\n[model]\nname = '''\\\nm'''\n[model.prices.'a.b']\ninput = 1\noutput = 2\n"
        "[[other]]\nx = 1\n[[other]]\nx = 2\n"
    )
    file.write_text(file.read_text().replace("'''\\\nm'''", '"""\\\nm"""'))
    origins = load(file).origins
    lines = {
        key: int(str(places[-1]).rpartition(":")[2])
        for key, places in origins.items()
        if places[-1].place
    }
    assert lines == {
        "ui.plain": 2,
        "web.allow_hosts": 5,
        "web.timeout": 9,
        "model.name": 11,
        "model.prices": 13,
    }
