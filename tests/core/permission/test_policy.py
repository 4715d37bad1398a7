"""Modes, precedence, guards and suggestions of the policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from midturn_core.permission.access import Access, CommandAccess, HostAccess, PathAccess
from midturn_core.permission.decision import PermissionMode, Verdict
from midturn_core.permission.policy import PermissionPolicy
from midturn_core.permission.rules import RuleSet, parse_rule
from midturn_core.permission.suggest import suggest_rule

WORKSPACE = Path("/work space/repo")
HOME = Path("/home/someone")
ALLOW, ASK, DENY = Verdict
READ_INSIDE = PathAccess(WORKSPACE / "a.py", WORKSPACE / "a.py", False)
WRITE_INSIDE = replace(READ_INSIDE, writes=True)
READ_OUTSIDE = PathAccess(Path("/etc/hosts"), Path("/etc/hosts"), False)
WRITE_OUTSIDE = replace(READ_OUTSIDE, writes=True)
COMMAND = CommandAccess("make test", WORKSPACE)
HOST = HostAccess("https://example.com/a", "example.com")


def policy(
    mode: PermissionMode = PermissionMode.DEFAULT,
    *,
    allow: Sequence[str] = (),
    ask: Sequence[str] = (),
    deny: Sequence[str] = (),
) -> PermissionPolicy:
    rules = RuleSet.parse(allow, ask, deny)
    return PermissionPolicy(WORKSPACE, rules, mode, HOME, (HOME / ".config/midturn",))


def written(path: str, *, writes: bool = True) -> PathAccess:
    absolute = WORKSPACE / path
    return PathAccess(absolute, absolute, writes)


def command(text: str) -> list[Access]:
    return [CommandAccess(text, WORKSPACE)]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (PermissionMode.DEFAULT, [ALLOW, ASK, ASK, ASK, ASK, ASK]),
        (PermissionMode.ACCEPT_EDITS, [ALLOW, ALLOW, ASK, ASK, ASK, ASK]),
        (PermissionMode.PLAN, [ALLOW, DENY, ASK, DENY, DENY, ASK]),
        (PermissionMode.YOLO, [ALLOW, ALLOW, ALLOW, ALLOW, ALLOW, ALLOW]),
    ],
)
def test_a_mode_decides_where_no_rule_does(mode: PermissionMode, expected: list[Verdict]) -> None:
    accesses: list[Access] = [
        READ_INSIDE, WRITE_INSIDE, READ_OUTSIDE, WRITE_OUTSIDE, COMMAND, HOST
    ]  # fmt: skip
    assert [policy(mode).decide("AnyTool", [access]).verdict for access in accesses] == expected


def test_plan_mode_says_that_it_only_reads_and_no_allow_rule_opens_it() -> None:
    decision = policy(PermissionMode.PLAN, allow=["Edit", "Bash"]).decide("Edit", [WRITE_INSIDE])
    assert decision.verdict is DENY
    assert "plan mode only reads" in decision.reason
    assert policy(PermissionMode.PLAN, allow=["Bash"]).decide("Bash", [COMMAND]).verdict is DENY


def test_plan_mode_fetches_from_a_host_that_a_rule_allows() -> None:
    planning = policy(PermissionMode.PLAN, allow=["WebFetch(domain:example.com)"])
    assert planning.decide("WebFetch", [HOST]).verdict is ALLOW


@pytest.mark.parametrize("mode", PermissionMode)
def test_a_deny_rule_holds_in_every_mode(mode: PermissionMode) -> None:
    strict = policy(mode, allow=["Read", "Edit", "Bash", "WebFetch"], deny=[
        "Read(a.py)", "Bash(make:*)", "WebFetch(domain:example.com)", "TodoWrite"
    ])  # fmt: skip
    for access in (READ_INSIDE, WRITE_INSIDE, COMMAND, HOST):
        tool = "Bash" if access is COMMAND else "AnyTool"
        assert strict.decide(tool, [access]).verdict is DENY
    assert strict.decide("TodoWrite", []).verdict is DENY


def test_an_ask_rule_beats_allow_and_yolo() -> None:
    rules = policy(PermissionMode.YOLO, allow=["Bash"], ask=["Bash(make:*)"])
    decision = rules.decide("Bash", [COMMAND])
    assert (decision.verdict, decision.rule) == (ASK, "Bash(make:*)")


@pytest.mark.parametrize("text", ["R=rm; $R x", "eval x", "echo x | sh", "$(echo rm) x"])
def test_yolo_asks_where_the_text_cannot_tell_whether_a_rule_denies(text: str) -> None:
    assert (
        policy(PermissionMode.YOLO, deny=["Bash(rm:*)"]).decide("Bash", command(text)).verdict
        is ASK
    )
    assert policy(PermissionMode.YOLO).decide("Bash", command(text)).verdict is ALLOW


@pytest.mark.parametrize(
    "text",
    [
        "rm -rf /", "rm -rf /*", "rm -rf //", "rm -rf /{*,.*}", "rm -rf /home", "rm -rf /home/*",
        'rm -rf "$HOME"', "rm -rf ${HOME}/", "rm -rf ~", "rm -rf ~/", "rm -rf ~/*", "rm -rf ~/.*",
        "rm -rf /home/someone", "rm -rf ../../home/someone/x/..", "rm -r .. x", "sudo rm -rf /",
        "cd x && rm -rf ~", "cd / && rm -rf *", "cd ..; cd ..; rm -rf .", "cd && rm -rf *",
        "cd ~ && rm -rf .*", "pushd .. && rm -rf ./*", "cd -P /home && rm -r *",
        "cd a; cd b; cd c; cd d; cd e; rm -r *", "bash -c 'rm -rf ~'", "chmod -R 777 /", "/bin/rm -rf /",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "rules", [policy(PermissionMode.YOLO), policy(allow=["Bash", "Bash(rm:*)", "Bash(sudo rm:*)"])]
)
def test_removing_home_or_everything_is_asked_whatever_is_allowed(
    text: str, rules: PermissionPolicy
) -> None:
    """MB-0710."""
    assert rules.decide("Bash", command(text)).verdict is ASK


@pytest.mark.parametrize(
    "text",
    ["rm -rf build", "rm -rf *", "rm -rf build/*", "rm -rf /tmp/x", "rm -rf ~/x", "rm -rf ~/x/*",
     "cd x && rm -rf *", "cd a && cd .. && rm -rf build", "rm HOME", "chmod +x .", "mv a ..", "ls /", "find / -name x", "rm -rf '$HOME'"],
)  # fmt: skip
def test_removing_something_else_is_asked_no_more_than_before(text: str) -> None:
    rules = policy(PermissionMode.YOLO)
    assert rules.decide("Bash", command(text)).verdict is ALLOW


def test_the_strictest_access_of_a_call_counts() -> None:
    rules = policy(deny=["Read(secret)"])
    secret = written("secret", writes=False)
    assert rules.decide("Read", [READ_INSIDE, READ_OUTSIDE]).verdict is ASK
    assert rules.decide("Read", [READ_INSIDE, secret, READ_OUTSIDE]).verdict is DENY


def test_a_tool_without_accesses_is_free_and_an_mcp_tool_is_not() -> None:
    assert policy().decide("TodoWrite", []).verdict is ALLOW
    assert policy().decide("mcp__files__delete", []).verdict is ASK
    assert policy(PermissionMode.PLAN).decide("mcp__files__delete", []).verdict is DENY


@pytest.mark.parametrize("rule", ["mcp__files__delete", "mcp__files", "mcp__files__*"])
def test_rules_for_mcp_tools_name_a_tool_or_a_server(rule: str) -> None:
    assert policy(allow=[rule]).decide("mcp__files__delete", []).verdict is ALLOW
    assert policy(allow=[rule]).decide("mcp__filesystem__delete", []).verdict is ASK


def test_edit_rules_cover_every_tool_that_writes_and_read_rules_every_one_that_reads() -> None:
    rules = policy(allow=["Edit(*.py)"], ask=["Read(notes/**)"])
    assert rules.decide("Write", [WRITE_INSIDE]).verdict is ALLOW
    assert rules.decide("MultiEdit", [WRITE_INSIDE]).verdict is ALLOW
    assert rules.decide("Grep", [written("notes/x", writes=False)]).verdict is ASK


def test_a_rule_for_one_tool_does_not_cover_another() -> None:
    assert policy(allow=["Write(*.py)"]).decide("Edit", [WRITE_INSIDE]).verdict is ASK
    assert policy(allow=["Write(*.py)"]).decide("Write", [WRITE_INSIDE]).verdict is ALLOW


def test_an_allow_rule_looks_at_the_resolved_path_only() -> None:
    link = PathAccess(WORKSPACE / "link", Path("/etc/hosts"), True)
    assert policy(allow=["Edit(link)"]).decide("Edit", [link]).verdict is ASK
    assert policy(allow=["Edit(//etc/hosts)"]).decide("Edit", [link]).verdict is ALLOW


@pytest.mark.parametrize(
    "path",
    [".git/hooks/x", "sub/.git/config", ".midturn/config.toml", ".vscode/tasks.json", ".mcp.json",
     ".GIT/config", "../../home/someone/.config/midturn/config.toml", ".bashrc"],
)  # fmt: skip
@pytest.mark.parametrize(
    "rules", [policy(PermissionMode.YOLO), policy(allow=["Edit", "Edit(**)", "Edit(//**)"])]
)
def test_no_wildcard_and_no_mode_opens_a_protected_path(path: str, rules: PermissionPolicy) -> None:
    absolute = (
        Path("/home/someone/.config/midturn/config.toml") if ".." in path else WORKSPACE / path
    )
    access = PathAccess(absolute, absolute, True)
    assert rules.decide("Write", [access]).verdict is ASK
    assert suggest_rule(rules, "Write", [access]) == ""


@pytest.mark.parametrize(
    "text",
    ["cp x .git/hooks/pre-commit", "cp -t .git/hooks x", "sort -o .git/config x",
     "find .git -delete", "git diff --output=.git/hooks/pre-commit", "uniq a .git/config",
     "tree -o .vscode/tasks.json", "fd . .git -x rm", "cd .git && touch config",
     "cd sub/../.git; cp ../x hooks/pre-commit", "cd && tee .bashrc"],
)  # fmt: skip
@pytest.mark.parametrize(
    "rules", [policy(PermissionMode.YOLO), policy(allow=["Bash", "Bash(cp:*)"])]
)
def test_no_program_that_also_looks_writes_to_a_protected_path_unasked(
    text: str, rules: PermissionPolicy
) -> None:
    assert rules.decide("Bash", command(text)).verdict is ASK


@pytest.mark.parametrize(
    "text",
    ["cat .git/config", "ls .git", "grep -r x .git", "find .git -name x", "git status",
     "cd .git && ls", "cp a b", "sort -o b a"],
)  # fmt: skip
def test_looking_at_a_protected_path_is_asked_no_more_than_before(text: str) -> None:
    assert policy(PermissionMode.YOLO).decide("Bash", command(text)).verdict is ALLOW


def test_a_rule_that_names_a_protected_file_opens_it_but_not_midturns_own() -> None:
    assert policy(allow=["Edit(.mcp.json)"]).decide("Edit", [written(".mcp.json")]).verdict is ALLOW
    own = HOME / ".config/midturn/config.toml"
    rules = policy(allow=["Edit(~/.config/midturn/config.toml)", "Edit(~/.config)"])
    assert rules.decide("Edit", [PathAccess(own, own, True)]).verdict is ASK


def test_a_rule_that_names_the_folder_above_opens_nothing_protected() -> None:
    rules = policy(allow=["Edit(//work space/repo)", "Bash(tee:*)"])
    assert rules.decide("Edit", [WRITE_INSIDE]).verdict is ALLOW
    assert rules.decide("Edit", [written(".git/config")]).verdict is ASK
    assert rules.decide("Bash", command("tee out.txt")).verdict is ALLOW
    assert rules.decide("Bash", command("tee .git/config")).verdict is ASK


def test_secrets_are_asked_about_unless_named_or_in_yolo() -> None:
    secret = written(".env", writes=False)
    assert policy().decide("Read", [secret]).verdict is ASK
    assert policy(allow=["Read", "Read(**)"]).decide("Read", [secret]).verdict is ASK
    assert policy(allow=["Read(.env)"]).decide("Read", [secret]).verdict is ALLOW
    assert policy(PermissionMode.YOLO).decide("Read", [secret]).verdict is ALLOW


@pytest.mark.parametrize(
    ("rule", "text", "verdict"),
    [
        ("Read(.env)", "cat .env", DENY),
        ("Read(.env)", "cat < .env", ASK),
        ("Read(.env)", "cp sub/../.env x", DENY),
        ("Read(.env)", "grep -r .env .", ASK),
        ("Read(.env)", "true && head -3 ./.env", DENY),
        ("Edit(a.py)", "python3 --out=a.py", ASK),
        ("Read(.env)", "cat env", ALLOW),
    ],
)
def test_path_rules_that_deny_look_at_commands_too(rule: str, text: str, verdict: Verdict) -> None:
    rules = policy(PermissionMode.YOLO, deny=[rule])
    assert rules.decide("Bash", command(text)).verdict is verdict


def test_searches_can_ask_which_files_are_closed() -> None:
    rules = policy(deny=["Read(secrets/)", "Edit(a.py)", "Grep(logs/)"])
    everywhere = [PathAccess(WORKSPACE, WORKSPACE, False)]
    assert rules.withholds("Grep", WORKSPACE / "secrets/a", everywhere)
    assert rules.withholds("Grep", WORKSPACE / "logs/a", everywhere)
    assert not rules.withholds("Grep", WORKSPACE / "a.py", everywhere)


@pytest.mark.parametrize("name", ["server.pem", "private/a.txt"])
def test_a_search_that_nobody_was_asked_about_passes_over_what_would_be_asked(name: str) -> None:
    rules = policy(ask=["Read(private/)"])
    everywhere = [PathAccess(WORKSPACE, WORKSPACE, False)]
    asked = [PathAccess(WORKSPACE / name, WORKSPACE / name, False)]
    assert rules.withholds("Grep", WORKSPACE / name, everywhere)
    assert not rules.withholds("Grep", WORKSPACE / name, asked)


def test_what_the_user_allowed_by_name_is_searched_like_the_rest() -> None:
    everywhere = [PathAccess(WORKSPACE, WORKSPACE, False)]
    rules = [parse_rule("Read(./server.pem)")]
    assert not policy().withholds("Grep", WORKSPACE / "server.pem", everywhere, rules)


def test_without_questions_a_search_passes_over_nothing_but_what_is_denied() -> None:
    everywhere = [PathAccess(WORKSPACE, WORKSPACE, False)]
    rules = policy(PermissionMode.YOLO)
    assert not rules.withholds("Grep", WORKSPACE / "server.pem", everywhere)


@pytest.mark.parametrize(
    ("rule", "text", "verdict"),
    [
        ("Bash(sed:*)", "sed -n 3,9p a.txt", ALLOW),
        ("Bash(sed:*)", "sed '1~2e' a.txt", ASK),
        ("Bash(sed:*)", "sed --expr=w a.txt", ASK),
        ("Bash(sed:*)", "sed -e p -e 'w x' a", ASK),
        ("Bash(sed:*)", "sed --i s/a/b/ a", ASK),
        ("Bash(git diff:*)", "git diff --outp=x", ASK),
        ("Bash(git diff:*)", "git diff HEAD", ALLOW),
        ("Bash(git:*)", "git config alias.x y", ASK),
        ("Bash(git:*)", "git grep -nOless x", ASK),
        ("Bash(git -C sub status:*)", "git -C sub status -s", ALLOW),
        ("Bash(sort:*)", "sort -uo x a", ASK),
        ("Bash(uniq:*)", "uniq -c a", ALLOW),
        ("Bash(uniq:*)", "uniq -c 5 out", ASK),
        ("Bash(uniq:*)", "uniq -f 5 a", ALLOW),
        ("Bash(tar:*)", "tar -tvf a.tar", ALLOW),
        ("Bash(tar:*)", "tar tf host:a.tar", ASK),
        ("Bash(tar:*)", "tar -tf a.tar --checkpoint-action=exec=x", ASK),
        ("Bash(awk:*)", "awk -F: '{print $1}' a", ALLOW),
        ("Bash(awk:*)", "awk -i inplace x a", ASK),
        ("Bash(find . -name x -delete)", "find . -name x -delete", ALLOW),
        ("Bash(find . -delete:*)", "find . -delete -print", ALLOW),
        ("Bash(python3:*)", "python3 a.py", ASK),
        ("Bash(python3 a.py:*)", "python3 a.py --fast", ALLOW),
        ("Bash(git commit -m 'a b')", 'git commit -m "a b"', ALLOW),
        ("Bash(env:*)", "env", ASK),
    ],
)
def test_prefix_rules_do_not_cover_what_runs_or_writes_more(
    rule: str, text: str, verdict: Verdict
) -> None:
    assert policy(allow=[rule]).decide("Bash", command(text)).verdict is verdict


@pytest.mark.parametrize(
    "text",
    [
        "sudo -u root rm x", "env -i A=1 rm x", "timeout -k 5 10 rm x", "nice -n 5 rm x", "nice rm x",
        "stdbuf -oL rm x", "xargs -0 -n 1 rm", "find . -ok rm {} ';'", "bash -lc 'true; rm x'",
        "sh -c \"sh -c 'rm x'\"", "busybox rm x", "exec -a y rm x", "A=1 B=2 rm x", "/usr/bin/env rm x",
        "if true; then rm x; fi", "(rm x)", "echo \"$(rm x)\"", "echo `rm x`", "a | rm x", "rm>y x",
        "2>/dev/null rm x", "x=$(rm y)", "echo $(case a in a) rm x;; esac)", "env -S 'rm x'", "RM x",
        "sudo env nohup time rm x", "true &\nrm x", "coproc rm x", "command -p rm x", "r\\\nm x",
    ],
)  # fmt: skip
def test_a_deny_rule_looks_through_what_it_can_see(text: str) -> None:
    rules = policy(PermissionMode.YOLO, allow=["Bash"], deny=["Bash(rm:*)"])
    assert rules.decide("Bash", command(text)).verdict is DENY


@pytest.mark.parametrize(
    "text",
    [
        "echo rm", "grep -rn 'rm x' .", "./rmx", "echo 'a; rm x'", "echo \"a | rm x\"", "echo a > rm",
        "git commit -m 'rm x'", "cat <<'EOF'\nhello\nEOF", "echo a # rm x", "ls ${HOME}", "echo $((1+2))",
    ],
)  # fmt: skip
def test_a_deny_rule_does_not_see_what_is_not_there(text: str) -> None:
    rules = policy(PermissionMode.YOLO, deny=["Bash(rm:*)"])
    assert rules.decide("Bash", command(text)).verdict is ALLOW


@pytest.mark.parametrize("depth", [10, 1_000])
def test_depth_and_length_soften_nothing(depth: int) -> None:
    rules = policy(PermissionMode.YOLO, deny=["Bash(rm:*)"])
    nested = "echo " + "$(echo " * depth + "$(rm x)" + ")" * depth
    many = "true; " * depth + "rm x"
    wrapped = "env " * depth + "rm x"
    for text in (nested, many, wrapped, "(" * depth + "rm x" + ")" * depth):
        assert rules.decide("Bash", command(text)).verdict is DENY


@pytest.mark.parametrize(
    ("tool", "access", "rule"),
    [
        ("Bash", CommandAccess("git log -3", WORKSPACE), "Bash(git log:*)"),
        ("Bash", CommandAccess(" make 'a b' ", WORKSPACE), "Bash(make 'a b')"),
        ("Bash", CommandAccess("python3 a.py", WORKSPACE), "Bash(python3 a.py)"),
        ("Bash", CommandAccess("git log --output=x", WORKSPACE), "Bash(git log --output=x)"),
        ("Bash", CommandAccess("ls | wc", WORKSPACE), "Bash(exactly: ls | wc)"),
        ("Bash", CommandAccess("git commit -m 'a\nb'", WORKSPACE), ""),
        ("Bash", CommandAccess("echo " + "x" * 200, WORKSPACE), ""),
        ("Edit", WRITE_INSIDE, "Edit(**)"),
        ("Edit", WRITE_OUTSIDE, "Edit(//etc/hosts)"),
        ("Read", READ_OUTSIDE, "Read(//etc/hosts)"),
        ("Read", PathAccess(Path("/a[1]/*"), Path("/a[1]/*"), False), "Read(//a\\[1\\]/\\*)"),
        ("Read", written(".env", writes=False), "Read(./.env)"),
        ("WebFetch", HOST, "WebFetch(domain:example.com)"),
    ],
)
def test_the_suggested_rule_allows_the_call_exactly_as_shown(
    tool: str, access: Access, rule: str
) -> None:
    assert suggest_rule(policy(), tool, [access]) == rule
    if rule:
        assert policy().decide(tool, [access], [parse_rule(rule)]).verdict is ALLOW


def test_no_rule_is_suggested_for_several_different_things_or_under_an_ask_rule() -> None:
    assert suggest_rule(policy(), "Read", [READ_OUTSIDE, written(".env", writes=False)]) == ""
    assert suggest_rule(policy(ask=["Bash(make:*)"]), "Bash", [COMMAND]) == ""
    assert suggest_rule(policy(), "mcp__files__delete", []) == "mcp__files__delete"


@pytest.mark.parametrize(
    "text",
    [
        "cat secret*/k",
        "cat $PWD/secrets/k",
        'cat "$(pwd)/secrets/k"',
        "cd / && cat srv/repo/secrets/k",
        "git show HEAD:secrets/k",
    ],
)
def test_yolo_asks_where_a_command_may_read_what_a_rule_closes(text: str) -> None:
    closed = policy(PermissionMode.YOLO, deny=["Read(secrets/**)"])
    assert closed.decide("Bash", command(text)).verdict is ASK
    assert closed.decide("Bash", command("cat docs/k")).verdict is ALLOW
