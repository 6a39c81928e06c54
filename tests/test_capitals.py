"""Text in capitals may be read in small letters; it is only where that is switched on."""

from __future__ import annotations

from typing import Any

import pytest

from seqviz.translating import notes
from seqviz.translating.capitals import lowered
from seqviz.translating.translator import Translator


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("THE COMMISSION MUST NOT ACCEPT THIS.", "The commission must not accept this."),
        ("I LOVE YOU", "I love you"),
        ("WHEN I'M HERE, I WILL SAY I.", "When I'm here, I will say I."),
        ('GO AWAY! "WHO ARE YOU?" IT IS 5 P.M. NOW.', 'Go away! "Who are you?" It is 5 p.m. Now.'),
        ("ÉMILE IS HERE", "Émile is here"),
        ("NATO", None),
        ("HELLO!", None),
        ("X + Y = 2 Z", None),
        ("NATO is here", None),
        ("The NATO", None),
        ("305 - 12", None),
        ("你好 世界", None),
        ("", None),
    ],
)
def test_lowered(text: str, expected: str | None) -> None:
    assert lowered(text) == expected


def test_lowering_is_off_until_it_is_switched_on(tiny_model: Any, tiny_tokenizer: Any) -> None:
    translator = Translator(tiny_model("lstm-attention"), tiny_tokenizer, name="lstm-attention")
    shouted, plain = "THE BRIDGE IS GREEN.", "The bridge is green."
    before = translator.translate(shouted)
    assert "capitals" not in {note.kind for note in before.notes}
    assert before.source_words == tuple(shouted.split())
    translator.lowers_capitals = True
    found, other = translator.translate(shouted), translator.translate(plain)
    assert (found.text, found.target_ids) == (other.text, other.target_ids)
    assert found.source == shouted and found.source_words == tuple(plain.split())
    (note,) = (note for note in found.notes if note.kind == "capitals")
    assert note.message == "written in capitals: read in small letters"
    assert "capitals" not in {note.kind for note in other.notes}
    assert len(translator.candidates(found)) == len(found.target_ids)
    for language in ("en", "zh"):
        assert notes.said(note, language) != note.message
    translator.lowers_capitals = False
    assert translator.translate(shouted).target_ids == before.target_ids
