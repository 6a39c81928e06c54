"""Load a trained model and translate with it.

    translator = seqviz.load("lstm-attention")
    translation = translator.translate("Attention is a way to look back.")
    translation.text, translation.attention("cross").words()

Shapes: `B` sentences, `S` source length, `T` target length, `L` layers, `H` heads.
"""

from __future__ import annotations

import json
import math
import operator
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForSeq2SeqLM, MarianMTModel, PreTrainedModel
from transformers.utils import logging as transformers_logging

from seqviz import search
from seqviz import tokenizer as tokenizers
from seqviz.architectures import MODEL_NAMES, num_parameters
from seqviz.architectures.stepping import Recorder, stepper_for
from seqviz.corpus import MAX_SOURCE_PIECES, MAX_SOURCE_WORDS, MAX_TARGET_PIECES
from seqviz.maps import KINDS, AttentionMap
from seqviz.pieces import Pieces
from seqviz.shipped import ModelError, models_folder
from seqviz.styles import escape
from seqviz.translating import capitals, numbers, unknown

MAX_BATCH_PIECES = 6_000
"""Source pieces, padding and beams included, that are decoded at once."""

MAX_PARTS_WITH_ATTENTION = 20
"""A text over the cap keeps attention weights by default up to so many parts."""


class Note(NamedTuple):
    """Something a reader should know about a translation.

    `kind` is one of "empty", "surrogate", "capitals", "unknown", "copied", "split", "truncated", "limit",
    "repetition", "numbers", "language", "forced"; `message` says it in English, `values` holds the pieces of it
    for other languages.
    """

    kind: str
    message: str
    values: tuple[Any, ...] = ()


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
class Translation:
    """A translation and everything that was seen while making it.

    Attributes:
        model: name of the model.
        source: the text as it was given.
        text: the translation, in the plain form that scores are computed on.
        source_tokens, target_tokens: pieces, with the end token where there is one. A piece outside the
            vocabulary shows its own characters, in the target those of the source that it stands for.
            Empty where nothing was decoded: for an empty text, and one that was copied.
        source_words, target_words: whitespace words.
        source_word_index, target_word_index: number of the word each token lies in, -1 for the end token.
        target_ids: vocabulary ids of the target tokens.
        token_log_probs: natural logarithm of the probability of each target token, given those before.
        score: mean of `token_log_probs`, nats; 0 for an empty text.
        seconds: wall-clock time; for a list, this text's share of its batch.
        num_beams: beams of the search; 1 is greedy.
        notes: what happened.
        parts: translations of the sentences of a text over the input cap; empty otherwise.
        attentions: weights by kind, each (L, H, T, S); empty if they were not asked for.
        attention_kinds: kinds that the model has, asked for or not.
        has_one_vector: the model's decoder sees the source through one fixed vector and nothing else.
    """

    model: str
    source: str
    text: str
    source_tokens: tuple[str, ...] = ()
    target_tokens: tuple[str, ...] = ()
    source_words: tuple[str, ...] = field(default=(), repr=False)
    target_words: tuple[str, ...] = field(default=(), repr=False)
    source_word_index: tuple[int, ...] = field(default=(), repr=False)
    target_word_index: tuple[int, ...] = field(default=(), repr=False)
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
            have = [*self.attentions] or self.attention_kinds
            if not have:
                sees = "one fixed vector" if self.has_one_vector else "the same at every step"
                raise ValueError(
                    f"{self.model} has no attention: its decoder sees {sees}; "
                    "use lstm-attention or transformer, or saliency, which every model has"
                )
            if kind not in have:
                raise ValueError(
                    f"{self.model} has {', '.join(have)} attention, no {kind} attention"
                )
            if self.text and not self.target_tokens:
                raise ValueError(
                    "expected a text that was decoded, got one that was copied as it is"
                )
            raise ValueError("translated without attention; call translate(text, attention=True)")
        source = (self.source_tokens, self.source_word_index, self.source_words)
        target = (self.target_tokens, self.target_word_index, self.target_words)
        if kind == "encoder":
            target = source
        elif kind == "decoder":
            # The keys are the decoder's inputs: the start token, then the target so far.
            source = (
                ("<start>", *self.target_tokens[:-1]),
                (-1, *self.target_word_index[:-1]),
                self.target_words,
            )
        weights = self.attentions[kind]
        return AttentionMap(
            kind=kind,
            model=self.model,
            weights=weights,
            source_pieces=Pieces(source[0], source[2], source[1]),
            target_pieces=Pieces(target[0], target[2], target[1]),
            hidden_mass=np.zeros(weights.shape[:3]),
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: both texts, and the map of cross-attention where there is one."""
        from seqviz import heatmap

        texts = (
            f'<p><b>{escape(self.model)}</b> <span lang="en">{escape(self.source)}</span> → '
            f'<span lang="fr">{escape(self.text)}</span></p>'
        )
        if "cross" not in self.attentions or not self.target_words or not self.source_words:
            return texts
        return texts + heatmap.notebook(heatmap.render(self.attention("cross").words()))

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


# ---------------------------------------------------------------------------------------------
# Loading


def load(
    name_or_folder: str | os.PathLike[str], device: str | torch.device | None = None
) -> Translator:
    """Load a shipped model by name, or any model folder that `seqviz train` wrote.

    Args:
        name_or_folder: "rnn", "lstm", "lstm-attention", "transformer", or a path.
        device: "cpu", "cuda", …; None takes the CPU, which is fast enough for one sentence.
    Raises:
        ModelError: no such model, damaged or missing files, another architecture, untrained weights.
    """
    folder = Path(name_or_folder)
    if str(name_or_folder) in MODEL_NAMES:
        folder = models_folder() / str(name_or_folder)
    elif not folder.is_dir():
        raise ModelError(
            f"expected one of {', '.join(MODEL_NAMES)} or a model folder, got {str(name_or_folder)!r}"
        )
    for file in ("config.json", "model.safetensors", "tokenizer.json", "training.json"):
        if not (folder / file).is_file():
            raise ModelError(
                f"expected {file} in {folder}, found none; train the model with 'seqviz train' or "
                "restore the folder"
            )
    try:
        training = json.loads((folder / "training.json").read_text(encoding="utf-8"))
        tokenizer = tokenizers.load(folder)
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        model = _load_weights(folder, config)
    except ModelError:
        raise
    except Exception as error:  # damaged files raise whatever their reader raises
        raise ModelError(
            f"{folder}: cannot be loaded ({type(error).__name__}: {error}); a file is damaged, restore it"
        ) from error
    loss, limit = training.get("dev_loss"), math.log(len(tokenizer))
    if not isinstance(loss, int | float) or not loss < limit:
        raise ModelError(
            f"expected a validation loss below {limit:.2f} in {folder / 'training.json'}, got {loss}; "
            "the weights are untrained or diverged, train them with a --dev file"
        )
    return Translator(
        model.to(device or "cpu"),
        tokenizer,
        name=training.get("model", folder.name),
        training=training,
    )


def _load_weights(folder: Path, config: Any) -> PreTrainedModel:
    """fp16 weights as an fp32 model; every weight must be there and none left over."""
    bars = transformers_logging.is_progress_bar_enabled()
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    try:
        model, info = AutoModelForSeq2SeqLM.from_pretrained(
            folder,
            config=config,
            dtype=torch.float32,
            local_files_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported below, in our words
        )
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()
    wrong = {
        kind: sorted(map(str, info[kind]))
        for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")
        if info[kind]
    }
    if wrong:
        raise ModelError(
            f"{folder}: the weights are not those of its config.json ({wrong}); restore both"
        )
    for name, parameter in model.named_parameters():
        if "embed_positions" in name:  # sinusoids, computed and not stored; loading unfreezes them
            parameter.requires_grad_(False)
    return model.eval()


# ---------------------------------------------------------------------------------------------
# Translating


class Translator:
    """A trained model with its tokenizer.

    Args:
        model: one of the project's models; put into evaluation mode.
        tokenizer: the shared tokenizer.
        name: as in `MODEL_NAMES`.
        training: what ``training.json`` says.

    Attributes:
        lowers_capitals: a text in capitals is read in small letters, and a note says so.
    """

    lowers_capitals = False

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: Any,
        *,
        name: str = "model",
        training: dict[str, Any] | None = None,
    ) -> None:
        self.model = model.eval()
        if isinstance(model, MarianMTModel):
            model.set_attn_implementation("eager")  # the fused kernels do not return weights
        self.tokenizer = tokenizer
        self.name = name
        self.training = training or {}
        languages = self.training.get("languages", [])
        self._languages: tuple[str, str] = (*languages,) if len(languages) == 2 else ("en", "fr")
        self._reads_english = self._languages[0] == "en"
        self._stepper = stepper_for(model)

    def __repr__(self) -> str:
        tokens = self.training.get("target_tokens")
        seen = f", trained on {tokens:,} target tokens" if tokens else ""
        return f"<Translator {self.name}: {self.num_parameters:,} parameters{seen}>"

    @property
    def num_parameters(self) -> int:
        """Trainable parameters, tied ones once."""
        return num_parameters(self.model)

    @property
    def device(self) -> torch.device:
        return self.model.device

    @overload
    def translate(
        self, text: str, num_beams: int = 1, *, attention: bool | None = None
    ) -> Translation: ...
    @overload
    def translate(
        self, text: Sequence[str], num_beams: int = 1, *, attention: bool | None = None
    ) -> list[Translation]: ...
    def translate(
        self, text: str | Sequence[str], num_beams: int = 1, *, attention: bool | None = None
    ) -> Translation | list[Translation]:
        """Translate a text, or each text of a list.

        An empty text gives an empty translation. A text over `MAX_SOURCE_WORDS` English words or
        `MAX_SOURCE_PIECES` pieces is translated sentence by sentence. A model may write the unknown piece
        as often as the source holds one; the characters that it stands for are put in its place (see
        `seqviz.translating.unknown`). A text in which nothing else has a letter or digit comes back as it
        is. What happened stands in `notes`.

        Args:
            text: English text, or a list of texts, which are translated in batches.
            num_beams: 1 for greedy search.
            attention: keep attention weights; None keeps them for a single text of not too many parts.
        Raises:
            TypeError: something that is not text.
            ValueError: a number of beams out of range.
        """
        _check_beams(num_beams)
        single = isinstance(text, str)
        if not single and not isinstance(text, Sequence):
            raise TypeError(f"expected text or a list of texts, got {type(text).__name__}")
        texts = [text] if single else list(text)
        for item in texts:
            if not isinstance(item, str):
                raise TypeError(f"expected text, got {type(item).__name__}")
        plans = [self._plan_of(item) for item in texts]
        units = [unit for plan in plans for unit in plan.units]
        keep = single and len(units) <= MAX_PARTS_WITH_ATTENTION if attention is None else attention
        outputs = iter(self._translate_units(units, num_beams, keep))
        results = [self._assemble(plan, [next(outputs) for _ in plan.units]) for plan in plans]
        return results[0] if single else results

    def translate_from(
        self,
        text: str | Translation,
        prefix_ids: Sequence[int],
        num_beams: int = 1,
        *,
        attention: bool | None = None,
    ) -> Translation:
        """Translate with a given beginning: search goes on from `prefix_ids`.

        The log-probabilities of the given tokens are the model's own. A beginning that closes with the end
        token is the whole translation. Greedy search from a beginning of its own output gives that output.
        A note of the kind "forced" says how many pieces were given; none given is `translate`.

        Args:
            text: English text that is read at once, or a translation of it (only its source is used).
            prefix_ids: vocabulary ids of the first target tokens, such as ``translation.target_ids[:3]``.
            num_beams: 1 for greedy search.
            attention: keep attention weights; None keeps them.
        Raises:
            TypeError: something that is not text, ids that are not whole numbers.
            ValueError: a number of beams out of range, a text that is read in several parts or empty, ids
                that no output can begin with.
        """
        _check_beams(num_beams)
        plan = self._plan_of(text)
        try:
            prefix = tuple(map(operator.index, prefix_ids))
        except TypeError as error:
            raise TypeError(f"expected prefix_ids as whole numbers: {error}") from None
        if len(plan.units) > 1:
            raise ValueError(
                f"expected a text that is read at once, got one of {len(plan.units)} parts; give one "
                "part, such as translate(text).parts[0]"
            )
        if not prefix:
            return self.translate(plan.text, num_beams, attention=attention)
        if not plan.units:
            raise ValueError(
                "expected a text to translate, got an empty one; give a text, or no prefix_ids"
            )
        (unit,) = plan.units
        self._check_prefix(prefix, unit)
        keep = attention is None or attention
        translation = self._assemble(plan, self._translate_batch([unit], num_beams, keep, prefix))
        pieces = "piece was" if len(prefix) == 1 else "pieces were"
        note = Note("forced", f"the first {len(prefix)} {pieces} given", (len(prefix),))
        return replace(translation, notes=(note, *translation.notes))

    @torch.inference_mode()
    def candidates(
        self, translation: Translation, count: int = 5
    ) -> tuple[tuple[Candidate, ...], ...]:
        """What the model would most probably have written at each step of a translation.

        One teacher-forced pass: each step sees the source and exactly the target tokens before it. As in
        search, the padding token is left out, with its share of the probability, and so is the unknown
        one where the target holds as many already as the source. An unknown piece that was taken shows
        the characters that it stands for.

        Args:
            translation: of any search, also one that was made by another model.
            count: how many at each step, as far as the vocabulary goes.
        Returns:
            for each of ``translation.target_ids`` the most probable tokens in its place, the best first.
            The token that was taken need not be among them.
        Raises:
            ValueError: a count below 1, or a translation whose tokens are not those of its source.
        """
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise ValueError(f"expected count to be a whole number from 1, got {count!r}")
        if translation.parts:
            each = [self.candidates(part, count) for part in translation.parts]
            return tuple(step for steps in each for step in steps)
        if not translation.target_ids:
            return ()
        eos = self.tokenizer.eos_token
        units = self._plan_of(translation).units
        if len(units) != 1 or (*units[0].pieces, eos) != translation.source_tokens:
            raise ValueError(
                "expected a translation whose source_tokens are those of its source, got "
                f"{len(translation.source_tokens)} tokens and a text of "
                f"{sum(len(unit.ids) + 1 for unit in units)}; use what translate returned, unchanged"
            )
        input_ids, mask = self._pad([(*units[0].ids, self.tokenizer.eos_token_id)])
        start = self.model.config.decoder_start_token_id
        logits = self.model(
            input_ids=input_ids,
            attention_mask=mask,
            decoder_input_ids=torch.tensor(
                [[start, *translation.target_ids[:-1]]], device=self.device
            ),
            use_cache=False,
        ).logits[0]  # (T, V)
        log_probs = logits.float().log_softmax(dim=-1)
        log_probs[:, self.tokenizer.pad_token_id] = float("-inf")
        unk = self.tokenizer.unk_token_id
        ration = units[0].ids.count(unk)
        for place in range(len(log_probs)):
            if translation.target_ids[:place].count(unk) >= ration:
                log_probs[place, unk] = float("-inf")
        best, ids = log_probs.topk(min(count, log_probs.shape[1] - 1), dim=-1)
        steps = []
        for place, (row, values) in enumerate(zip(ids.tolist(), best.tolist(), strict=True)):
            tokens = self.tokenizer.convert_ids_to_tokens(row)
            taken = translation.target_ids[place]
            steps.append(
                tuple(
                    Candidate(
                        id_,
                        translation.target_tokens[place] if id_ == taken == unk else token,
                        math.exp(value),
                        value,
                    )
                    for id_, token, value in zip(row, tokens, values, strict=True)
                    if value > float("-inf")
                )
            )
        return tuple(steps)

    def _plan_of(self, text: str | Translation) -> _Plan:
        if isinstance(text, Translation):
            text = text.source
        if not isinstance(text, str):
            raise TypeError(f"expected text or a translation, got {type(text).__name__}")
        return _plan(self.tokenizer, text, self._reads_english, self.lowers_capitals)

    def _check_prefix(self, prefix: tuple[int, ...], unit: _Unit) -> None:
        """The output for a source can begin with these ids."""
        limit = output_limit(len(unit.ids))
        size, end = len(self.tokenizer), self.tokenizer.eos_token_id
        unk = self.tokenizer.unk_token_id
        forbidden = {self.tokenizer.pad_token_id: self.tokenizer.pad_token}
        if prefix.count(unk) > unit.ids.count(unk):
            forbidden[unk] = self.tokenizer.unk_token
        for place, id_ in enumerate(prefix):
            if not 0 <= id_ < size:
                raise ValueError(
                    f"expected prefix_ids from 0 to {size - 1}, got {id_} at place {place}; take them "
                    "from target_ids or candidates"
                )
            if id_ in forbidden:
                raise ValueError(
                    f"expected prefix_ids that the models write, got {id_} ({forbidden[id_]}) at place "
                    f"{place}; leave it out"
                )
            if id_ == end and place < len(prefix) - 1:
                raise ValueError(
                    f"expected the end token {end} only as the last of prefix_ids, got it at place "
                    f"{place} of {len(prefix)}; cut what comes after it"
                )
        if len(prefix) > limit:
            raise ValueError(
                f"expected at most {limit} prefix_ids for this source, the limit of its output, got "
                f"{len(prefix)}; give fewer"
            )

    def _translate_units(
        self, units: list[_Unit], num_beams: int, attention: bool
    ) -> list[Translation]:
        """Translate sentences within the caps, those of like length together."""
        results: dict[int, Translation] = {}
        for i, unit in enumerate(units):
            if unknown.nothing_known(unit.pieces, unit.ids, self.tokenizer.unk_token_id):
                results[i] = self._copied(unit, num_beams)
        order = [i for i in range(len(units)) if i not in results]
        order.sort(key=lambda i: len(units[i].ids))
        while order:
            longest = len(units[order[-1]].ids) + 1
            size = max(1, MAX_BATCH_PIECES // (longest * num_beams))
            group, order = order[-size:], order[:-size]
            for i, translation in zip(
                group,
                self._translate_batch([units[i] for i in group], num_beams, attention),
                strict=True,
            ):
                results[i] = translation
        return [results[i] for i in range(len(units))]

    @torch.inference_mode()
    def _translate_batch(
        self,
        units: list[_Unit],
        num_beams: int,
        attention: bool,
        prefix: tuple[int, ...] = (),
    ) -> list[Translation]:
        started = time.perf_counter()
        input_ids, mask = self._pad([(*unit.ids, self.tokenizer.eos_token_id) for unit in units])
        limits = [output_limit(len(unit.ids)) for unit in units]
        unk = self.tokenizer.unk_token_id
        settings: dict[str, Any] = {
            "start_token_id": self.model.config.decoder_start_token_id,
            "eos_token_id": self.tokenizer.eos_token_id,
            "forbidden_token_ids": (self.tokenizer.pad_token_id,),
            "prefix": prefix,
            "rationed_token_id": unk,
            "rations": [unit.ids.count(unk) for unit in units],
        }
        recorder = Recorder(self._stepper) if attention and len(units) == num_beams == 1 else None
        if num_beams == 1:
            found = search.greedy(recorder or self._stepper, input_ids, mask, limits, **settings)
        else:
            found = search.beam_search(
                self._stepper, input_ids, mask, limits, num_beams=num_beams, **settings
            )
        seconds = (time.perf_counter() - started) / len(units)
        translations = []
        for unit, hypothesis in zip(units, found, strict=True):
            weights: dict[str, np.ndarray] = {}
            if recorder is not None:
                weights = _arrays(recorder.attention())
            elif attention:
                weights = self.attend(unit.ids, hypothesis.ids)
            translations.append(self._translation(unit, hypothesis, seconds, num_beams, weights))
        return translations

    def _pad(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        longest = max(map(len, rows))
        ids = torch.full((len(rows), longest), self.tokenizer.pad_token_id)
        mask = torch.zeros((len(rows), longest), dtype=torch.long)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = torch.tensor(row)
            mask[index, : len(row)] = 1
        return ids.to(self.device), mask.to(self.device)

    def made(self, **found: Any) -> Translation:
        """A translation by this model, with what it is: its name, and whether and how it looks back."""
        return Translation(
            model=self.name,
            attention_kinds=self.attention_kinds,
            has_one_vector=self.has_one_vector,
            **found,
        )

    def _copied(self, unit: _Unit, num_beams: int) -> Translation:
        note = Note("copied", "no piece of this is known to the models: it comes back as it is")
        return self.made(
            source=unit.text,
            text=unit.text,
            source_words=unit.words,
            target_words=unit.words,
            num_beams=num_beams,
            notes=(*unit.notes, note),
        )

    def _with_unknown(
        self,
        unit: _Unit,
        target_ids: tuple[int, ...],
        attentions: dict[str, np.ndarray],
    ) -> tuple[list[str], tuple[Note, ...]]:
        """The pieces of an output, unknown ones as what they stand for, and a note on what is missing."""
        pieces = self.tokenizer.convert_ids_to_tokens(list(target_ids))
        unk = self.tokenizer.unk_token_id
        if unk in target_ids and unit.ids.count(unk) > 1:
            attentions = attentions or self.attend(unit.ids, target_ids)
        found = unknown.places(unit.ids, target_ids, unk, attentions.get("cross"))
        for step, place in found.items():
            pieces[step] = unit.pieces[place]
        written = set(found.values())
        missing = dict.fromkeys(
            character
            for place, id_ in enumerate(unit.ids)
            if id_ == unk and place not in written
            for character in unit.pieces[place]
        )
        return pieces, (_unknown_note(missing),) if missing else ()

    def _translation(
        self,
        unit: _Unit,
        found: search.Hypothesis,
        seconds: float,
        num_beams: int,
        attentions: dict[str, np.ndarray],
    ) -> Translation:
        eos = self.tokenizer.eos_token
        ids = found.ids[:-1] if found.finished else found.ids
        pieces, missing = self._with_unknown(unit, ids, attentions)
        words, word_index = tokenizers.group_pieces(pieces)
        notes = [*missing, *unit.notes]
        if not found.finished:
            notes.append(
                Note(
                    "limit",
                    f"stopped at the limit of {len(ids)} pieces before the end",
                    (len(ids),),
                )
            )
        repeated = repeated_spans(words)
        if repeated:
            shown = " ".join(words[repeated[0][0] : repeated[0][1]][:8])
            notes.append(Note("repetition", f"repeats itself: {shown}", (shown,)))
        differ = numbers.differences(unit.text, " ".join(words), *self._languages)
        if any(differ):
            notes.append(_numbers_note(*differ))
        end = (eos,) if found.finished else ()
        end_index = (-1,) if found.finished else ()
        return self.made(
            source=unit.text,
            text=" ".join(words),
            source_tokens=(*unit.pieces, eos),
            target_tokens=(*pieces, *end),
            source_words=unit.words,
            target_words=tuple(words),
            source_word_index=(*unit.word_index, -1),
            target_word_index=(*word_index, *end_index),
            target_ids=found.ids,
            token_log_probs=found.log_probs,
            score=found.score(),
            seconds=seconds,
            num_beams=num_beams,
            notes=tuple(notes),
            attentions=attentions,
        )

    @torch.inference_mode()
    def attend(self, source_ids: Sequence[int], target_ids: Sequence[int]) -> dict[str, np.ndarray]:
        """Attention weights of a given target: one teacher-forced pass over it.

        The weights with which a token was chosen depend only on the source and the tokens before it,
        so this is the attention of the hypothesis, whichever search found it.

        Args:
            source_ids: without the end token.
            target_ids: S and T are taken from these; the end token belongs to them if it was reached.
        Returns:
            weights (L, H, T, S) by kind; empty for a model without attention.
        """
        if not self.attention_kinds:
            return {}
        input_ids, mask = self._pad([(*source_ids, self.tokenizer.eos_token_id)])
        start = self.model.config.decoder_start_token_id
        decoder_input_ids = torch.tensor([[start, *target_ids[:-1]]], device=self.device)
        # The models without their output layers, of which nothing is needed here.
        if isinstance(self.model, MarianMTModel):
            output = self.model.model(
                input_ids=input_ids,
                attention_mask=mask,
                decoder_input_ids=decoder_input_ids,
                use_cache=False,
                output_attentions=True,
            )
            found = {
                "cross": output.cross_attentions,
                "encoder": output.encoder_attentions,
                "decoder": output.decoder_attentions,
            }
        else:
            encoded = self.model.model.encoder(input_ids=input_ids, attention_mask=mask)
            _, _, weights, _ = self.model.model.decoder(decoder_input_ids, encoded, mask.bool())
            found = {"cross": (weights.unsqueeze(1),)}
        return _arrays({kind: torch.cat(list(layers)) for kind, layers in found.items()})

    @torch.inference_mode()
    def vector(self, translation: Translation) -> np.ndarray:
        """The one vector that the encoder of a model without attention made of the source.

        Args:
            translation: by this model, of a text in one part.
        Returns:
            its numbers, each from -1 to 1, (D,).
        Raises:
            ValueError: a model whose decoder has more than one vector, or an empty source.
        """
        if not self.has_one_vector:
            raise ValueError(
                f"expected a model whose decoder sees one fixed vector, got {self.name}; "
                "use translation.attention()"
            )
        if not translation.source_tokens:
            raise ValueError(
                "expected a translation of a text in one part, got one without source tokens; "
                "use one of .parts, or a text that is not empty"
            )
        ids = self.tokenizer.convert_tokens_to_ids(list(translation.source_tokens))
        input_ids, mask = self._pad([ids])
        encoded = self.model.model.encoder(input_ids=input_ids, attention_mask=mask)
        return encoded.vector[0].float().cpu().numpy()

    @property
    def attention_kinds(self) -> tuple[str, ...]:
        """Kinds of attention that the model has; none where its decoder cannot look back."""
        if isinstance(self.model, MarianMTModel):
            return KINDS
        return ("cross",) if self.model.config.context == "attention" else ()

    @property
    def has_one_vector(self) -> bool:
        """The decoder sees the source through one fixed vector and nothing else."""
        return getattr(self.model.config, "context", None) == "fixed"

    @torch.inference_mode()
    def losses(self, pairs: Sequence[tuple[str, str]]) -> list[np.ndarray]:
        """Teacher-forced loss of each piece of the targets: minus its log-probability, in nats.

        Args:
            pairs: (source, target) texts, which are computed in batches.
        Returns:
            for each pair an array (T,) without the end token; empty where a side is over the caps of
            `MAX_SOURCE_PIECES` and `MAX_TARGET_PIECES`, or the target is empty.
        """
        sides = [
            self.tokenizer(
                [tokenizers.normalize(pair[side]) for pair in pairs],
                add_special_tokens=False,
                verbose=False,
            ).input_ids
            for side in (0, 1)
        ]
        ids = list(zip(*sides, strict=True))
        found: list[np.ndarray] = [np.zeros(0) for _ in pairs]
        order = [
            i
            for i, (source, target) in enumerate(ids)
            if 0 < len(source) <= MAX_SOURCE_PIECES and 0 < len(target) <= MAX_TARGET_PIECES
        ]
        order.sort(key=lambda i: (len(ids[i][1]), len(ids[i][0])))
        start = self.model.config.decoder_start_token_id
        while order:
            size = max(1, MAX_BATCH_PIECES // (2 * len(ids[order[-1]][1]) + 2))
            order, group = order[:-size], order[-size:]
            input_ids, mask = self._pad([(*ids[i][0], self.tokenizer.eos_token_id) for i in group])
            labels, _ = self._pad([ids[i][1] for i in group])
            decoder_input_ids = torch.nn.functional.pad(labels, (1, -1), value=start)
            logits = self.model(
                input_ids=input_ids,
                attention_mask=mask,
                decoder_input_ids=decoder_input_ids,
                use_cache=False,
            ).logits  # (B, T, V)
            nats = torch.nn.functional.cross_entropy(
                logits.flatten(0, 1).float(), labels.flatten(), reduction="none"
            ).reshape(labels.shape)
            for row, i in zip(nats.cpu().numpy(), group, strict=True):
                found[i] = row[: len(ids[i][1])]
        return found

    def _assemble(self, plan: _Plan, outputs: list[Translation]) -> Translation:
        """One translation of a whole text from those of its sentences."""
        if not outputs:
            return self.made(source=plan.text, text="", notes=plan.notes)
        if len(outputs) == 1:
            return replace(outputs[0], source=plan.text, notes=plan.notes + outputs[0].notes)
        source_words: list[str] = []
        target_words: list[str] = []
        source_index: list[int] = []
        target_index: list[int] = []
        for part in outputs:
            source_index += [
                w + len(source_words) if w >= 0 else -1 for w in part.source_word_index
            ]
            target_index += [
                w + len(target_words) if w >= 0 else -1 for w in part.target_word_index
            ]
            source_words += part.source_words
            target_words += part.target_words
        log_probs = tuple(p for part in outputs for p in part.token_log_probs)
        return self.made(
            source=plan.text,
            text=" ".join(part.text for part in outputs if part.text),
            source_tokens=tuple(t for part in outputs for t in part.source_tokens),
            target_tokens=tuple(t for part in outputs for t in part.target_tokens),
            source_words=tuple(source_words),
            target_words=tuple(target_words),
            source_word_index=tuple(source_index),
            target_word_index=tuple(target_index),
            target_ids=tuple(i for part in outputs for i in part.target_ids),
            token_log_probs=log_probs,
            score=sum(log_probs) / max(1, len(log_probs)),
            seconds=sum(part.seconds for part in outputs),
            num_beams=outputs[0].num_beams,
            notes=merged_notes((*plan.notes, *(note for part in outputs for note in part.notes))),
            parts=tuple(outputs),
        )


def _unknown_note(characters: Iterable[str]) -> Note:
    shown = tuple(characters)[:10]
    return Note("unknown", f"unknown to the models: {' '.join(shown)}", shown)


def _numbers_note(missing: tuple[str, ...], invented: tuple[str, ...]) -> Note:
    said = [
        f"{what} {', '.join(dict.fromkeys(which))}"
        for what, which in (("missing", missing), ("not in the source", invented))
        if which
    ]
    return Note("numbers", f"check the numbers: {'; '.join(said)}", (missing, invented))


def merged_notes(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Each kind once, the first; but the unknown characters and the numbers of all."""
    kinds: dict[str, Note] = {}
    for note in notes:
        first = kinds.setdefault(note.kind, note)
        if first is note:
            continue
        if note.kind == "unknown":
            kinds["unknown"] = _unknown_note(dict.fromkeys((*first.values, *note.values)))
        elif note.kind == "numbers":
            missing, invented = (a + b for a, b in zip(first.values, note.values, strict=True))
            kinds["numbers"] = _numbers_note(missing, invented)
    return tuple(kinds.values())


def _arrays(weights: dict[str, Tensor]) -> dict[str, np.ndarray]:
    return {kind: values.float().cpu().numpy() for kind, values in weights.items()}


# ---------------------------------------------------------------------------------------------
# What goes in


def _check_beams(num_beams: int) -> None:
    if not isinstance(num_beams, int) or isinstance(num_beams, bool) or not 1 <= num_beams <= 32:
        raise ValueError(f"expected num_beams from 1 to 32, got {num_beams!r}")


@dataclass(frozen=True)
class _Unit:
    """A sentence within the caps, cut into pieces."""

    text: str
    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    words: tuple[str, ...]
    word_index: tuple[int, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class _Plan:
    """A text and the sentences it is translated as."""

    text: str
    units: tuple[_Unit, ...]
    notes: tuple[Note, ...]


_SENTENCE_END = re.compile(r"""(?<=[.!?])["')\]]* (?=["'(\[]*[^\sa-z])""")


_ABBREVIATION = re.compile(r"""(?:^|[\s("'])(?:Mr|Mrs|Ms|Messrs|Dr|Prof|St|[A-HJ-Z])\.$""")
"""A full stop that seldom ends a sentence: after a title or an initial."""


def split_sentences(text: str) -> list[str]:
    """Cut normalised text after ``. ! ?`` where the next word does not begin in lower case."""
    sentences, start = [], 0
    for match in _SENTENCE_END.finditer(text):
        if _ABBREVIATION.search(text, start, match.end() - 1):
            continue
        sentences.append(text[start : match.end()].strip())
        start = match.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def output_limit(source_pieces: int) -> int:
    """Most target tokens, end token included, for a source of so many pieces.

    A short source cannot set off a long ramble; translations into French seldom reach half of it.
    """
    return min(MAX_TARGET_PIECES + 1, 2 * source_pieces + 12)


def _plan(tokenizer: Any, text: str, english: bool, lowers_capitals: bool = False) -> _Plan:
    """Normalise a text, say what is odd about it, and cut it into sentences if it is too long."""
    notes: list[Note] = []
    whole = tokenizers.replace_surrogates(text)
    if whole != text:
        text = whole
        notes.append(Note("surrogate", "broken characters were replaced by \ufffd"))
    plain = tokenizers.normalize(text)
    if not plain:
        notes.append(Note("empty", "nothing to translate: the text is empty"))
        return _Plan(text, (), tuple(notes))
    small = capitals.lowered(plain) if lowers_capitals else None
    if small is not None:
        plain = small
        notes.append(Note("capitals", "written in capitals: read in small letters"))
    if english and not looks_english(plain):
        notes.append(
            Note("language", "this does not look like English; the models read English only")
        )
    unit = _unit(tokenizer, plain)
    if _fits(unit):
        return _Plan(text, (unit,), tuple(notes))
    units: list[_Unit] = []
    for sentence in split_sentences(plain):
        unit = _unit(tokenizer, sentence)
        units += [unit] if _fits(unit) else _cut(unit)
    if len(units) > 1:
        notes.append(
            Note(
                "split",
                f"over {MAX_SOURCE_WORDS} words or {MAX_SOURCE_PIECES} pieces: translated in "
                f"{len(units)} parts",
                (len(units),),
            )
        )
    return _Plan(text, tuple(units), tuple(notes))


def _fits(unit: _Unit) -> bool:
    return len(unit.words) <= MAX_SOURCE_WORDS and len(unit.ids) <= MAX_SOURCE_PIECES


def _unit(tokenizer: Any, text: str) -> _Unit:
    cut = tokenizers.segment(tokenizer, text)
    return _Unit(
        text=text,
        ids=tuple(cut.ids),
        pieces=tuple(cut.pieces),
        words=tuple(cut.words),
        word_index=tuple(cut.word_of_piece),
        notes=(),
    )


def _cut(unit: _Unit) -> list[_Unit]:
    """Cut an over-long sentence between words; a single word over the cap loses its tail."""
    found: list[_Unit] = []
    start = 0
    total = len(unit.ids)
    while start < total:
        first_word = unit.word_index[start]
        end = start
        while (
            end < total
            and end - start < MAX_SOURCE_PIECES
            and unit.word_index[end] - first_word < MAX_SOURCE_WORDS
        ):
            end += 1
        notes: tuple[Note, ...] = ()
        resume = end
        if end < total and unit.word_index[end] == unit.word_index[end - 1]:
            if unit.word_index[end] > first_word:  # back to the beginning of the cut word
                while unit.word_index[end - 1] == unit.word_index[resume]:
                    end -= 1
                resume = end
            else:
                while resume < total and unit.word_index[resume] == first_word:
                    resume += 1
                notes = (
                    Note(
                        "truncated",
                        f"one word has {resume - start} pieces, only the first {end - start} were read",
                        (resume - start, end - start),
                    ),
                )
        last_word = unit.word_index[end - 1]
        words = unit.words[first_word : last_word + 1]
        found.append(
            _Unit(
                text=" ".join(words),
                ids=unit.ids[start:end],
                pieces=unit.pieces[start:end],
                words=words,
                word_index=tuple(w - first_word for w in unit.word_index[start:end]),
                notes=notes,
            )
        )
        start = resume
    return found


_ENGLISH = frozenset(
    "the a an of to in is it you i that he she was for on are with as they be at this have from or had by "
    "but not what all were we when your can said there do will my me our has would who how if about his her "
    "him its their them more no so up out where why please did does been am us".split()
)
_OTHERS = frozenset(
    "le la les un une des du de et est je tu il elle nous vous que qui ne pas dans pour sur avec au aux ce "
    "der die das und ist nicht ein eine ich sie wir zu den mit auf el los las una y es no que en por con "
    "para il gli di che non sono per".split()
)


def looks_english(text: str) -> bool:
    """A guess, made to be wrong seldom about English: used for a hint, never to refuse.

    False where most letters are not Latin, or where function words of other languages clearly outweigh
    English ones.
    """
    letters = [c for c in text if c.isalpha()]
    if letters and sum(c < "\u0250" for c in letters) < 0.6 * len(letters):
        return False
    words = [re.sub(r"\W", "", w) for w in text.lower().split()]
    english = sum(w in _ENGLISH for w in words)
    others = sum(w in _OTHERS and w not in _ENGLISH for w in words)
    return not (others >= 2 and others > 2 * english)


# ---------------------------------------------------------------------------------------------
# What comes out


_REPEATED_LETTERS = re.compile(r"([^\W\d_])\1{3,}|([^\W\d_]{2,10}?)\2{2,}")


def repeated_spans(words: Sequence[str]) -> list[tuple[int, int]]:
    """Where a text repeats itself, as word ranges [start, end).

    Counted are a sequence of 1 to 8 words said three times or more in a row (two words or more: also
    twice, if it has four words), any sequence of four words that occurs three times, and a word in which
    letters repeat: one four times in a row, two or more three times.
    """
    plain = [re.sub(r"\W", "", word.lower()) or word for word in words]
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(plain):
        found = None
        for size in range(1, 9):
            block = plain[start : start + size]
            end = start + size
            while plain[end : end + size] == block and len(block) == size:
                end += size
            times = (end - start) // size
            if times >= 3 or (times == 2 and size >= 4):
                found = end
                break
        if found is None and _REPEATED_LETTERS.search(plain[start]):
            found = start + 1
        if found:
            spans.append((start, found))
            start = found
        else:
            start += 1
    if not spans:
        fours = [tuple(plain[i : i + 4]) for i in range(len(plain) - 3)]
        often = {four for four, count in Counter(fours).items() if count >= 3}
        spans = [(i, i + 4) for i, four in enumerate(fours) if four in often]
    return spans


def french_for_display(text: str) -> str:
    """French typography for reading: a no-break space before ``? ! ; : %``. Never for scores."""
    return re.sub(r"(?<=[^\s?!;:%])([?!;%]+|:(?=\s|$))", "\u202f\\1", text)
