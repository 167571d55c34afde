"""Closed-class words by language: what a question carries and a memory does not answer by.

English words are always left out of the content words; those of another language only in a text
that shows at least two different ones, so that "MIT" and "die" stay words in an English note.
"""

from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Lucene's English list and the words that only a question adds (retrieval.md: 4 points of recall).
ENGLISH = _words(
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with what when where which who whom whose why how did do "
    "does done doing has have had having i you he she we me my your his her its our them us am "
    "been being were from about would could should can may might than so any some"
)

# By the name of the Snowball stemmer; accents folded, as the analysis sees them.
FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    "german": _words(
        "der die das den dem des und ist sind war waren ich du er sie es wir ihr mein meine meinen "
        "meinem meiner dein deine deinen sein seine ihre unser unsere nicht ein eine einen einem "
        "einer eines mit auf fur von vom zu zum zur im in am an bei nach aus uber wie was wann wer "
        "wo wem wen warum wieso welche welcher welches welchen hat habe haben hatte mir mich dir "
        "dich uns auch oder aber wird werden kann noch schon wenn dass fuer ueber gibt"
    ),
    "french": _words(
        "le la les un une des du de et est sont je tu il elle nous vous ils mon ma mes ton ta tes "
        "son sa ses notre pas avec pour dans sur au aux que qui quel quelle quels quelles ou quand "
        "comment pourquoi ce cette ces j l d qu c n s m t ai as a ont etait mais"
    ),
    "spanish": _words(
        "el la los las un una unos de del y es son yo tu mi mis su sus no con para por en que "
        "quien cual cuales donde cuando como cuanto este esta estos se me te lo al ha he "
        "tiene pero era fue"
    ),
    "italian": _words(
        "il lo la i gli le un una uno di del della dei e sono io tu mio mia miei mie suo sua non "
        "con per in su al che chi quale quali dove quando come perche questo questa si mi ti ha ho "
        "era ma nel nella"
    ),
    "portuguese": _words(
        "o a os as um uma de do da dos das e sao eu meu minha meus minhas seu sua nao com para por "
        "em no na nos nas que quem qual quais onde quando como este esta se me ao tem era foi mas"
    ),
    "dutch": _words(
        "de het een en is zijn was ik je jij hij zij wij we mijn jouw haar ons onze niet met voor "
        "van op te naar bij aan uit wat wie waar wanneer hoe waarom welke welk dit dat deze die er "
        "heeft heb hebben had maar ook"
    ),
}
