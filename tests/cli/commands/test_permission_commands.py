"""/mode and /permissions (D42)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from midturn_cli.ui_events import CommandOutput, CommandTable, StatusChanged, UserEcho
from midturn_core import paths
from midturn_core.config_loader import ConfigSource, FlagSetting, load_config
from midturn_core.events import AskRequested, ToolResultReady
from midturn_core.permission.ask import Ask, AskAnswer, AskReply
from midturn_core.permission.decision import PermissionMode
from tests.support.scripted_model import ScriptedModel, Step, calls, text, use
from tests.support.session_kit import SessionKit, make_launch, open_session

RULES = '[permissions]\nallow = ["Bash(git log:*)", "Bash(ls:*)"]\ndeny = ["Read(secret/**)"]\n'


class SessionAskHandler:
    """Answers every question with "this session"."""

    async def resolve(self, ask: Ask) -> AskReply:
        return AskReply(AskAnswer.SESSION)


def rules(kit: SessionKit) -> list[tuple[str, ...]]:
    return list(kit.of(CommandTable)[-1].rows)


def bash(command: str) -> list[Step]:
    return calls(use("1", "Bash", {"command": command}))


async def test_mode_shows_and_sets_at_once(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/mode")
        assert kit.of(CommandTable)[-1].rows[0][:2] == ("→", "default")
        for mode in PermissionMode:
            await kit.run(f"/mode {mode.value}")
            assert kit.engine.authorizer.mode is mode
            assert kit.of(StatusChanged)[-1].status.mode == mode.value
        assert "deny and ask rules still hold" in kit.said


async def test_the_next_mode_is_never_yolo_and_leads_out_of_it(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        seen: list[str] = []
        for _ in range(4):
            await kit.run("/mode next")
            seen.append(kit.of(StatusChanged)[-1].status.mode)
        assert seen == ["accept-edits", "plan", "default", "accept-edits"]
        await kit.run("/mode yolo")
        await kit.run("/mode next")
        assert kit.engine.authorizer.mode is PermissionMode.DEFAULT


async def test_the_next_mode_leaves_nothing_in_the_transcript_of_a_live_screen(
    tmp_path: Path,
) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/mode next")
        assert kit.of(StatusChanged)[-1].status.mode == "accept-edits"
        assert (kit.of(UserEcho), kit.of(CommandOutput)) == ([], [])
        await kit.run("/mode plan")
        assert [echo.text for echo in kit.of(UserEcho)] == ["/mode plan"]


async def test_the_next_mode_is_said_where_no_status_row_shows_it(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path), live=False) as kit:
        await kit.run("/mode next")
        assert kit.said == "Mode accept-edits: writing in the folder is free as well."


async def test_an_unknown_mode_is_refused_with_those_that_exist(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/mode YOLO")
        assert "default, accept-edits, plan, yolo" in kit.errors[0]
        assert kit.engine.authorizer.mode is PermissionMode.DEFAULT


async def test_yolo_does_not_override_a_deny_rule(tmp_path: Path) -> None:
    model = ScriptedModel(bash("rm -r x"), text("ok"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("/mode yolo")
        await kit.run("/permissions deny Bash(rm:*)")
        await kit.run("go")
        (ready,) = kit.of(ToolResultReady)
        assert "the rule Bash(rm:*) denies it" in ready.result.content


async def test_every_rule_is_listed_with_the_place_that_set_it(tmp_path: Path) -> None:
    make_launch(tmp_path, RULES)
    flags = (FlagSetting("permissions.allow", "--allow", "Edit(docs/**)"),)
    environ = {**os.environ, "MIDTURN_PERMISSIONS_ASK": "Bash(git push:*)"}
    launch = make_launch(tmp_path)
    loaded = load_config(ConfigSource(environ, None, flags))
    async with open_session(replace(launch, loaded=loaded)) as kit:
        await kit.run("/permissions allow WebFetch(domain:example.com)")
        await kit.run("/permissions")
        file = paths.config_file(os.environ)
        assert rules(kit) == [
            ("deny", "Read(secret/**)", f"{file}:3"),
            ("ask", "Bash(git push:*)", "MIDTURN_PERMISSIONS_ASK"),
            ("allow", "Bash(git log:*)", f"{file}:2"),
            ("allow", "Bash(ls:*)", f"{file}:2"),
            ("allow", "Edit(docs/**)", "--allow"),
            ("allow", "WebFetch(domain:example.com)", "this session"),
        ]


async def test_a_this_session_answer_is_listed_and_can_be_taken_back(tmp_path: Path) -> None:
    model = ScriptedModel(bash("git status"), text("a"), bash("git status"), text("b"))
    launch = make_launch(tmp_path, demo=False)
    async with open_session(launch, lambda _: model, SessionAskHandler()) as kit:
        await kit.run("go")
        await kit.run("/permissions")
        assert rules(kit) == [("allow", "Bash(git status:*)", "this session")]
        await kit.run("/permissions rm Bash(git status:*)")
        assert kit.engine.authorizer.session_rules.rules() == ()
        await kit.run("go")
        assert len(kit.of(AskRequested)) == 2


@pytest.mark.parametrize("effect", ["allow", "ask", "deny"])
async def test_a_rule_of_the_session_comes_and_goes(effect: str, tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path, RULES)) as kit:
        await kit.run("/permissions")
        before = rules(kit)
        await kit.run(f"/permissions {effect} Bash(make test)")
        await kit.run(f"/permissions {effect} Bash(make test)")
        await kit.run("/permissions")
        assert (effect, "Bash(make test)", "this session") in rules(kit)
        assert len(rules(kit)) == len(before) + 1
        await kit.run("/permissions rm Bash(make test)")
        await kit.run("/permissions")
        assert rules(kit) == before


async def test_an_allow_rule_settles_the_calls_that_follow(tmp_path: Path) -> None:
    model = ScriptedModel(bash("echo hello"), text("ok"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("/permissions allow Bash(echo:*)")
        await kit.run("go")
        assert not kit.of(AskRequested)
        assert "hello" in kit.of(ToolResultReady)[0].result.content


async def test_taking_back_names_one_effect_when_asked_to(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/permissions allow Bash(make)")
        await kit.run("/permissions ask Bash(make)")
        await kit.run("/permissions rm ask Bash(make)")
        await kit.run("/permissions")
        assert rules(kit) == [("allow", "Bash(make)", "this session")]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("rm Read(secret/**)", "is set by"),
        ("rm Bash(nothing)", "There is no rule 'Bash(nothing)' of this session"),
        ("rm", "There is no rule '' of this session"),
        ("allow", "A rule is missing"),
        ("allow Bash(", "is not a rule"),
        ("allow Bsh(ls)", "there is no tool Bsh: did you mean Bash?"),
        ("allow Bash(ls | cat)", "cannot match"),
        ("forbid Bash", "/permissions does not know 'forbid'"),
    ],
)
async def test_a_wrong_use_says_why_and_changes_nothing(
    line: str, says: str, tmp_path: Path
) -> None:
    async with open_session(make_launch(tmp_path, RULES)) as kit:
        before = kit.engine.authorizer.policy
        await kit.run(f"/permissions {line}")
        assert says in kit.errors[0]
        assert kit.engine.authorizer.policy == before
        assert kit.engine.authorizer.session_rules.rules() == ()


async def test_without_rules_it_says_so(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/permissions")
        assert "There are no rules; mode default" in kit.said
