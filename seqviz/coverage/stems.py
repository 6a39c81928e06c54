"""Words of English and French, and their stems: lower-cased, without accents and endings."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from snowballstemmer.english_stemmer import EnglishStemmer
from snowballstemmer.french_stemmer import FrenchStemmer

FUNCTION_WORDS = frozenset(
    """
    a an the this that these those such each every either neither any some no none
    i me my mine myself you your yours yourself yourselves he him his himself she her hers herself
    it its itself we us our ours ourselves they them their theirs themselves one ones oneself
    who whom whose which what whatever whoever whichever when where why how whether
    am is are was were be been being have has had having do does did doing done
    will would shall should can could may might must ought cannot let
    not nor and or but if so than then as because although though unless until while whereas since
    of at by for with about against between into through during before after above below to from up down
    in out on off away over under upon onto toward towards within without along across around among amongst
    behind beside besides beyond despite except near per via like unlike throughout according
    there here thus hence therefore however too also just even only yet else ever
    don doesn didn isn aren wasn weren hasn haven hadn won wouldn shan shouldn couldn mustn mightn ain
    ll ve re
    """.split()
)
"""English words whose translation is grammar rather than a word."""

IRREGULAR = {
    form: base
    for base, *forms in (
        line.split()
        for line in """
        become became/begin began begun/bite bit bitten/blow blew blown/break broke broken/bring brought
        build built/burn burnt/buy bought/catch caught/choose chose chosen/come came/deal dealt/dig dug
        draw drew drawn/dream dreamt/drink drank drunk/drive drove driven/eat ate eaten/fall fell fallen
        feed fed/feel felt/fight fought/find found/fly flew flown/forbid forbade forbidden
        forget forgot forgotten/forgive forgave forgiven/freeze froze frozen/get got gotten/give gave given
        go went gone/grow grew grown/hang hung/hear heard/hide hid hidden/hold held/keep kept/know knew known
        lay laid/lead led/learn learnt/leave left/lend lent/lie lay lain/lose lost/make made/mean meant
        meet met/pay paid/ride rode ridden/ring rang rung/rise rose risen/run ran/say said/see saw seen
        seek sought/sell sold/send sent/shake shook shaken/shine shone/shoot shot/show shown/sing sang sung
        sink sank sunk/sit sat/sleep slept/speak spoke spoken/spend spent/stand stood/steal stole stolen
        stick stuck/strike struck/swear swore sworn/sweep swept/swim swam swum/take took taken/teach taught
        tear tore torn/tell told/think thought/throw threw thrown/understand understood/wake woke woken
        wear wore worn/win won/withdraw withdrew withdrawn/write wrote written
        child children/foot feet/man men/tooth teeth/woman women/mouse mice/wife wives/life lives/knife knives
        good better best/bad worse worst
        """.replace("/", "\n").splitlines()
        if line.strip()
    )
    for form in forms
}
"""Forms that no stemmer reduces: they also have the translations of their base."""

_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_THOUSANDS = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?:[\s.,][0-9]{3})+(?![0-9])")
_ELISION = re.compile(r"(?:l|d|j|m|t|s|n|c|qu|jusqu|lorsqu|puisqu|quoiqu)'(?=.)")
_AFTER_HYPHEN = frozenset(
    "je tu il elle on nous vous ils elles ce t y en le la les lui leur moi toi ci là même mêmes".split()
)
_KEPT_WHOLE = frozenset(("rendez-vous",))
_LONGEST_STEMMED = 40
_SHORTEST_STEMMED = 4
PLAIN = str.maketrans({"\u2019": "'", "\u02bc": "'", "\u2010": "-", "\u2011": "-", "\u00ad": None})


def _plain(text: str) -> str:
    """Plain apostrophes and hyphens, composed accents, numbers without thousands separators."""
    text = unicodedata.normalize("NFC", text.translate(PLAIN))
    return _THOUSANDS.sub(lambda found: re.sub(r"\D", "", found[0]), text)


def english_words(text: str) -> list[str]:
    """Words of an English text, as they stand but without ``'s`` and other endings after an apostrophe."""
    words = []
    for word in _WORD.findall(_plain(text)):
        before, apostrophe, after = word.partition("'")
        if before.lower() == "o" and apostrophe:
            words.append(before + after)  # o'clock, O'Neill
        else:
            words.append(before.removesuffix("n") if after in ("t", "T") else before)
    return [word for word in words if word]


def french_words(text: str) -> list[str]:
    """Lower-cased words of a French text; elisions and pronouns after a hyphen stand alone."""
    words = []
    for word in _WORD.findall(_plain(text).lower()):
        while elided := _ELISION.match(word):
            words.append(elided[0][:-1])
            word = word[elided.end() :]
        after = []
        if word not in _KEPT_WHOLE:
            while "-" in word and word.rpartition("-")[2] in _AFTER_HYPHEN:
                word, _, pronoun = word.rpartition("-")
                after.append(pronoun)
        words.append(word)
        words.extend(reversed(after))
    return words


def fold(text: str) -> str:
    """Without accents and ligatures."""
    if text.isascii():
        return text
    text = text.replace("œ", "oe").replace("æ", "ae")
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


_english_stemmer, _french_stemmer = EnglishStemmer(), FrenchStemmer()


@lru_cache(maxsize=100_000)
def english_stem(word: str) -> str:
    word = word.lower().replace("-", "").replace("'", "")
    return fold(
        _english_stemmer.stemWord(word)
        if _SHORTEST_STEMMED <= len(word) <= _LONGEST_STEMMED
        else word
    )


@lru_cache(maxsize=100_000)
def french_stem(word: str) -> str:
    word = word.replace("-", "").replace("'", "")
    return fold(
        _french_stemmer.stemWord(word)
        if _SHORTEST_STEMMED <= len(word) <= _LONGEST_STEMMED
        else word
    )
