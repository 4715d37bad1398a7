"""Whether the owner of a claim lives is told by the kernel, not by a number or a clock."""

from __future__ import annotations

import os
import time
from pathlib import Path

from midturn_core.queue.claim_owner import ClaimOwner, OwnerState


def test_an_owner_is_alive_until_it_ends(tmp_path: Path) -> None:
    owner, other = ClaimOwner(tmp_path / "owners"), ClaimOwner(tmp_path / "owners")
    owner.announce()
    owner.announce()
    assert other.state_of(owner.token) is OwnerState.ALIVE
    assert owner.state_of(owner.token) is OwnerState.ALIVE
    owner.close()
    owner.close()
    assert other.state_of(owner.token) is OwnerState.UNKNOWN
    assert list((tmp_path / "owners").iterdir()) == []


def test_a_trace_without_a_lock_is_a_dead_owners(tmp_path: Path) -> None:
    (tmp_path / "run-1").touch()
    assert ClaimOwner(tmp_path).state_of("run-1") is OwnerState.DEAD


def test_without_a_folder_nobody_can_tell(tmp_path: Path) -> None:
    owner = ClaimOwner(None)
    owner.announce()
    assert ClaimOwner(tmp_path).state_of(owner.token) is OwnerState.UNKNOWN
    assert owner.state_of("run-1") is OwnerState.UNKNOWN
    owner.close()


def test_a_token_that_is_a_path_is_no_owner(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    owner = ClaimOwner(tmp_path / "owners")
    assert owner.state_of("../elsewhere") is OwnerState.UNKNOWN


def test_old_traces_of_the_dead_are_swept_and_new_ones_kept(tmp_path: Path) -> None:
    long_ago = time.time() - 10 * 86_400
    alive = ClaimOwner(tmp_path)
    alive.announce()
    for name in ("run-old", "run-new"):
        (tmp_path / name).touch()
    os.utime(tmp_path / "run-old", (long_ago, long_ago))
    os.utime(tmp_path / alive.token, (long_ago, long_ago))
    newcomer = ClaimOwner(tmp_path)
    newcomer.announce()
    left = {each.name for each in tmp_path.iterdir()}
    assert left == {"run-new", alive.token, newcomer.token}
    alive.close()
    newcomer.close()
