"""The layers of the configuration, and where each value says it comes from."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from midturn_core import paths
from midturn_core.config import Config, ModelPrice
from midturn_core.config_keys import CONFIG_KEYS, SECTIONS
from midturn_core.config_loader import (
    ConfigSource,
    FlagSetting,
    Layer,
    LoadedConfig,
    Origin,
    load_config,
)
from midturn_core.errors import ConfigError

EXAMPLE = Path(__file__).parents[2] / "config.example.toml"


def parse_rule(text: str) -> str:
    if text.count("(") != text.count(")"):
        raise ValueError(f"{text!r}: the parenthesis is not closed")
    return text


def load(
    home: Path,
    text: str | None = None,
    environ: dict[str, str] | None = None,
    flags: tuple[FlagSetting, ...] = (),
) -> LoadedConfig:
    variables = {"HOME": str(home), **(environ or {})}
    if text is not None:
        file = paths.config_file(variables)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return load_config(ConfigSource(variables, flags=flags), parse_rule)


def test_without_any_source_everything_is_built_in(home: Path) -> None:
    loaded = load(home)
    assert loaded.config == Config()
    assert not loaded.file_read
    assert set(loaded.origins.values()) == {(Origin(Layer.BUILT_IN),)}


def test_each_layer_wins_over_the_one_below(home: Path) -> None:
    text = "[parallel]\nmax_concurrency = 2\nenabled = true\nfail_fast = true\n"
    environ = {"MIDTURN_PARALLEL_MAX_CONCURRENCY": "6", "MIDTURN_PARALLEL_ENABLED": "off"}
    flag = FlagSetting("parallel.max_concurrency", "--max-concurrency", "8")
    loaded = load(home, text, environ, (flag,))
    assert loaded.config.parallel.max_concurrency == 8
    assert loaded.config.parallel.enabled is False
    assert loaded.config.parallel.fail_fast is True
    assert loaded.origins["parallel.max_concurrency"] == (Origin(Layer.FLAG, "--max-concurrency"),)
    assert loaded.origins["parallel.enabled"] == (
        Origin(Layer.ENVIRONMENT, "MIDTURN_PARALLEL_ENABLED"),
    )
    assert str(loaded.origins["parallel.fail_fast"][0]) == f"{loaded.file}:4"


def test_the_rules_of_all_layers_add_up(home: Path) -> None:
    flags = tuple(FlagSetting("permissions.deny", "--deny", rule) for rule in ("C", "[x]", "D"))
    loaded = load(home, '[permissions]\ndeny = ["A"]\n', {"MIDTURN_PERMISSIONS_DENY": "B"}, flags)
    assert loaded.config.permissions.deny == ("A", "B", "C", "[x]", "D")
    assert [origin.layer for origin in loaded.origins["permissions.deny"]] == [
        Layer.USER_FILE,
        Layer.ENVIRONMENT,
        Layer.FLAG,
    ]


def test_the_services_own_variables_are_read_and_midturns_win(home: Path) -> None:
    environ = {
        "ANTHROPIC_API_KEY": " key-of-a-test\n",
        "ANTHROPIC_AUTH_TOKEN": "token-of-a-test",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
    }
    model = load(home, None, environ).config.model
    assert (model.api_key, model.auth_token) == ("key-of-a-test", "token-of-a-test")
    assert model.base_url == "http://127.0.0.1:1"
    environ["MIDTURN_MODEL_BASE_URL"] = "http://127.0.0.1:2"
    assert load(home, None, environ).config.model.base_url == "http://127.0.0.1:2"


def test_secrets_are_in_no_representation(home: Path) -> None:
    loaded = load(home, None, {"ANTHROPIC_API_KEY": "key-of-a-test"})
    assert "key-of-a-test" not in repr(loaded)


def test_an_empty_variable_counts_as_unset(home: Path) -> None:
    loaded = load(home, None, {"MIDTURN_MODEL_NAME": "", "MIDTURN_QUEUE_CAP": " "})
    assert loaded.config == Config()


def test_lists_and_tables_can_come_from_variables(home: Path) -> None:
    loaded = load(
        home,
        None,
        {
            "MIDTURN_PERMISSIONS_ALLOW": "Read\n\n Bash(git log:*) ",
            "MIDTURN_FILES_ENCODINGS": "cp949\nlatin-1",
            "MIDTURN_WEB_ALLOW_HOSTS": '["localhost:8080", "[::1]:80"]',
            "MIDTURN_MODEL_PRICES": "{ m = { input = 1, output = 2.5 } }",
        },
    )
    assert loaded.config.permissions.allow == ("Read", "Bash(git log:*)")
    assert loaded.config.files.encodings == ("cp949", "latin-1")
    assert loaded.config.web.allow_hosts == ("localhost:8080", "[::1]:80")
    assert loaded.config.model.prices == {"m": ModelPrice(1.0, 2.5)}


def test_a_relative_log_file_of_a_flag_is_meant_from_the_current_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    loaded = load(home, None, None, (FlagSetting("log.file", "--log-file", "x.log"),))
    assert loaded.config.log.file == str(home / "x.log")


def test_the_projects_folder_is_never_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = home / "project"
    for name in ("config.toml", "midturn.toml", ".midturn/config.toml", "midturn/config.toml"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("[permissions]\nmode = 'yolo'\n")
    monkeypatch.chdir(project)
    # A relative XDG folder would be inside the project.
    assert load(home, None, {"XDG_CONFIG_HOME": "."}).config == Config()


def test_a_named_file_takes_the_place_of_the_users(home: Path, tmp_path: Path) -> None:
    load(home, "[ui]\nplain = true\n")
    named = tmp_path / "other.toml"
    named.write_text("[ui]\nkeys = 'vi'\n")
    loaded = load_config(ConfigSource({"HOME": str(home)}, named), parse_rule)
    assert (loaded.config.ui.keys, loaded.config.ui.plain) == ("vi", False)
    assert loaded.file == named


def test_a_named_file_must_exist(home: Path) -> None:
    with pytest.raises(ConfigError, match="no such configuration file"):
        load_config(ConfigSource({"HOME": str(home)}, home / "no.toml"))


def test_the_null_device_is_an_empty_configuration(home: Path) -> None:
    load(home, "[ui]\nplain = true\n")
    loaded = load_config(ConfigSource({"HOME": str(home)}, Path("/dev/null")))
    assert loaded.config == Config()


def test_the_table_has_every_field_of_the_configuration() -> None:
    secrets = {"model.api_key", "model.auth_token"}
    in_values = {
        f"{section.name}.{field.name}"
        for section in fields(Config)
        for field in fields(getattr(Config(), section.name))
    }
    assert {key.id for key in CONFIG_KEYS} == in_values - secrets
    assert tuple(section.name for section in fields(Config)) == SECTIONS


def test_the_example_file_holds_every_key_and_equals_the_built_in_values(home: Path) -> None:
    loaded = load_config(ConfigSource({"HOME": str(home)}, EXAMPLE), parse_rule)
    assert loaded.config == Config()
    assert loaded.warnings == ()
    unset = {key for key, origins in loaded.origins.items() if origins[-1].layer is Layer.BUILT_IN}
    assert unset == {"parallel.per_batch_max", "parallel.per_context_max"}
    assert "# per_batch_max = 4" in EXAMPLE.read_text()


def test_the_optional_lines_of_the_example_file_work_too(home: Path) -> None:
    text = EXAMPLE.read_text().replace("# per_", "per_")
    text = text.replace("prices = {}\n", "").replace("# prices", "prices")
    loaded = load(home, text)
    parallel = loaded.config.parallel
    assert (parallel.per_batch_max, parallel.per_context_max) == (4, 4)
    assert loaded.config.model.prices["some-model"].cache_write == 6.25
