"""The loaded models, their caches and what is known about them: the only state of the page."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from seqviz.translation import Translation, Translator

MODELS = ("rnn", "lstm", "lstm-attention", "transformer")
"""Same as `seqviz.MODEL_NAMES`, which cannot be had without PyTorch; a test holds them equal."""

MAX_CHARACTERS = 5_000
"""Longest text the page takes."""

MAX_BEAMS = 8
"""Widest search the page runs."""


BLEU_SETTINGS = "nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp"
CHRF_SETTINGS = "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no"
"""sacreBLEU's signatures of the sentence scores; a test holds them to what sacreBLEU says."""


class Scored(NamedTuple):
    """A translation of one stage of a passage, scored against the reference of that stage."""

    translation: Translation
    bleu: float
    chrf: float


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
        self._training: dict[str, dict[str, Any]] = {}
        self._scored: dict[tuple[str, str, int], Scored] = {}  # bounded: passages are fixed

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
                from seqviz import translation

                self._translators[name] = translation.load(self.folder / name)
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

    def translate_paragraphs(
        self, name: str, texts: Sequence[str], num_beams: int = 1
    ) -> list[Translation]:
        """Translate the paragraphs of a text in one batch; `seconds` are shares of it."""
        if len(texts) == 1:
            return [self.translate(name, texts[0], num_beams)]
        translator = self.translator(name)
        key = (name, tuple(texts), num_beams)
        with self._locks[name]:
            found = self._cache.get(key)
            if found is None:
                found = translator.translate(list(texts), num_beams, attention=False)
                self._cache.put(key, found)
        return found

    # -- passages

    def scored(self, name: str, passage: str, stage: int) -> Scored:
        """Translation and scores of one stage, greedy.

        Args:
            passage: its id.
            stage: from 0.
        """
        key = (name, passage, stage)
        if key not in self._scored:
            texts = self.passage(passage)["stages"][stage]
            translation = self.translate(name, texts["english"])
            self._scored[key] = _score(translation, texts["french"])
        return self._scored[key]

    def score_path(self, name: str, passage: str) -> None:
        """Translate and score all stages of a passage that are not yet, in one batch."""
        translator = self.translator(name)
        stages = self.passage(passage)["stages"]
        with self._locks[name]:
            missing = [i for i in range(len(stages)) if (name, passage, i) not in self._scored]
            if not missing:
                return
            found = translator.translate([stages[i]["english"] for i in missing], attention=False)
            for i, translation in zip(missing, found, strict=True):
                self._scored[name, passage, i] = _score(translation, stages[i]["french"])

    def known_scores(self, name: str, passage: str) -> list[Scored | None]:
        """Scores of the stages of a passage, None for those not computed yet."""
        count = len(self.passage(passage)["stages"])
        return [self._scored.get((name, passage, stage)) for stage in range(count)]

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

    def passages(self) -> list[dict[str, Any]]:
        """Growing passages: ``id, register, title, stages`` of ``{english, french, chinese}``."""
        return _texts()["passages"]

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
        try:
            return json.loads((self.folder / "report" / f"{name}.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None

    def examples(self) -> list[dict[str, Any]]:
        """Example sentences: ``id, english, french, chinese``."""
        return _texts()["examples"]


@cache
def _texts() -> dict[str, Any]:
    file = Path(__file__).resolve().parents[1] / "texts.json"
    return json.loads(file.read_text(encoding="utf-8"))


def _score(translation: Translation, reference: str) -> Scored:
    from seqviz.evaluation import sentence_scores

    return Scored(translation, **sentence_scores(translation.text, reference))


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
