"""Text in capitals, written as a sentence: which pieces it is cut into decides how well it is read."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W\d_]{2,}")
_SENTENCE_START = re.compile(r"""((?:^|[.!?]["')\]]* )[^\w]*)([^\W\d_])""")
_PRONOUN = re.compile(r"\bi(?=\b(?!\.\w))")


def lowered(text: str) -> str | None:
    """`text` in small letters, each sentence and "I" with a capital; None where it is not in capitals.

    It is where no letter is small and two words or more have two letters: "NATO" alone stays as it is.
    """
    if text != text.upper() or text == text.lower() or len(_WORD.findall(text)) < 2:
        return None
    small = _PRONOUN.sub("I", text.lower())
    return _SENTENCE_START.sub(lambda match: match[1] + match[2].upper(), small)
