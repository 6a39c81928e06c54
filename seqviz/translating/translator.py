"""A trained model that translates, and says what it saw.

    translation = translator.translate("Attention is a way to look back.")
    translation.text, translation.attention("cross").words()

Shapes: `B` sentences, `S` source length, `T` target length, `L` layers, `H` heads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack, overload

import numpy as np
import torch
from transformers import PreTrainedModel

from seqviz import architectures
from seqviz.architectures import num_parameters, stepper_for
from seqviz.architectures.steps import Recorder
from seqviz.data import tokenizer as tokenizers
from seqviz.pieces import Pieces
from seqviz.text_languages import LanguagePair
from seqviz.translating import ablation, forced, inputs, notes, output, saving, search, unknown
from seqviz.translating.ablation import Heads
from seqviz.translating.decoding import Decoding, Options, Search
from seqviz.translating.forced import MAX_BATCH_PIECES
from seqviz.translating.inputs import Plan, Unit
from seqviz.translating.result import Candidate, Translation, different, joined

MAX_PARTS_WITH_ATTENTION = 20
"""A text over the cap keeps attention weights by default up to so many parts."""


class Translator:
    """A trained model with its tokenizer.

    Args:
        model: one of the project's models; put into evaluation mode.
        tokenizer: the shared tokenizer.
        name: as in `MODEL_NAMES`.
        training: what ``training.json`` says.
        notes: what a reader should know about the model.
        source_language, target_language: codes (ISO 639-1); None for what the record says, else "en", "fr".

    Attributes:
        lowers_capitals: a text in capitals is read in small letters, and a note says so.
        model: may be changed at any time, or replaced: what is translated next is translated by the model as
            it is then (see `seqviz.architectures.stepper_for`).
    """

    lowers_capitals = False

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: Any,
        *,
        name: str = "model",
        training: dict[str, Any] | None = None,
        notes: tuple[str, ...] = (),
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> None:
        self.model = model.eval()
        model.set_attn_implementation("eager")  # the fused kernels do not return weights
        self.tokenizer = tokenizer
        self.name = name
        self.training = training or {}
        self.notes = notes
        said = LanguagePair.recorded(self.training, model.config.to_dict())
        self.languages = said.changed(source_language, target_language)
        stepper_for(model)  # refuses a model of another kind

    def __repr__(self) -> str:
        tokens = self.training.get("target_tokens")
        seen = f", trained on {tokens:,} target tokens" if tokens else ""
        return f"<Translator {self.name}: {self.num_parameters:,} parameters{seen}>"

    @property
    def attention_kinds(self) -> tuple[str, ...]:
        """Kinds of attention that the model has; none where its decoder cannot look back."""
        return architectures.attention_kinds(self.model)

    @property
    def has_one_vector(self) -> bool:
        """The decoder sees the source through one fixed vector and nothing else."""
        return architectures.has_one_vector(self.model)

    @property
    def num_parameters(self) -> int:
        """Trainable parameters, tied ones once."""
        return num_parameters(self.model)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Save model, tokenizer, and record with the weights' digest, for `seqviz.load` and Transformers."""
        saving.save(self.model, self.tokenizer, self.training, self.languages, folder)

    @property
    def device(self) -> torch.device:
        return self.model.device

    @overload
    def translate(self, text: str, num_beams: int = 1, **rest: Unpack[Options]) -> Translation: ...
    @overload
    def translate(
        self, text: str, num_beams: int = 1, *, num_return_sequences: int, **rest: Unpack[Options]
    ) -> list[Translation]: ...
    @overload
    def translate(
        self, text: Sequence[str], num_beams: int = 1, **rest: Unpack[Options]
    ) -> list[Translation]: ...
    @overload
    def translate(
        self,
        text: Sequence[str],
        num_beams: int = 1,
        *,
        num_return_sequences: int,
        **rest: Unpack[Options],
    ) -> list[list[Translation]]: ...
    def translate(
        self,
        text: str | Sequence[str],
        num_beams: int = 1,
        *,
        attention: bool | None = None,
        num_return_sequences: int | None = None,
        length_penalty: float = 1.0,
        do_sample: bool = False,
        temperature: float | None = None,
        seed: int | None = None,
        max_new_tokens: int | None = None,
        force_words: Sequence[str | Sequence[str]] = (),
        bad_words: Sequence[str] = (),
    ) -> Translation | list[Translation] | list[list[Translation]]:
        """Translate a text, or each text of a list.

        An empty text gives an empty translation. A text over `MAX_SOURCE_WORDS` English words or
        `MAX_SOURCE_PIECES` pieces is translated sentence by sentence. A model may write the unknown piece
        as often as the source holds one; the characters that it stands for are put in its place (see
        `seqviz.translating.unknown`). A text in which nothing else has a letter or digit comes back as it
        is. What happened stands in `notes`.

        A word of `force_words` or `bad_words` stands in a translation where no letter, digit or accent
        touches it on either side (in Chinese and Japanese every character is a word), as it is written
        here or with a capital first letter, whatever pieces spell it. Its other forms are other words:
        "votes" is not "vote". "l'eau" holds "eau". Phrases are words, too.

        Args:
            text: English text, or several in a list, an array or a Series, which are translated in batches.
            num_beams: 1 for greedy search.
            attention: keep attention weights; None keeps them for a single text of not too many parts.
            num_return_sequences: return for each text a list of so many translations, the best first by
                their `score`, no text twice: fewer where search finds no more, or nothing is translated.
                Up to `num_beams`; with `do_sample` so many draws, which may be equal, in their order.
                Of a text in several parts the n-th joins the n-th of every part.
            length_penalty: beams are compared by the sum of log-probabilities over length **
                `length_penalty`: above 1 prefers long outputs, below 1 short ones.
            do_sample: draw each token by chance, by its probability.
            temperature: probabilities are taken to the power of 1 / `temperature` first: below 1 probable
                tokens are drawn more often; None for 1.
            seed: of the draws; None for 0. They depend on this and on the text alone, so a text has
                the same ones in every batch, and equal texts have equal ones.
            max_new_tokens: most pieces of an output, end token included; None for twice the pieces of
                the source and 12.
            force_words: words that the translation has to hold, of a text that is read at once; in the
                place of a word there may be a list of forms, of which one is enough. Search then has
                `num_beams` for each stage on the way to all words (see `seqviz.translating.constrained`).
            bad_words: words that it must not hold.
        Raises:
            TypeError: something that is not text; of several, the message says where it stands.
            ValueError: arguments out of range, or such as do not go together; `force_words` that do not
                fit into the output, or a text in several parts with them.
        """
        asked = Decoding(
            num_beams, num_return_sequences, length_penalty, do_sample, temperature, seed,
            max_new_tokens, force_words, bad_words,
        )  # fmt: skip
        single = isinstance(text, str)
        texts = inputs.texts_of(text)
        plans = [self._plan_of(item) for item in texts]
        if asked.force_words:
            for plan in plans:
                inputs.check_one_part(plan, "with force_words")
        units = [unit for plan in plans for unit in plan.units]
        keep = single and len(units) <= MAX_PARTS_WITH_ATTENTION if attention is None else attention
        outputs = iter(self._translate_units(units, Search(asked, self.tokenizer), keep))
        results = [self._assemble(plan, [next(outputs) for _ in plan.units]) for plan in plans]
        if num_return_sequences is None:
            best = [found[0] for found in results]
            return best[0] if single else best
        return results[0] if single else results

    @overload
    def translate_from(
        self, text: str | Translation, prefix_ids: Sequence[int], num_beams: int = 1, *,
        num_return_sequences: None = None, **rest: Unpack[Options],
    ) -> Translation: ...  # fmt: skip
    @overload
    def translate_from(
        self, text: str | Translation, prefix_ids: Sequence[int], num_beams: int = 1, *,
        num_return_sequences: int, **rest: Unpack[Options],
    ) -> list[Translation]: ...  # fmt: skip
    def translate_from(
        self, text: str | Translation, prefix_ids: Sequence[int], num_beams: int = 1, **rest: Any
    ) -> Translation | list[Translation]:
        """Translate with a given beginning: search goes on from `prefix_ids`.

        The log-probabilities of the given tokens are the model's own. A beginning that closes with the end
        token is the whole translation. Greedy search from a beginning of its own output gives that output.
        A note of the kind "forced" says how many pieces were given; none given is `translate`.

        Args:
            text: English text that is read at once, or a translation of it (only its source is used).
            prefix_ids: vocabulary ids of the first target tokens, such as ``translation.target_ids[:3]``.
            num_beams: 1 for greedy search.
            rest: the others of `translate`, with the same meaning; the given tokens count as chosen ones.
        Raises:
            TypeError: something that is not text, ids that are not whole numbers.
            ValueError: as `translate`; a text that is read in several parts or empty, ids that no output can
                begin with.
        """
        asked = Decoding(num_beams, **{k: v for k, v in rest.items() if k != "attention"})
        plan = self._plan_of(text)
        prefix = inputs.whole_numbers("prefix_ids", prefix_ids)
        inputs.check_one_part(plan)
        if not prefix:
            return self.translate(plan.text, num_beams, **rest)
        if not plan.units:
            raise ValueError(
                "expected a text to translate, got an empty one; give a text, or no prefix_ids"
            )
        way = Search(asked, self.tokenizer)
        way.check_prefix(prefix, plan.units[0])
        keep = rest.get("attention") is not False
        outputs = self._assemble(plan, self._translate_batch([*plan.units], way, keep, prefix))
        found = [replace(o, notes=(notes.forced(len(prefix)), *o.notes)) for o in outputs]
        return found[0] if asked.num_return_sequences is None else found

    @forced.inference
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
        units = self._plan_of(translation).units
        inputs.check_source_tokens(translation.source_tokens, units, self.tokenizer.eos_token)
        return forced.candidates(
            self.model,
            self.tokenizer,
            units[0].ids,
            translation.target_ids,
            translation.target_tokens,
            count,
        )

    @forced.inference
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
        return forced.arrays(forced.attention(self.model, self.tokenizer, source_ids, target_ids))

    @forced.inference
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
        return forced.vector(self.model, self.tokenizer, translation)

    @forced.inference
    def losses(self, pairs: Sequence[tuple[str, str]]) -> list[np.ndarray]:
        """Teacher-forced loss of each piece of the targets: minus its log-probability, in nats.

        Args:
            pairs: (source, target) texts, which are computed in batches.
        Returns:
            for each pair an array (T,) without the end token; empty where a side is over the caps of
            `MAX_SOURCE_PIECES` and `MAX_TARGET_PIECES`, or the target is empty.
        """
        return forced.losses(self.model, self.tokenizer, inputs.ids_of_pairs(self.tokenizer, pairs))

    def loss(self, pairs: Sequence[tuple[str, str]]) -> float:
        """Mean of `losses` over the pieces of all targets, nats a piece.

        Raises:
            ValueError: no pair with a piece to count.
        """
        each = np.concatenate([np.zeros(0), *self.losses(pairs)])
        if not each.size:
            raise ValueError("expected pairs of texts within the caps, got none; give shorter ones")
        return float(each.mean())

    def without(self, head: Heads, kind: str = "cross") -> Translator:
        """A translator like this one without a head of its attention: what the head found counts as 0.

        This one stays as it is; both have the same numbers (see `seqviz.translating.ablation`). Maps still
        show where the head looks. The LSTM's one head is (0, 0); without it there is no attention left.

        Args:
            head: (layer, head), counted from 0, or a list of such pairs.
            kind: of attention, one of `attention_kinds`.
        Raises:
            ValueError: a model without such attention.
            IndexError: no such layer or head.
            TypeError: a model whose layers were wrapped, pruned or patched.
        """
        return ablation.without(self, head, kind)

    def with_context(self, context: str) -> Translator:
        """A translator like this one whose decoder sees something else of the source, untaught.

        Args:
            context: "mean", where all of the source's states count the same (in the Transformer in every
                head of cross-attention); or "nothing" but the decoder's own state.
        Raises:
            ValueError: another context, or "mean" for a model that reads one vector.
            TypeError: as `without`.
        """
        return ablation.with_context(self, context)

    def made(self, **found: Any) -> Translation:
        """A translation by this model, with what it is: its name, and whether and how it looks back."""
        return Translation(
            model=self.name,
            attention_kinds=self.attention_kinds,
            has_one_vector=self.has_one_vector,
            languages=self.languages.codes,
            **found,
        )

    def _plan_of(self, text: str | Translation) -> Plan:
        if isinstance(text, Translation):
            text = text.source
        if not isinstance(text, str):
            raise TypeError(f"expected text or a translation, got {type(text).__name__}")
        return inputs.plan(self.tokenizer, text, self.languages.source, self.lowers_capitals)

    def _translate_units(
        self, units: list[Unit], way: Search, attention: bool
    ) -> list[list[Translation]]:
        """Translate sentences within the caps, those of like length together; of each its results."""
        results: dict[int, list[Translation]] = {}
        for i, unit in enumerate(units):
            if unknown.nothing_known(unit.pieces.tokens, unit.ids, self.tokenizer.unk_token_id):
                results[i] = [self._copied(unit, way.decoding.num_beams)]
        order = [i for i in range(len(units)) if i not in results]
        order.sort(key=lambda i: len(units[i].ids))
        while order:
            longest = len(units[order[-1]].ids) + 1
            size = max(1, MAX_BATCH_PIECES // (longest * way.decoding.num_rows))
            group, order = order[-size:], order[:-size]
            for i, found in zip(
                group,
                self._translate_batch([units[i] for i in group], way, attention),
                strict=True,
            ):
                results[i] = found
        return [results[i] for i in range(len(units))]

    @forced.inference
    def _translate_batch(
        self, units: list[Unit], way: Search, attention: bool, prefix: tuple[int, ...] = ()
    ) -> list[list[Translation]]:
        started = time.perf_counter()
        input_ids, mask = forced.as_sources(self.model, self.tokenizer, [u.ids for u in units])
        alone = attention and len(units) == 1 and way.decoding.is_greedy
        stepper = stepper_for(self.model)
        recorder = Recorder(stepper) if alone else None
        found = way(
            recorder or stepper,
            units,
            input_ids,
            mask,
            start_token_id=self.model.config.decoder_start_token_id,
            prefix=prefix,
        )
        seconds = (time.perf_counter() - started) / len(units)
        results = []
        for unit, hypotheses in zip(units, found, strict=True):
            translations = []
            for hypothesis in hypotheses:
                weights: dict[str, np.ndarray] = {}
                if recorder is not None:
                    weights = forced.arrays(recorder.attention())
                elif attention:
                    weights = self.attend(unit.ids, hypothesis.ids)
                translations.append(
                    self._translation(unit, hypothesis, seconds, way.decoding, weights)
                )
            results.append(translations if way.decoding.do_sample else different(translations))
        return results

    def _translation(
        self,
        unit: Unit,
        found: search.Hypothesis,
        seconds: float,
        asked: Decoding,
        attentions: dict[str, np.ndarray],
    ) -> Translation:
        """What was found for a sentence, as text and with what is to be said about it."""
        end, unk = self.tokenizer.eos_token, self.tokenizer.unk_token_id
        ids = found.ids[:-1] if found.finished else found.ids
        looked = attentions
        if unk in ids and unit.ids.count(unk) > 1:  # which of them is it?
            looked = attentions or self.attend(unit.ids, ids)
        pieces, missing = output.read(
            self.tokenizer, unit.ids, unit.pieces, ids, looked.get("cross")
        )
        limit = None if found.finished else len(ids)
        text = self.languages.target.tidy(" ".join(pieces.words))
        pieces = tokenizers.in_words(pieces, self.languages.target)
        odd = output.oddities(unit.text, text, pieces.words, self.languages, limit)
        lost = (notes.unknown(missing),) if missing else ()
        return self.made(
            source=unit.text,
            text=text,
            source_pieces=unit.pieces.with_end(end),
            target_pieces=pieces.with_end(end) if found.finished else pieces,
            target_ids=found.ids,
            token_log_probs=found.log_probs,
            score=found.score(asked.length_penalty),
            seconds=seconds,
            num_beams=asked.num_beams,
            notes=(*lost, *unit.notes, *odd),
            attentions=attentions,
        )

    def _copied(self, unit: Unit, num_beams: int) -> Translation:
        words = Pieces(words=unit.pieces.words)
        return self.made(
            source=unit.text,
            text=unit.text,
            source_pieces=words,
            target_pieces=words,
            num_beams=num_beams,
            notes=(*unit.notes, notes.COPIED),
        )

    def _assemble(self, plan: Plan, outputs: list[list[Translation]]) -> list[Translation]:
        """Translations of a whole text from those of its sentences."""
        if not outputs:
            return [self.made(source=plan.text, text="", notes=plan.notes)]
        if len(outputs) == 1:
            return [
                replace(one, source=plan.text, notes=plan.notes + one.notes) for one in outputs[0]
            ]
        # Where a sentence has fewer results than others, its last one stays.
        return [
            joined([part[min(n, len(part) - 1)] for part in outputs], plan.text, plan.notes)
            for n in range(max(map(len, outputs)))
        ]
