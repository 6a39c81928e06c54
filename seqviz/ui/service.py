"""The loaded models, their caches and what is known about them: the only state of the page."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqviz import handwritten
from seqviz.constants import MODEL_NAMES
from seqviz.report import Report
from seqviz.ui import growth
from seqviz.ui.growth import Growth, Stage
from seqviz.ui.outcomes import Output

if TYPE_CHECKING:
    from seqviz.coverage import Lexicon, Word
    from seqviz.lab.gradient import Reach
    from seqviz.looking.saliency import Saliency
    from seqviz.translating.notes import Note
    from seqviz.translating.result import Candidate, Translation
    from seqviz.translating.translator import Translator

MODELS = MODEL_NAMES

MAX_BEAMS = 8
"""Widest search the page runs."""


BLEU_SETTINGS = "nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp"
CHRF_SETTINGS = "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no"
"""sacreBLEU's signatures of the sentence scores; a test holds them to what sacreBLEU says."""


def counted(marks: Sequence[Word]) -> tuple[int, int] | None:
    """Words found and words judged; None where nothing was judged."""
    judged = [word.found for word in marks if word.found is not None]
    return (sum(judged), len(judged)) if judged else None


class Service:
    """Models loaded once, in a thread, and used by every visitor.

    Args:
        folder: holds one folder for each of `MODELS`; None takes the shipped ones.
        translators: one for each of `MODELS`, to use instead of loading them.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        translators: Mapping[str, Translator] | None = None,
    ) -> None:
        here = Path(__file__).resolve().parents[1]
        shipped = [path for path in (here / "models", here.parent / "models") if path.is_dir()]
        self.folder = Path(folder) if folder else (shipped or [here / "models"])[0]
        self._translators: dict[str, Translator] = dict(translators or {})
        self._errors: dict[str, str] = {}
        self._loaded = {name: threading.Event() for name in MODELS}
        self._locks = {name: threading.Lock() for name in MODELS}
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        for name in self._translators:
            self._loaded[name].set()
        self._cache = _Cache(1024)
        self._attention_cache = _Cache(24)
        self._candidates = _Cache(24)
        self._saliency = _Cache(24)
        self._reach = _Cache(64)
        self._training: dict[str, dict[str, Any]] = {}
        self._reports: dict[
            str, tuple[tuple[int, int], Any]
        ] = {}  # read again when the file changes
        self._made = _Cache(1024)
        self._stored: dict[tuple[str, str], list[Output] | None] = {}
        self._lexicon: Lexicon | None = None
        self._lexicon_read = threading.Event()
        self._latest = _Cache(1024)

    # -- loading

    def start(self) -> None:
        """Begin to load, in a thread; does nothing if that has begun."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._load, name="load models", daemon=True)
                self._thread.start()

    def _load(self) -> None:
        for name in MODELS:
            if name in self._translators:
                continue
            try:
                from seqviz.translating import loading

                self._translators[name] = loading.load(self.folder / name)
            except Exception as error:
                self._errors[name] = str(error) or type(error).__name__
            self._loaded[name].set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until every model is loaded or has failed. Starts loading if nobody has."""
        self.start()
        return all(event.wait(timeout) for event in self._loaded.values())

    @property
    def ready(self) -> bool:
        """All models are loaded or have failed."""
        return all(event.is_set() for event in self._loaded.values())

    @property
    def errors(self) -> dict[str, str]:
        """What went wrong, by model; empty while all is well."""
        return dict(self._errors)

    def loaded(self, name: str) -> bool:
        """This model is loaded or has failed."""
        return self._loaded[name].is_set()

    def translator(self, name: str) -> Translator:
        """A loaded model; waits for it.

        Raises:
            KeyError: no model of this name.
            RuntimeError: it could not be loaded; the message says why.
        """
        if name not in self._loaded:
            raise KeyError(f"expected one of {', '.join(MODELS)}, got {name!r}")
        self.start()
        self._loaded[name].wait()
        if name in self._errors:
            raise RuntimeError(self._errors[name])
        return self._translators[name]

    # -- translating

    def translate(
        self, name: str, text: str, num_beams: int = 1, *, attention: bool = False
    ) -> Translation:
        """Translate a text, or find it in the cache.

        Args:
            attention: keep attention weights, for `Translation.attention`.
        """
        translator = self.translator(name)
        key = (name, text, num_beams)
        with self._locks[name]:
            found = self._attention_cache.get(key) or (None if attention else self._cache.get(key))
            if found is None:
                found = translator.translate(text, num_beams, attention=attention)
                (self._attention_cache if attention else self._cache).put(key, found)
        return found

    def translate_from(
        self,
        name: str,
        text: str,
        prefix: Sequence[int],
        num_beams: int = 1,
        *,
        attention: bool = False,
    ) -> Translation:
        """Translate a text that is read at once with a given beginning, or find it in the cache.

        Raises:
            ValueError: see `Translator.translate_from`.
        """
        if not prefix:
            return self.translate(name, text, num_beams, attention=attention)
        translator = self.translator(name)
        key = (name, text, num_beams, tuple(prefix))
        with self._locks[name]:
            found = self._attention_cache.get(key) or (None if attention else self._cache.get(key))
            if found is None:
                found = translator.translate_from(text, prefix, num_beams, attention=attention)
                (self._attention_cache if attention else self._cache).put(key, found)
        return found

    def candidates(
        self, name: str, translation: Translation, count: int = 5
    ) -> tuple[tuple[Candidate, ...], ...]:
        """The most probable pieces at each step of a translation; see `Translator.candidates`."""
        translator = self.translator(name)
        key = (name, translation.source, translation.target_ids, count)
        return self._remembered(
            self._candidates, key, lambda: translator.candidates(translation, count)
        )

    def saliency(self, name: str, translation: Translation) -> Saliency:
        """What each token of a translation depends on; see `seqviz.saliency`."""
        from seqviz.looking.saliency import saliency

        translator = self.translator(name)
        key = (name, translation.source, translation.target_ids)
        return self._remembered(self._saliency, key, lambda: saliency(translator, translation))

    def reach(self, name: str, text: str) -> Reach:
        """Which words of a text still reach the end states of a model; see `seqviz.lab.gradient`.

        Raises:
            ValueError: an empty text, or one over the caps of what is read at once.
        """
        from seqviz.lab import gradient

        translator = self.translator(name)
        return self._remembered(self._reach, (name, text), lambda: gradient.reach(translator, text))

    def _remembered(self, cache: _Cache, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What `key` stands for, from the cache or made now; the model's name comes first in a key."""
        with self._locks[key[0]]:
            found = cache.get(key)
            if found is None:
                found = make()
                cache.put(key, found)
        return found

    def translate_paragraphs(
        self, name: str, texts: Sequence[str], num_beams: int = 1
    ) -> list[Translation]:
        """Translate the paragraphs of a text in one batch; `seconds` are shares of it."""
        if len(texts) == 1:
            return [self.translate(name, texts[0], num_beams)]
        translator = self.translator(name)
        key = (name, tuple(texts), num_beams)
        return self._remembered(
            self._cache, key, lambda: translator.translate(list(texts), num_beams, attention=False)
        )

    def _translate_each(self, name: str, texts: Sequence[str]) -> dict[str, Translation]:
        """Greedy translations of texts that have nothing to do with each other, by text.

        Those not in the cache are made in one batch, which changes none of them.
        """
        translator = self.translator(name)
        with self._locks[name]:
            found = {text: self._cache.get((name, text, 1)) for text in texts}
            missing = [text for text, translation in found.items() if translation is None]
            if missing:
                made = translator.translate(missing, attention=False)
                for text, translation in zip(missing, made, strict=True):
                    self._cache.put((name, text, 1), translation)
                    found[text] = translation
        return {text: translation for text, translation in found.items() if translation}

    # -- growing texts

    def growth(self, id_: str) -> Growth:
        """A hand-written text by its id.

        Raises:
            KeyError: no such text; the message lists them.
        """
        everyday = {text["id"]: text for text in self.everyday()}
        if isinstance(id_, str) and id_ in everyday:
            return growth.everyday(everyday[id_])
        return growth.passage(self.passage(id_))

    def output(self, name: str, stage: Stage) -> Output:
        """Greedy translation of one stage, made here."""
        return self._outputs(name, [stage])[0]

    def outputs(self, name: str, text: Growth) -> list[Output]:
        """All stages of a growing text; those not known in one batch."""
        return self.stored(name, text) or self._outputs(name, text.stages)

    def known(self, name: str, text: Growth) -> list[Output | None]:
        """The stages of a growing text, None for those that are not known yet."""
        stored = self.stored(name, text)
        return list(stored) if stored else [self._made.get((name, one)) for one in text.stages]

    def stored(self, name: str, text: Growth) -> list[Output] | None:
        """Outputs of an everyday text that were written down for the weights that are shown."""
        key = (name, text.id)
        if key not in self._stored:
            outputs = (self.opening() or {}).get("outputs", {}).get(text.id, {}).get(name)
            self._stored[key] = outputs and [
                self._judged(stage, output, outputs["alone"][: len(stage.sentences)])
                for stage, output in zip(text.stages, outputs["stages"], strict=True)
            ]
        return self._stored[key]

    def opening(self) -> dict[str, Any] | None:
        """``everyday.json``: the texts that open the page; None where it is damaged or not of the weights shown."""
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            report = self.report("everyday")
            if report is None or report["schema"] != 1:
                return None
            trainings = {name: self.training(name) for name in MODELS}
            if Report.of(report).stale(trainings, handwritten.everyday_digest()):
                return None
            if not isinstance(report["reads"], bool) or not 0 <= report["mean"] <= 1:
                return None
            self.growth(report["first"])
            whole = all(_is_whole(text, report) for text in self.everyday())
            return report if whole else None
        return None

    def _outputs(self, name: str, stages: Sequence[Stage]) -> list[Output]:
        made = {stage: self._made.get((name, stage)) for stage in stages}
        missing = [stage for stage, output in made.items() if output is None]
        if missing:
            texts = [text for stage in missing for text in (stage.english, *stage.sentences)]
            translated = self._translate_each(name, texts)
            for stage in missing:
                alone = [translated[sentence].text for sentence in stage.sentences]
                whole = translated[stage.english]
                made[stage] = self._judged(stage, whole.text, alone, whole.notes)
                self._made.put((name, stage), made[stage])
        return [output for stage in stages if (output := made[stage])]

    def judged(
        self, name: str, stage: Stage, made: Sequence[Translation], num_beams: int
    ) -> Output:
        """A visitor's text, translated as a whole, beside its sentences alone.

        Args:
            made: translations of its paragraphs.
        """
        alone = [self.translate(name, s, num_beams).text for s in stage.sentences]
        notes = [note for translation in made for note in translation.notes]
        return self._judged(stage, "\n\n".join(one.text for one in made), alone, notes)

    def _judged(
        self, stage: Stage, text: str, alone: Sequence[str], notes: Sequence[Note] | None = None
    ) -> Output:
        """An output with the marks of its words.

        Args:
            alone: the output of each sentence of the stage alone.
            notes: None takes those that the text itself tells.
        """
        from seqviz.text_languages import LanguagePair
        from seqviz.translating.output import oddities

        if notes is None:
            pair = LanguagePair.of("en", "fr")
            notes = oddities(stage.english, text, text.split(), pair, None)
        pairs = zip(stage.sentences, alone, strict=True)
        marks = [word for sentence, output in pairs for word in self.marks(sentence, output)]
        return Output(
            text,
            self.marks(stage.english, text),
            tuple(marks),
            " ".join(filter(None, alone)) if len(stage.sentences) > 1 else None,
            tuple(notes),
        )

    # -- words found

    def lexicon(self) -> Lexicon | None:
        """The table of likely translations; None where it is missing or damaged."""
        if not self._lexicon_read.is_set():
            file = self.folder / "lexicon.json"
            if file.is_file():
                from seqviz import coverage

                with suppress(coverage.LexiconError):  # the page says that words are not marked
                    self._lexicon = coverage.Lexicon.load(file)
            self._lexicon_read.set()
        return self._lexicon

    def marks(self, source: str, output: str) -> tuple[Word, ...]:
        """For each English word, whether the output has it; empty without a lexicon."""
        lexicon = self.lexicon()
        if lexicon is None:
            return ()
        from seqviz import coverage

        return tuple(coverage.mark(source, output, lexicon))

    def meanings(self, french_word: str) -> tuple[str, ...]:
        """English meanings of a French word; empty without a lexicon."""
        lexicon = self.lexicon()
        return lexicon.meanings(french_word) if lexicon else ()

    # -- visitors

    def begin(self, session: str | None) -> object:
        """Remember that this visitor's growing text is drawn anew; see `is_latest`."""
        token = object()
        self._latest.put(session, token)
        return token

    def is_latest(self, session: str | None, token: object) -> bool:
        """Nothing newer was begun for this visitor, so what `token` draws may still be shown."""
        return self._latest.get(session) is token

    # -- what is known without PyTorch

    def training(self, name: str) -> dict[str, Any]:
        """What ``training.json`` of a model says; empty where it cannot be read."""
        if name not in self._training:
            file = self.folder / name / "training.json"
            try:
                self._training[name] = json.loads(file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                self._training[name] = {}
        return self._training[name]

    def everyday(self) -> list[dict[str, Any]]:
        """Everyday texts: ``id, title, sentences`` of ``{english, french, chinese}``."""
        return handwritten.texts("everyday")

    def passages(self) -> list[dict[str, Any]]:
        """Growing passages: ``id, register, title, stages`` of ``{english, french, chinese}``."""
        return handwritten.texts("passages")

    def passage(self, id_: str) -> dict[str, Any]:
        """A passage by its id.

        Raises:
            KeyError: no such passage; the message lists them.
        """
        found = {passage["id"]: passage for passage in self.passages()}
        if not isinstance(id_, str) or id_ not in found:
            raise KeyError(f"expected a passage, one of {', '.join(found)}; got {id_!r:.40}")
        return found[id_]

    def report(self, name: str) -> dict[str, Any] | None:
        """A report of ``models/report``, such as "length"; None where it is not there."""
        file = self.folder / "report" / f"{name}.json"
        try:
            found = file.stat()
            state = (found.st_mtime_ns, found.st_size)
            if self._reports.get(name, (None, None))[0] != state:
                self._reports[name] = (state, json.loads(file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        return self._reports[name][1]

    def best_head(self, name: str, reading: str = "predicting") -> tuple[int, int] | None:
        """Layer and head of cross-attention closest to alignments by hand, counted from 0.

        None where that was not measured on the weights that are loaded.
        """
        found = (self._alignment(name) or {}).get("heads", {}).get(name)
        if found is None or len(found["aer"]) * len(found["aer"][0]) == 1:
            return None
        chosen = found["best"][reading]
        return chosen["layer"], chosen["head"]

    def alignment_error_rates(
        self, name: str, of: str = "predicting"
    ) -> tuple[float, float] | None:
        """Error rates, 0 to 1, against alignments by hand: of this model, and of a plain diagonal.

        Args:
            of: a reading, of the head that `best_head` names; or "saliency", of gradient × input.
        """
        results = (self._alignment(name) or {}).get("results", {})
        key = f"{name}:{of}"
        if key not in results or "diagonal" not in results:
            return None
        return results[key]["aer"]["value"], results["diagonal"]["aer"]["value"]

    def _alignment(self, name: str) -> dict[str, Any] | None:
        report = self.report("attention")
        same = report is not None and Report.of(report).is_of(name, self.training(name))
        return report if same else None

    def examples(self) -> list[dict[str, Any]]:
        """Example sentences: ``id, english, french, chinese``."""
        return handwritten.texts("examples")


def _is_whole(text: Mapping[str, Any], report: Mapping[str, Any]) -> bool:
    """Every model's outputs of an everyday text are there, one a sentence and one a stage."""
    found, outputs = report["found"][text["id"]], report["outputs"][text["id"]]
    rows = [outputs[name][kind] for name in MODELS for kind in ("alone", "stages")]
    count = len(text["sentences"])
    return found["found"] <= found["judged"] and all(len(row) == count for row in rows)


class _Cache:
    """The last `size` values used; safe between threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Any, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any) -> Any:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Any, value: Any) -> None:
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)
