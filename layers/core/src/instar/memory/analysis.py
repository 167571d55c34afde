"""Text to tokens, the same for both engines and for questions: what "the same word" means.

Compatibility forms, case, accents and the possessive go; words are stemmed (Porter2; in text that
reads like another language its own stem comes beside it); scripts without spaces become bigrams.
Numbers and identifiers stay whole and come in parts as well, so that `37.759`, `node.js`, a path
or a date is found by all of it or by a piece. Any string is legal; the time is linear.

Common words and single characters of unspaced scripts are kept apart as `loose` tokens: a question
uses them only when it has nothing better ("Who?", "狗").
"""

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from instar.memory.languages import ENGLISH, FUNCTION_WORDS
from instar.memory.ports import Passage

ANALYSIS_VERSION = 1  # goes up whenever the tokens of a text change: indexes are made again
TOKEN_CHARACTERS = 100
CACHED_STEMS = 50_000

# Han with its extensions, kana, hangul; Thai, Lao, Burmese and Khmer have no spaces either.
_UNSPACED = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff"
)
_LETTER = rf"[^\W_{_UNSPACED}]"
_RUN = re.compile(
    rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<symbol>[\u2600-\u27bf\U0001f000-\U0001faff])"
    rf"|{_LETTER}+(?:(?:[._\-/:@&\\+'~]|(?<=\d),(?=\d)){_LETTER}+)*(?P<sign>\+\+|\#)?"
)
_PIECE = re.compile(rf"{_LETTER}+(?:'{_LETTER}+)?")
_INNER = re.compile(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+|\d+")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_VOICING = "\u3099\u309a"
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'", "\u2018": "'", "\uff07": "'"})
_PLAIN = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe",
                        "ı": "i", "ħ": "h"})  # fmt: skip
_SPELLED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_SPELLABLE = re.compile("[äöüøå]")


@dataclass(slots=True)
class Words:
    """The tokens of one text: `content`, and `loose` ones that are searched only on demand.

    `names` are common words written like a name inside a sentence ("May", "Will", "US").
    """

    content: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


def folded(text: str) -> str:
    """Compatibility forms, case and accents away: how two spellings of a word become equal."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).casefold().translate(_PLAIN)
    return unicodedata.normalize("NFC", _unmarked(unicodedata.normalize("NFKD", text)))


def _unmarked(text: str) -> str:
    return "".join(c for c in text if c in _VOICING or unicodedata.category(c)[0] != "M")


def _composed(text: str) -> str:
    """The text with one code point a letter: what cannot be composed loses its marks."""
    if text.isascii():
        return text
    return _unmarked(unicodedata.normalize("NFKC", text))


def word_count(text: str) -> int:
    """How much a text says, in words that are not common ones; unspaced scripts by two."""
    count = 0
    for run in _RUN.finditer(text):
        if run["unspaced"]:
            count += (len(run[0]) + 1) // 2
        elif run[0].lower() not in ENGLISH:
            count += 1
    return count


class Analyzer:
    """Makes tokens; keeps the stems it has computed. May be shared between threads."""

    def __init__(self) -> None:
        self._stems: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def fields(self, passage: Passage) -> Mapping[str, Sequence[str]]:
        """The tokens of a passage by field: body, speaker, context, header, loose."""
        body = self.words(passage.body)
        return {
            "body": body.content,
            "speaker": self.all_words(passage.speaker),
            "context": self.words(passage.context).content,
            "header": self.all_words(passage.header),
            "loose": body.loose,
        }

    def document(self, name: str, text: str) -> list[str]:
        """The tokens of a whole document: its name and what it says."""
        return [*self.words(name).content, *self.words(text).content]

    def question(self, text: str) -> list[str]:
        """The tokens to look for: content words, and common words that are meant.

        Common words count when they look like a name, or when there is nothing else.
        """
        words = self.words(text)
        return [*words.content, *words.names] if words.content else words.loose

    def all_words(self, text: str) -> list[str]:
        """Content and common words: for short texts where each word was chosen (a name)."""
        words = self.words(text)
        common = [token for token in words.loose if not _is_unspaced(token)]
        return [*words.content, *common]

    def words(self, text: str) -> Words:
        """The tokens of a text in its order."""
        words = Words()
        text = _composed(text).translate(_APOSTROPHES)
        language = _language(text)
        shouts = text.isupper()
        at_start = True
        for run in _RUN.finditer(text):
            if run["unspaced"]:
                _add_unspaced(folded(run[0]), words)
                continue
            if run["symbol"]:
                words.content.append(run[0])
                continue
            for raw in _forms(run):
                named = not at_start and raw[0].isupper() and raw != "I" and not shouts
                self._add(raw, language, words, named=named)
            at_start = text[run.end() : run.end() + 1] in {".", "!", "?"}
        return words

    def _add(self, raw: str, language: str, words: Words, *, named: bool) -> None:
        token = folded(raw)
        if token.endswith("'s"):
            token = token[:-2]
        if not token:
            return
        if token in ENGLISH or token in FUNCTION_WORDS.get(language, ()):
            words.loose.append(token)
            if named:
                words.names.append(token)
            return
        stems = [self._stem("english", token)]
        if language:
            stems.append(self._stem(language, token))
        if _SPELLABLE.search(lowered := unicodedata.normalize("NFC", raw.casefold())):
            stems.append(self._stem("english", folded(lowered.translate(_SPELLED))))
        words.content.extend(stem[:TOKEN_CHARACTERS] for stem in dict.fromkeys(stems))

    def _stem(self, language: str, token: str) -> str:
        if not token.isalpha() and not token.replace("'", "").isalpha():
            return token
        if _CYRILLIC.match(token):
            language = "russian"
        key = (language, token)
        known = self._stems.get(key)
        if known is None:
            known = self._compute(language, token)
        return known

    def _compute(self, language: str, token: str) -> str:
        import snowballstemmer  # noqa: PLC0415  # most commands never search

        if len(token) > TOKEN_CHARACTERS:
            return token[:TOKEN_CHARACTERS]
        with self._lock:
            if len(self._stems) >= CACHED_STEMS:
                self._stems.clear()
            stem: str = snowballstemmer.stemmer(language).stemWord(token) or token
            self._stems[language, token] = stem
        return stem


def _language(text: str) -> str:
    """The language, other than English, whose function words the text shows, or ""."""
    if len(text) > 2_000:
        text = text[:2_000]
    seen = set(_PIECE.findall(folded(text)))
    best, marks = "", 1
    for name, words in FUNCTION_WORDS.items():
        found = len((seen & words) - ENGLISH)
        if found > marks:
            best, marks = name, found
    return best if marks > len(seen & ENGLISH - FUNCTION_WORDS.get(best, frozenset())) else ""


def _forms(run: "re.Match[str]") -> Iterator[str]:
    """A run of letters and digits: whole when it is more than a word, then in parts."""
    whole = run[0]
    pieces = _PIECE.findall(whole)
    if whole != pieces[0]:
        yield from _wholes(whole)
    for piece in pieces:
        yield piece
        yield from _inner(piece)


def _wholes(whole: str) -> Iterable[str]:
    """The spellings under which the whole of an identifier may be asked for."""
    if _GROUPED.fullmatch(whole):
        return (whole, whole.replace(",", ""))
    last = re.split(r"[/\\]", whole)[-1]
    stem = last.rpartition(".")[0] if not last.replace(".", "").isdigit() else ""
    spellings = (whole, last, stem)
    return dict.fromkeys(s for s in spellings if s == whole or (s and not s.isalnum()))


def _inner(piece: str) -> Iterable[str]:
    """The parts of a code name (getUserName, ABC123); of an ordinary word none."""
    if piece.isalpha() and (piece.islower() or piece[1:].islower() or piece.isupper()):
        return ()
    if not piece.isascii() or piece.isdigit() or "'" in piece or len(piece) > TOKEN_CHARACTERS:
        return ()
    if _ORDINAL.fullmatch(piece.lower()):
        return ()
    parts = _INNER.findall(piece)
    return [part for part in parts if len(part) > 1 or part.isdigit()] if len(parts) > 1 else ()


def _add_unspaced(run: str, words: Words) -> None:
    if len(run) == 1:
        words.content.append(run)
        return
    words.content.extend(run[i : i + 2] for i in range(len(run) - 1))
    words.loose.extend(run)


def _is_unspaced(token: str) -> bool:
    return bool(re.match(f"[{_UNSPACED}]", token))
