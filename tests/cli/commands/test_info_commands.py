"""/status, /cost, /context, /tools, /config, /help: what they show is what holds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from midturn_cli.commands.all_commands import all_commands
from midturn_cli.commands.command import Command
from midturn_cli.commands.context_command import estimate
from midturn_cli.commands.help_command import FIXED_KEYS, PLAIN_KEYS, key_rows, tier_rows
from midturn_cli.commands.info_commands import first_sentence
from midturn_cli.ui_events import CommandTable
from midturn_core import paths
from midturn_core.config import KeysConfig, QueueConfig
from midturn_core.version import VERSION
from tests.support.busy_session import busy_session
from tests.support.scripted_model import ScriptedModel, calls, text, use
from tests.support.session_kit import SessionKit, make_launch, open_session

PRICED = '[model]\nname = "m"\nprices = { "m" = { input = 2.0, output = 10.0 } }\n'


def cells(kit: SessionKit, title: str) -> dict[str, tuple[str, ...]]:
    """The newest table of this title: its rows by their first cell."""
    tables = [table for table in kit.of(CommandTable) if table.title == title]
    return {row[0]: row[1:] for row in tables[-1].rows}


async def test_status_knows_a_configuration_file_that_this_session_made(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        kit.submit("/status")
        before = {name: value for name, (value,) in cells(kit, "Status").items()}
        await kit.run("/parallel on --save")
        kit.submit("/status")
        after = {name: value for name, (value,) in cells(kit, "Status").items()}
    assert before["configuration"].endswith("(not there)")
    assert not after["configuration"].endswith("(not there)")


async def test_status_names_session_folder_files_and_what_waits(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a")) as busy:
        kit = busy.kit
        kit.submit("afterwards")
        kit.submit("/parallel on max 8 per-batch 2")
        kit.submit("/status")
        status = {name: value for name, (value,) in cells(kit, "Status").items()}
        assert status["session"] == kit.engine.session.id
        assert status["folder"] == str(kit.engine.workspace)
        assert status["state"] == "at work"
        assert status["queue"] == "1 NEXT"
        assert status["parallel"] == "on, max 8, per batch 2"
        assert status["session file"].startswith(str(kit.engine.session.log.path))
        assert str(paths.log_file(os.environ)) in status["log file"]
        assert f"Midturn {VERSION}" in status["version"]
        await busy.finish()


@pytest.mark.parametrize(
    ("toml", "money"),
    [("", "no money is shown"), (PRICED, "0.0003 at your prices of m")],
    ids=["without prices", "with prices"],
)
async def test_cost_shows_tokens_by_kind_and_money_only_with_prices(
    toml: str, money: str, tmp_path: Path
) -> None:
    launch = make_launch(tmp_path, toml, demo=False)
    async with open_session(launch, lambda _: ScriptedModel(text("ok"))) as kit:
        await kit.run("hello")
        await kit.run("/cost")
        tokens = cells(kit, "Tokens of this session")
        assert tokens["input"] == ("100",)
        assert tokens["output"] == ("10",)
        assert tokens["all"] == ("110",)
        assert money in kit.said


async def test_context_marks_every_estimate(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("word " * 400)
    read = calls(use("1", "Read", {"file_path": "a"}))
    model = ScriptedModel(read, text("an answer of some words"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("/context")
        assert cells(kit, "Context")["in use"][0].startswith("~")
        assert "nothing was counted yet" in kit.said
        await kit.run("hello")
        await kit.run("/context")
        parts = cells(kit, "Context")
        assert parts["in use"][0] == "110"
        assert int(parts["tool results"][0].lstrip("~").replace(",", "")) > 400
        assert all(parts[name][0].startswith("~") for name in parts if name != "in use")
        assert parts[f"{len(kit.engine.registry.names())} tools"] != ("~0", "~0.0%")


def test_an_estimate_counts_other_scripts_by_their_bytes() -> None:
    assert estimate("") == 0
    assert estimate("abcd") == 1
    assert estimate("안녕하세요") == 4
    assert estimate("\ud800") == 1


async def test_tools_says_what_runs_together_and_what_permission_is_about(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/tools")
        tools = cells(kit, "Tools")
        assert set(tools) == set(kit.engine.registry.names())
        assert tools["Read"][:2] == ("together", "path, reads")
        assert tools["Bash"][:2] == ("one at a time", "command")
        assert all(words[2].endswith(".") for words in tools.values())


def test_the_first_sentence_ends_at_its_full_stop() -> None:
    assert first_sentence("Takes ( [ { . as\nthey are (really). And more.") == (
        "Takes ( [ { . as they are (really)."
    )
    assert first_sentence("No end") == "No end"


async def test_config_shows_the_layer_of_each_value_and_what_the_session_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDTURN_LOG_LEVEL", "debug")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    async with open_session(make_launch(tmp_path, PRICED)) as kit:
        await kit.run("/parallel max 6")
        await kit.run("/mode plan")
        await kit.run("/config")
        values = cells(kit, "Configuration")
        assert values["log.level"] == ('"debug"', "environment: MIDTURN_LOG_LEVEL")
        assert values["model.name"] == (
            '"m"',
            f"user file: {paths.config_file(os.environ)}:2",
        )
        assert values["parallel.max_concurrency"] == ("6", "this session")
        assert values["permissions.mode"] == ('"plan"', "this session")
        assert values["parallel.enabled"] == ("false", "built-in")
        assert values["parallel.per_batch_max"] == ("unset", "built-in")
        assert "sk-secret" not in kit.said


@pytest.mark.parametrize("name", ["status", "cost", "context", "tools", "config", "retry", "clear"])
async def test_a_command_without_arguments_refuses_them(name: str, tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        refused = await kit.run(f"/{name} now")
        said = [refused] if refused else kit.errors
        assert said == [f"/{name} takes nothing after it, but there is 'now'"]


async def test_help_lists_commands_keys_tiers_and_prefixes(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/help")
        rows = cells(kit, "Commands")
        assert [usage.split()[0] for usage in rows] == [f"/{c.name}" for c in all_commands()]
        assert rows["/clear"][1] == "after what runs now"
        assert rows["/parallel ..."][1] == "at once"
        assert rows["/model [NAME]"][1] == "at once; changes wait"
        assert set(cells(kit, "Keys")) == {key for key, _ in (*FIXED_KEYS, *key_rows(KeysConfig()))}
        assert cells(kit, "What you type while a turn runs") == {
            tier: (meaning,) for tier, meaning in tier_rows(QueueConfig())
        }
        assert set(cells(kit, "Prefixes")) == {"@path", "!command", "/command"}


async def test_help_names_no_key_that_plain_mode_does_not_have(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path), live=False) as kit:
        await kit.run("/help")
        assert set(cells(kit, "Keys")) == {key for key, _ in PLAIN_KEYS}
        assert "Esc" not in " ".join(cells(kit, "Keys"))


def test_help_says_what_the_configuration_makes_of_the_tiers() -> None:
    usual = dict(tier_rows(QueueConfig()))
    assert usual["NEXT"].endswith("; what Enter means")
    assert "Enter" not in usual["NOW"] + usual["LATER"]
    changed = QueueConfig(
        enter="later", next_delivery="turn_end", later="manual", now_hastens=False
    )
    assert dict(tier_rows(changed)) == {
        "NOW": "first after this step, before what is NEXT",
        "NEXT": "steer: when the turn ends",
        "LATER": "on /later run, as a turn of its own; what Enter means",
    }


@pytest.mark.parametrize("command", all_commands(), ids=lambda command: command.name)
async def test_help_explains_each_command(command: Command, tmp_path: Path) -> None:
    name = command.name
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run(f"/help {name}")
        await kit.run(f"/help /{name}")
        first, second = kit.of(CommandTable)
        assert first == second
        assert first.title.startswith(f"/{name}: ")
        assert all(form.startswith(("/", "...")) for form, _ in first.rows)


async def test_help_for_an_unknown_command_names_the_nearest(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/help quue")
        assert "did you mean /queue" in kit.errors[0]


async def test_help_fits_a_terminal_that_is_80_wide(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/help")
        table = next(table for table in kit.of(CommandTable) if table.title == "Commands")
        widths = [max(len(row[place]) for row in table.rows) for place in range(3)]
        assert sum(widths) + 2 * 2 <= 80
