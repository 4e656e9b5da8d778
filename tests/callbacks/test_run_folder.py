"""A run's folder is complete at every moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from safetest_gym.callbacks.run_folder import RunFolder
from safetest_gym.errors import ConfigError


def _checkpoint(folder: RunFolder, steps: int) -> None:
    folder.save_checkpoint(steps, lambda path: _fill(path, steps))


def _fill(path: Path, steps: int) -> None:
    (path / "state").write_text(str(steps), encoding="utf-8")


def test_a_run_claims_an_empty_folder_and_knows_it_again(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "new" / "run")
    folder.claim({"steps": 10, "net": (64, 64)})
    folder.claim({"steps": 10, "net": [64, 64]})


def test_a_run_killed_while_it_claimed_its_folder_can_begin_again(tmp_path: Path) -> None:
    (tmp_path / "unfinished-run.json").write_text("{", encoding="utf-8")
    RunFolder(tmp_path).claim({"steps": 10})
    RunFolder(tmp_path).claim({"steps": 10})


def test_other_options_are_refused_with_the_difference(tmp_path: Path) -> None:
    RunFolder(tmp_path).claim({"steps": 10, "seed": 0})
    RunFolder(tmp_path).save_checkpoint(5, lambda path: None)
    with pytest.raises(ConfigError, match="steps 10 there, 20 now"):
        RunFolder(tmp_path).claim({"steps": 20, "seed": 0})


def test_a_run_that_never_got_anywhere_leaves_its_folder_to_another(tmp_path: Path) -> None:
    RunFolder(tmp_path).claim({"steps": 10, "learner": {"nosuch": 1}})
    RunFolder(tmp_path).claim({"steps": 10, "learner": {}})
    RunFolder(tmp_path).save_checkpoint(5, lambda path: None)
    with pytest.raises(ConfigError, match="nosuch"):
        RunFolder(tmp_path).claim({"steps": 10, "learner": {"nosuch": 1}})


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ConfigError, match="other files"):
        RunFolder(tmp_path).claim({})


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"run\.json is no JSON"):
        RunFolder(tmp_path).claim({})


def test_the_newest_checkpoint_replaces_the_one_before(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.checkpoint() is None
    for steps in (900, 1000):
        _checkpoint(folder, steps)
    found = folder.checkpoint()
    assert found is not None
    assert (found / "state").read_text("utf-8") == "1000"
    assert len(list(found.parent.iterdir())) == 1


def test_a_checkpoint_that_was_not_finished_does_not_count(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    _checkpoint(folder, 100)

    def fail(path: Path) -> None:
        _fill(path, 200)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        folder.save_checkpoint(200, fail)
    found = folder.checkpoint()
    assert found is not None
    assert found.name == "100"
    _checkpoint(folder, 200)
    assert folder.checkpoint() == found.parent / "200"


def test_a_file_that_was_not_finished_leaves_the_old_one(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_json("best.json", {"steps": 1})

    def fail(path: Path) -> None:
        path.write_text("half", encoding="utf-8")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        folder.write("best.json", fail)
    assert (tmp_path / "best.json").read_text("utf-8") == '{\n "steps": 1\n}\n'


def test_a_finished_run_says_so_and_needs_no_checkpoint(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    _checkpoint(folder, 10)
    assert folder.summary() is None
    folder.finish({"steps": 10})
    assert folder.summary() == {"steps": 10}
    assert folder.checkpoint() is None


def test_a_locked_folder_is_refused_until_it_is_free(tmp_path: Path) -> None:
    first, second = RunFolder(tmp_path), RunFolder(tmp_path)
    with first.locked(), pytest.raises(ConfigError, match="another run is at work"):
        second.locked().__enter__()
    with second.locked():
        second.claim({"steps": 10})


def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path\n"
        "from safetest_gym.callbacks.run_folder import RunFolder\n"
        "with RunFolder(Path(sys.argv[1])).locked(): print('locked', flush=True); time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(ConfigError, match="another run is at work"):
            RunFolder(tmp_path).locked().__enter__()
        process.kill()
    with RunFolder(tmp_path).locked():
        pass
