"""Which session a launch opens, and what is said when it is another's."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from midturn_cli.launch import SessionStart
from midturn_cli.session_opening import open_session
from midturn_core.errors import SessionError
from midturn_core.paths import sessions_folder
from midturn_core.session.store import SessionStore
from tests.support.session_kit import make_launch


def saved(workspace: Path, *, demo: bool) -> str:
    session = SessionStore(sessions_folder(os.environ, demo=demo)).create(workspace)
    session.keep()
    session.close()
    return session.id


@pytest.mark.parametrize(
    ("of_demo", "said"),
    [
        (True, "{id} is a session of the demo: midturn demo -r {id}"),
        (False, "{id} is no session of the demo: midturn -r {id}"),
    ],
)
def test_an_id_of_the_other_kind_is_refused_with_the_command_that_opens_it(
    tmp_path: Path, of_demo: bool, said: str
) -> None:
    session_id = saved(tmp_path, demo=of_demo)
    launch = make_launch(tmp_path, demo=not of_demo)
    for words in (session_id, session_id[:-2]):
        named = replace(launch, session=SessionStart.NAMED, session_id=words)
        with pytest.raises(SessionError) as refused:
            open_session(named)
        assert str(refused.value) == said.format(id=session_id)


def test_a_beginning_that_fits_several_sessions_here_says_so_and_names_no_other(
    tmp_path: Path,
) -> None:
    ids = [saved(tmp_path, demo=demo) for demo in (False, False, True)]
    common = os.path.commonprefix(ids)
    launch = replace(
        make_launch(tmp_path, demo=False), session=SessionStart.NAMED, session_id=common
    )
    with pytest.raises(SessionError, match="2 sessions with an id that begins with"):
        open_session(launch)
