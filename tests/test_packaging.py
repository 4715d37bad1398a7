"""What is shipped: three packages with names of their own, a working command, and no leftovers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from midturn_core.version import VERSION
from tests.support.midturn_process import midturn_environment, run_python
from tests.support.services import require

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = ("cli/midturn_cli", "core/midturn_core", "tools/midturn_tools")


def run(words: Sequence[str | Path], folder: Path) -> str:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tracked_files() -> list[Path]:
    """The files of the tree as git knows them, or all of a tree without git."""
    if not (ROOT / ".git").exists():
        pytest.skip("this tree is no git clone, so its own files cannot be told from others")
    git = require("git")
    listed = run([git, "-c", "safe.directory=*", "ls-files", "-z"], ROOT).split("\0")
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], ROOT)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_three_packages_and_nothing_else(wheel: Path) -> None:
    assert tuple(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == PACKAGES
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        scripts = archive.read(f"midturn-{VERSION}.dist-info/entry_points.txt").decode()
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"midturn_cli", "midturn_core", "midturn_tools", f"midturn-{VERSION}.dist-info"}
    assert {f"{top}/py.typed" for top in ("midturn_cli", "midturn_core", "midturn_tools")} <= set(
        names
    )
    assert "midturn = midturn_cli.main:main" in scripts


def test_every_module_of_the_tree_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if name.endswith(".py")}
    in_tree = {
        str(file.relative_to(ROOT / package.partition("/")[0]))
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
    }
    assert shipped == in_tree


def test_the_source_distribution_holds_all_that_the_tree_has(tmp_path: Path) -> None:
    """Also what `make` needs, so that it can be tested and changed from there."""
    tracked = {str(file.relative_to(ROOT)) for file in tracked_files()}
    run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path], ROOT)
    (built,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        shipped = {name.partition("/")[2] for name in archive.getnames()}
    assert {"Makefile", "constraints.txt", "constraints-dev.txt", ".ci/run"} <= shipped
    assert tracked <= shipped


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_lies_beside_its_package(package: str) -> None:
    folder = (ROOT / package).parent
    assert not list(folder.glob("*.py"))
    assert [item.name for item in folder.iterdir() if item.name != "__pycache__"] == [
        Path(package).name
    ]


def project_that_breaks_whoever_imports_it(folder: Path) -> Path:
    """Somebody's project with our folder names as packages and a module with our name."""
    for name in ("core", "cli", "tools", "tests"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("raise ImportError('the project was imported')")
    (folder / "midturn.py").write_text("raise ImportError('the project was imported')")
    return folder


def test_a_project_with_our_folder_names_is_never_imported(tmp_path: Path) -> None:
    project = project_that_breaks_whoever_imports_it(tmp_path / "project")
    command = Path(sys.executable).parent / "midturn"
    if not command.exists():
        reason = f"midturn is not installed beside {sys.executable} (make test installs it)"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    environ = midturn_environment(PYTHONPATH=".")
    for arguments in (["--version"], ["config"], ["doctor"]):
        done = subprocess.run(
            [command, *arguments], cwd=project, env=environ, capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")


def test_every_module_can_be_imported_in_such_a_project(tmp_path: Path) -> None:
    project = project_that_breaks_whoever_imports_it(tmp_path / "project")
    modules = [
        ".".join(file.relative_to(ROOT / package.partition("/")[0]).with_suffix("").parts)
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("*.py"))
    ]
    code = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    names = [name.removesuffix(".__init__") for name in modules]
    environ = midturn_environment()
    environ["PYTHONPATH"] += ":."
    done = run_python(["-c", code, *names], environ=environ, cwd=project)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
def test_a_new_environment_gets_a_working_command(tmp_path: Path) -> None:
    """``pip install .`` as a user does it, with the newest versions that the bounds allow."""
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    scripts = environment / ("Scripts" if sys.platform == "win32" else "bin")
    run([scripts / "python", "-m", "pip", "install", "--quiet", ROOT], tmp_path)
    project = project_that_breaks_whoever_imports_it(tmp_path / "project")
    assert run([scripts / "midturn", "--version"], project) == f"midturn {VERSION}\n"
    assert "[parallel]" in run([scripts / "midturn", "config"], project)


def test_the_lock_files_hold_hashes_and_no_address() -> None:
    for name in ("constraints.txt", "constraints-dev.txt"):
        text = (ROOT / name).read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text
        assert not re.search(r"^\s*--(index|extra|find|trusted)", text, re.MULTILINE)


_FORBIDDEN = {
    "a key": re.compile(r"sk-ant-[A-Za-z0-9_-]{8}|ghp_[A-Za-z0-9]{8}|AKIA[0-9A-Z]{12}"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"),
    "the path of this clone": re.compile(rf"{re.escape(str(ROOT))}\b"),
    "a path of a Python installation": re.compile(r"/(?:\.pyenv|site-packages|dist-packages)/"),
    "a registry's address": re.compile(r"(?:pypi|pythonhosted|npmjs)\.(?:org|com)"),
}


@pytest.mark.parametrize("what", _FORBIDDEN)
def test_no_file_of_the_tree_holds(what: str) -> None:
    found = [
        str(file.relative_to(ROOT))
        for file in tracked_files()
        if file != Path(__file__) and _FORBIDDEN[what].search(file.read_text(errors="replace"))
    ]
    assert found == []


def test_the_licence_and_the_documents_are_there() -> None:
    for name in ("README.md", "CHANGELOG.md", "AGENTS.md", "SECURITY.md", "config.example.toml"):
        assert (ROOT / name).stat().st_size > 0
    licence = (ROOT / "LICENSE").read_text()
    assert "Apache License" in licence
    assert "The Midturn authors" in licence


def test_the_instructions_for_contributors_stay_short() -> None:
    assert len((ROOT / "AGENTS.md").read_text().splitlines()) <= 120
