"""Which keys an action may have, and what is said about the others (D43)."""

from __future__ import annotations

from pathlib import Path

import pytest

from midturn_core.config import KeysConfig
from midturn_core.config_loader import ConfigSource, LoadedConfig, load_config
from midturn_core.errors import ConfigError


def load(folder: Path, lines: str, environ: dict[str, str] | None = None) -> LoadedConfig:
    file = folder / "config.toml"
    file.write_text(f"[keys]\n{lines}\n")
    return load_config(ConfigSource(environ or {}, file))


def complaint(folder: Path, lines: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder, lines)
    return str(caught.value).removeprefix(str(folder / "config.toml"))


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        ('"f5"', ("f5",)),
        ('["f5", "escape s"]', ("f5", "escape s")),
        ("[]", ()),
        ('"C-S"', ("c-s",)),
        ('"c-x S"', ("c-x S",)),
        ('["esc enter", "c-[ c-m"]', ("escape enter",)),
        ('"c-@"', ("c-space",)),
    ],
)
def test_a_key_or_a_list_of_keys_is_read_in_one_way_to_write_it(
    tmp_path: Path, written: str, keys: tuple[str, ...]
) -> None:
    loaded = load(tmp_path, f"stash = {written}\nnewline = []")
    assert loaded.config.keys == KeysConfig(stash=keys, newline=())


def test_the_environment_gives_one_key_a_line(tmp_path: Path) -> None:
    loaded = load(tmp_path, "", {"MIDTURN_KEYS_STASH": "f5\nescape s"})
    assert loaded.config.keys.stash == ("f5", "escape s")


@pytest.mark.parametrize("key", ["a", "é", "space", "backspace", "c-h", "up", "c-w", "a c-s"])
def test_a_key_that_edits_the_text_is_refused_with_its_line(tmp_path: Path, key: str) -> None:
    said = complaint(tmp_path, f'undo = []\nstash = "{key}"')
    assert said.startswith(f':3: [keys] stash has "{key}", but ')
    assert 'edits the text; take a key such as "c-s"' in said


@pytest.mark.parametrize("key", ["ctrl-s", "c-", "f25", "c-x  c-u", "", "-"])
def test_a_name_that_is_no_key_is_refused_with_what_is_allowed(tmp_path: Path, key: str) -> None:
    said = complaint(tmp_path, f'stash = "{key}"')
    assert said.startswith(":2: [keys] stash ")
    assert "escape enter" in said


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("c-c", "c-c always interrupts"),
        ("c-x c-c", "c-c always interrupts"),
        ("escape [", "terminals begin the keys of their own"),
        ("c-x c-s c-x c-s", "at most 3 keys"),
    ],
)
def test_keys_that_would_never_arrive_are_refused(tmp_path: Path, key: str, why: str) -> None:
    assert why in complaint(tmp_path, f'stash = "{key}"')


def test_two_actions_on_one_key_are_refused_at_the_line_of_the_changed_one(tmp_path: Path) -> None:
    said = complaint(tmp_path, '\nstash = "c-o"')
    assert said == (
        ':3: [keys] stash cannot have "c-o", which expand has; give one of them another key, '
        "or none: expand = []"
    )


def test_a_built_in_key_is_free_when_its_action_has_another(tmp_path: Path) -> None:
    loaded = load(tmp_path, 'stash = "c-o"\nexpand = "c-s"')
    assert (loaded.config.keys.stash, loaded.config.keys.expand) == (("c-o",), ("c-s",))


def test_two_actions_that_are_never_possible_together_may_share_a_key(tmp_path: Path) -> None:
    keys = load(tmp_path, 'leave = ["c-d", "f10"]\nrow_up = "escape k"').config.keys
    assert (keys.leave, keys.remove_row, keys.row_up) == (
        ("c-d", "f10"),
        ("c-d",),
        ("escape k",),
    )


@pytest.mark.parametrize(("action", "key"), [("stash", "c-x"), ("stash", "c-x c-u c-s")])
def test_a_key_that_begins_another_is_refused(tmp_path: Path, action: str, key: str) -> None:
    said = complaint(tmp_path, f'{action} = "{key}"')
    assert f'[keys] {action} cannot have "{key}" beside "c-x c-u" of undo' in said


def test_submit_needs_a_key(tmp_path: Path) -> None:
    assert complaint(tmp_path, "submit = []").startswith(":2: [keys] submit needs a key")


def test_an_unknown_action_is_a_warning_with_the_nearest_name(tmp_path: Path) -> None:
    (warning,) = load(tmp_path, 'stashh = "f5"').warnings
    assert warning.endswith(":2: unknown key [keys] stashh; the nearest is stash")


def test_every_conflict_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, 'stash = "f5"\nsearch = "f5"\nundo = "c-x"\nredo = "c-x c-r"\neditor = "f5"')
    pairs = [problem.split("[keys] ")[1] for problem in caught.value.problems]
    assert [pair.partition(";")[0].partition(":")[0] for pair in pairs] == [
        'stash cannot have "f5", which search has',
        'stash cannot have "f5", which editor has',
        'undo cannot have "c-x" beside "c-x c-r" of redo',
        'search cannot have "f5", which editor has',
    ]
