"""A translation and everything that was seen while making it.

Shapes: `T` target length, `S` source length, `L` layers, `H` heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from seqviz.drawing import heatmap
from seqviz.drawing.styles import escape
from seqviz.maps import KINDS, AttentionMap
from seqviz.pieces import OfTwoTexts, Pieces
from seqviz.text_languages import DEFAULT_LANGUAGES, TextLanguage
from seqviz.translating.notes import Note, merged

NOTHING = Pieces()


class Candidate(NamedTuple):
    """A piece that the model could have written next.

    `token` is the piece as the tokenizer spells it, also that of the end token; `probability` goes from
    0 to 1, over the whole vocabulary; `log_prob` is its natural logarithm.
    """

    token_id: int
    token: str
    probability: float
    log_prob: float


@dataclass(frozen=True)
class Translation(OfTwoTexts):
    """A translation and everything that was seen while making it.

    Attributes:
        model: name of the model.
        source: the text as it was given.
        text: the translation, in the plain form that scores are computed on.
        source_pieces, target_pieces: tokens, with the end token where there is one, and whitespace words.
            A piece outside the vocabulary shows its own characters, in the target those of the source
            that it stands for. Without tokens where nothing was decoded: for an empty text, and one that
            was copied.
        target_ids: vocabulary ids of the target tokens.
        token_log_probs: natural logarithm of the probability of each target token, given those before.
        score: sum of `token_log_probs` over their number ** `length_penalty`, so usually their mean, nats;
            0 for an empty text. What outputs of a text are compared by.
        seconds: wall-clock time; for a list, this text's share of its batch.
        num_beams: beams of the search; 1 is greedy.
        notes: what happened.
        parts: translations of the sentences of a text over the input cap; empty otherwise.
        attentions: weights by kind, each (L, H, T, S); empty if they were not asked for.
        attention_kinds: kinds that the model has, asked for or not.
        has_one_vector: the model's decoder sees the source through one fixed vector and nothing else.
        languages: codes of the languages of `source` and `text`.
    """

    model: str
    source: str
    text: str
    source_pieces: Pieces = NOTHING
    target_pieces: Pieces = NOTHING
    target_ids: tuple[int, ...] = field(default=(), repr=False)
    token_log_probs: tuple[float, ...] = field(default=(), repr=False)
    score: float = 0.0
    seconds: float = 0.0
    num_beams: int = 1
    notes: tuple[Note, ...] = ()
    parts: tuple[Translation, ...] = field(default=(), repr=False)
    attentions: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)
    attention_kinds: tuple[str, ...] = field(default=KINDS, repr=False)
    has_one_vector: bool = field(default=False, repr=False)
    languages: tuple[str, str] = field(default=DEFAULT_LANGUAGES, repr=False)

    @property
    def source_words(self) -> tuple[str, ...]:
        return self.source_pieces.words

    @property
    def target_words(self) -> tuple[str, ...]:
        return self.target_pieces.words

    @property
    def source_word_index(self) -> tuple[int, ...]:
        """Number of the word each source token lies in, -1 for the end token."""
        return self.source_pieces.word_of_piece

    @property
    def target_word_index(self) -> tuple[int, ...]:
        """Number of the word each target token lies in, -1 for the end token."""
        return self.target_pieces.word_of_piece

    def attention(self, kind: str = "cross") -> AttentionMap:
        """Attention of exactly this hypothesis.

        Args:
            kind: "cross" (target looks at source), "encoder" (source at source) or "decoder" (target
                at the target before it).
        Raises:
            ValueError: an unknown kind, a model that has no such attention, a text in several parts
                (each has its own), or a translation made without attention.
        """
        if kind not in KINDS:
            raise ValueError(f"expected kind to be one of {', '.join(KINDS)}; got {kind!r}")
        if self.parts:
            raise ValueError(
                f"the text was translated in {len(self.parts)} parts; use .parts[i].attention({kind!r})"
            )
        if kind not in self.attentions:
            raise ValueError(self._why_no(kind))
        source, target = self.source_pieces, self.target_pieces
        if kind == "encoder":
            target = source
        elif kind == "decoder":  # the keys are the decoder's inputs
            source = target.moved_right("<start>")
        weights = self.attentions[kind]
        return AttentionMap(
            kind=kind,
            model=self.model,
            weights=weights,
            source_pieces=source,
            target_pieces=target,
            hidden_mass=np.zeros(weights.shape[:3]),
            languages=self.languages,
        )

    def _why_no(self, kind: str) -> str:
        """Why there are no weights of a kind, and what to do."""
        have = [*self.attentions] or self.attention_kinds
        if not have:
            sees = "one fixed vector" if self.has_one_vector else "the same at every step"
            return (
                f"{self.model} has no attention: its decoder sees {sees}; "
                "use lstm-attention or transformer, or saliency, which every model has"
            )
        if kind not in have:
            return f"{self.model} has {', '.join(have)} attention, no {kind} attention"
        if self.text and not self.target_tokens:
            return "expected a text that was decoded, got one that was copied as it is"
        return "translated without attention; call translate(text, attention=True)"

    def _repr_html_(self) -> str:
        """What a notebook shows: both texts, and the map of cross-attention where there is one."""
        source, target = (TextLanguage.of(code).tag for code in self.languages)
        texts = (
            f"<p><b>{escape(self.model)}</b> <span{source}>{escape(self.source)}</span> → "
            f"<span{target}>{escape(self.text)}</span></p>"
        )
        if "cross" not in self.attentions or not self.target_words or not self.source_words:
            return heatmap.notebook(texts)
        return heatmap.notebook(texts + heatmap.render(self.attention("cross").words()))

    def to_dict(self) -> dict[str, Any]:
        """What `seqviz translate --json` prints: all but attention, in plain types."""
        return {
            "model": self.model,
            "source": self.source,
            "text": self.text,
            "source_tokens": list(self.source_tokens),
            "target_tokens": list(self.target_tokens),
            "token_log_probs": [round(p, 5) for p in self.token_log_probs],
            "score": round(self.score, 5),
            "seconds": round(self.seconds, 4),
            "num_beams": self.num_beams,
            "notes": [{"kind": note.kind, "message": note.message} for note in self.notes],
        }


def joined(parts: Sequence[Translation], source: str, notes: Sequence[Note]) -> Translation:
    """The translation of a whole text from those of its sentences.

    Args:
        parts: two or more, by one model.
        source: the whole text.
        notes: on the whole text.
    """
    log_probs = tuple(p for part in parts for p in part.token_log_probs)
    return replace(
        parts[0],
        source=source,
        text=TextLanguage.of(parts[0].languages[1]).join(part.text for part in parts if part.text),
        source_pieces=Pieces.joined(part.source_pieces for part in parts),
        target_pieces=Pieces.joined(part.target_pieces for part in parts),
        target_ids=tuple(i for part in parts for i in part.target_ids),
        token_log_probs=log_probs,
        score=sum(log_probs) / max(1, len(log_probs)),
        seconds=sum(part.seconds for part in parts),
        notes=merged((*notes, *(note for part in parts for note in part.notes))),
        parts=tuple(parts),
        attentions={},
    )


def different(translations: Sequence[Translation]) -> list[Translation]:
    """The first of each text."""
    texts: dict[str, Translation] = {}
    for one in translations:
        texts.setdefault(one.text, one)
    return list(texts.values())
