"""Files and folders that are there whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from seqviz import files


def test_write_json_is_whole_or_nothing(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "report.json"
    files.write_json(file, {"a": "é"})
    assert json.loads(file.read_text(encoding="utf-8")) == {"a": "é"}
    with pytest.raises(TypeError):
        files.write_json(file, {"a": object()})
    with pytest.raises(UnicodeEncodeError):
        files.write_text(file, "half an emoji \ud83d")
    assert json.loads(file.read_text(encoding="utf-8")) == {"a": "é"}
    assert [p.name for p in file.parent.iterdir()] == ["report.json"]


def test_a_digest_is_sha256(tmp_path: Path) -> None:
    file = tmp_path / "abc"
    file.write_bytes(b"abc")
    # printf abc | sha256sum
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert files.file_digest(file) == expected


def _folder(place: Path, content: str) -> Path:
    place.mkdir()
    (place / "file").write_text(content)
    return place


def test_a_folder_takes_the_place_of_another(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    for content in ("first", "second"):
        files.put_in_place(_folder(tmp_path / ".aside", content), folder)
        assert (folder / "file").read_text() == content
        assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_what_stood_there_comes_back_where_the_last_step_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _folder(tmp_path / "model", "old")
    aside = _folder(tmp_path / ".aside", "new")
    rename = os.replace

    def fail_for_the_new_one(source: Path, target: Path) -> None:
        if source == aside:
            raise OSError("the disk is gone")
        rename(source, target)

    monkeypatch.setattr(os, "replace", fail_for_the_new_one)
    with pytest.raises(OSError, match="gone"):
        files.put_in_place(aside, folder)
    assert (folder / "file").read_text() == "old"


@pytest.mark.parametrize("new_one_is_there", [True, False])
def test_recovery_after_a_kill(tmp_path: Path, new_one_is_there: bool) -> None:
    """The kill came after the old folder went aside: before the new one came, or after."""
    folder = tmp_path / "model"
    _folder(tmp_path / ".model-old", "old")
    if new_one_is_there:
        _folder(folder, "new")
    files.recover(folder)
    assert (folder / "file").read_text() == ("new" if new_one_is_there else "old")
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
