"""How an output is searched for: what `Translator.translate` may be asked, checked, and the search it leads to.

Names are those of Transformers' ``generate`` where it has the same thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypedDict

from torch import Tensor

from seqviz.architectures.steps import Stepper
from seqviz.constants import MAX_TARGET_PIECES
from seqviz.data import tokenizer as tokenizers
from seqviz.pieces import Pieces
from seqviz.translating import constrained, search
from seqviz.translating.inputs import Unit, check_prefix, output_limit
from seqviz.translating.search import Hypothesis
from seqviz.translating.words import NEVER, Vocabulary, Watch

MAX_BEAMS = 32


class Options(TypedDict, total=False):
    """See `Translator.translate`."""

    attention: bool | None
    length_penalty: float
    do_sample: bool
    temperature: float | None
    seed: int | None
    max_new_tokens: int | None
    force_words: Sequence[str | Sequence[str]]
    bad_words: Sequence[str]


@dataclass(frozen=True)
class Decoding:
    """The arguments of `Translator.translate` that say how to search, checked.

    Raises:
        TypeError: words that are not text.
        ValueError: a value out of range, or two that do not go together.
    """

    num_beams: int = 1
    num_return_sequences: int | None = None
    length_penalty: float = 1.0
    do_sample: bool = False
    temperature: float | None = None
    seed: int | None = None
    max_new_tokens: int | None = None
    force_words: Sequence[str | Sequence[str]] = ()
    bad_words: Sequence[str] = ()

    def __post_init__(self) -> None:
        _check_whole("num_beams", self.num_beams, 1, MAX_BEAMS)
        _check_whole("num_return_sequences", self.num_return_sequences, 1, 1_000)
        _check_whole("max_new_tokens", self.max_new_tokens, 1, MAX_TARGET_PIECES + 1)
        _check_whole("seed", self.seed, 0, 2**63 - 1)
        penalty, temperature = self.length_penalty, self.temperature
        if not _is_number(penalty) or not -10 <= penalty <= 10:
            raise ValueError(f"expected length_penalty from -10 to 10, got {penalty!r}")
        if temperature is not None and not (_is_number(temperature) and 0 < temperature <= 1_000):
            raise ValueError(
                f"expected temperature above 0 and at most 1000, got {temperature!r}; for the most "
                "probable output leave do_sample out"
            )
        self._check_together()
        forced = tuple(_forms(word) for word in _listed("force_words", self.force_words))
        bad = tuple(_plain("bad_words", word) for word in _listed("bad_words", self.bad_words))
        object.__setattr__(self, "force_words", forced)
        object.__setattr__(self, "bad_words", bad)

    def _check_together(self) -> None:
        results, given = self.num_results, [n for n in ("temperature", "seed") if self._is_set(n)]
        if self.do_sample and self.num_beams > 1:
            raise ValueError(
                f"expected num_beams 1 with do_sample, got {self.num_beams}; sample or search with beams"
            )
        if self.do_sample and self.force_words:
            raise ValueError(
                "expected no force_words with do_sample, got both; leave do_sample out, words are searched for"
            )
        if not self.do_sample and given:
            raise ValueError(f"expected do_sample with {given[0]}, got none; add do_sample=True")
        if not self.do_sample and results > self.num_beams:
            raise ValueError(
                f"expected num_return_sequences up to num_beams, got {results} of {self.num_beams}; give "
                "more beams or do_sample=True"
            )
        if self._is_set("length_penalty") and self.num_beams == 1 and not self.force_words:
            raise ValueError(
                f"expected num_beams above 1 with length_penalty {self.length_penalty}, got 1: it compares "
                "outputs; give more beams"
            )

    def _is_set(self, name: str) -> bool:
        return getattr(self, name) != getattr(type(self), name)

    @property
    def num_results(self) -> int:
        return self.num_return_sequences or 1

    @property
    def num_rows(self) -> int:
        """Rows of the batch for one sentence."""
        return self.num_results if self.do_sample else self.num_beams

    @property
    def is_greedy(self) -> bool:
        return self.num_rows == 1 and not self.force_words

    def limit(self, unit: Unit) -> int:
        """Most target tokens for a source, end token included."""
        return self.max_new_tokens or output_limit(len(unit.ids))


def _check_whole(name: str, value: Any, low: int, high: int) -> None:
    if value is None and name != "num_beams":
        return
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ValueError(f"expected {name} from {low} to {high}, got {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _listed(name: str, words: Any) -> list[Any]:
    if hasattr(words, "tolist"):
        words = words.tolist()
    if isinstance(words, str) or not isinstance(words, Sequence):
        raise TypeError(f"expected {name} as a list of words, got {words!r}; write [{words!r}]")
    return list(words)


def _forms(word: Any) -> tuple[str, ...]:
    forms = [word] if isinstance(word, str) else _listed("the forms of one of force_words", word)
    if not forms:
        raise ValueError("expected at least one form of each of force_words, got none")
    return tuple(_plain("force_words", form) for form in forms)


def _plain(name: str, word: Any) -> str:
    if not isinstance(word, str):
        raise TypeError(f"expected {name} as text, got {type(word).__name__}")
    plain = tokenizers.normalize(word)
    if not plain:
        raise ValueError(f"expected {name} that can be seen, got {word!r}; leave it out")
    return plain


class Search:
    """A way of searching with one model's pieces.

    Raises:
        ValueError: a word that is forced and forbidden, or that no pieces spell.
    """

    def __init__(self, decoding: Decoding, tokenizer: Any) -> None:
        self.decoding, self.tokenizer = decoding, tokenizer
        self.words = self.bad_words = None
        self.copies_unknown = True
        if not (decoding.force_words or decoding.bad_words):
            return
        vocabulary = Vocabulary.of(tokenizer)
        bad = decoding.bad_words
        if bad:
            self.bad_words = Watch([(word,) for word in bad], vocabulary)
            # A word with a character that has no piece could only come in through an unknown one.
            self.copies_unknown = max(self.bad_words.fresh) < NEVER
        if decoding.force_words:
            self.words = self._forced(vocabulary)

    def _forced(self, vocabulary: Vocabulary) -> Watch:
        words: list[list[str]] = []
        for given in self.decoding.force_words:
            forms = [f for f in given if not (self.bad_words and self.bad_words.holds_one(f))]
            if not forms:
                raise ValueError(
                    f"expected words that are not both in force_words and bad_words, got {_said(given)} in "
                    "both; leave it out of one"
                )
            words.append(forms)
        watch = Watch(words, vocabulary, unknown_joins=True)
        for forms, fewest in zip(words, watch.fresh, strict=True):
            if fewest >= NEVER:
                raise ValueError(
                    f"expected force_words that the pieces of the model spell, got {_said(forms)}; leave "
                    "it out"
                )
        return watch

    def check_prefix(self, prefix: tuple[int, ...], unit: Unit) -> None:
        """The output for a source can begin with these ids.

        Raises:
            ValueError: it cannot; the message says why.
        """
        limit = self.decoding.limit(unit)
        check_prefix(self.tokenizer, prefix, limit, self._ration(unit))
        if self.bad_words is None:
            return
        state = Watch.START
        for place, id_ in enumerate(prefix):
            state = int(self.bad_words.after(state)[id_])
            at_limit = place == limit - 1
            held = self.bad_words.would_be_held() if at_limit else self.bad_words.is_held()
            if held[state]:
                raise ValueError(
                    f"expected prefix_ids that hold none of bad_words, got one up to place {place}; "
                    "give fewer, or leave the word out"
                )

    def _ration(self, unit: Unit) -> int:
        """How many unknown pieces an output may hold."""
        return unit.ids.count(self.tokenizer.unk_token_id) if self.copies_unknown else 0

    def __call__(
        self,
        stepper: Stepper,
        units: Sequence[Unit],
        input_ids: Tensor,
        mask: Tensor,
        *,
        start_token_id: int,
        prefix: tuple[int, ...] = (),
    ) -> list[list[Hypothesis]]:
        """The outputs of each of `units`, the best first; drawn ones in the order in which they were drawn.

        Args:
            input_ids, mask: of the units, (B, S).
            prefix: what every output begins with.
        """
        asked = self.decoding
        limits = [asked.limit(unit) for unit in units]
        rations = [self._ration(unit) for unit in units]
        settings: dict[str, Any] = {
            "start_token_id": start_token_id,
            "forbidden_token_ids": (self.tokenizer.pad_token_id,),
            "rationed_token_id": self.tokenizer.unk_token_id,
            "prefix": prefix,
            "bad_words": self.bad_words,
        }
        text_of = self._text if asked.num_results > 1 else tuple
        ranking = search.Ranking(
            asked.num_beams, asked.num_results, float(asked.length_penalty), text_of
        )
        if self.words is not None:
            return [
                self._forced_search(
                    stepper,
                    (input_ids[row : row + 1, :size], mask[row : row + 1, :size]),
                    limits[row],
                    ranking=ranking,
                    words=self.words,
                    ration=rations[row],
                    **settings,
                )
                for row, size in enumerate(len(unit.ids) + 1 for unit in units)
            ]
        settings["eos_token_id"] = self.tokenizer.eos_token_id
        if asked.num_beams > 1:
            return search.n_best(
                stepper, input_ids, mask, limits, ranking=ranking, rations=rations, **settings
            )
        draws, each = None, 1
        if asked.do_sample:
            each = asked.num_results
            seeds = [(asked.seed or 0, n, *unit.ids) for unit in units for n in range(each)]
            draws = search.Draws(seeds, float(asked.temperature or 1.0))
        outputs = search.greedy(
            stepper,
            input_ids.repeat_interleave(each, 0),
            mask.repeat_interleave(each, 0),
            [limit for limit in limits for _ in range(each)],
            rations=[ration for ration in rations for _ in range(each)],
            draws=draws,
            **settings,
        )
        return [outputs[i : i + each] for i in range(0, len(outputs), each)]

    def _forced_search(
        self,
        stepper: Stepper,
        source: tuple[Tensor, Tensor],
        limit: int,
        *,
        words: Watch,
        **settings: Any,
    ) -> list[Hypothesis]:
        """Outputs of one sentence that hold all of `force_words`."""
        self._check_fits(words, limit)
        found = constrained.n_best(stepper, *source, limit, words=words, **settings)
        if not found:
            raise ValueError(
                f"expected an output of {limit} pieces with all force_words and no bad_words, found none; "
                "give a larger max_new_tokens, more beams, fewer words or fewer prefix_ids"
            )
        return found

    def _check_fits(self, words: Watch, limit: int) -> None:
        need = int(words.needs()[words.START])
        if need > limit:
            raise ValueError(
                f"expected room for force_words, which need {need} pieces with the end, got a limit of "
                f"{limit}; give a larger max_new_tokens or fewer words"
            )

    def _text(self, ids: Sequence[int]) -> tuple[str, ...]:
        tokens = self.tokenizer.convert_ids_to_tokens(list(ids))
        return Pieces.of(tokens).words


def _said(forms: Sequence[str]) -> str:
    return " or ".join(map(repr, forms))
