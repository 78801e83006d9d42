"""What is said without saying anything: thanks, greetings, assent, laughter, signs. By lists, never by length."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from memoryd.knowledge.lexicon.stems import word_set

__all__ = ["forget_fillers", "is_filler"]

_WORDS = word_set("""
    ok okay okey k kk kay yes yeah yep yup ya yay no nope nah sure fine right alright great nice cool good perfect
    awesome amazing lovely excellent wonderful super thanks thank thx ty tysm cheers please welcome np hi hello hey
    heya hiya yo bye goodbye cya lol lmao rofl haha hahaha hehe hm hmm hmmm mm mhm uh um oh ah aha wow oops yikes
    indeed exactly absolutely definitely agreed really
    danke dankeschön bitte ja nein doch gut prima klar genau hallo servus moin tschüss tschüs ciao gern gerne
    alles sehr schön vielen dank guten tag abend nacht stimmt passt
    merci oui non bonjour bonsoir salut coucou bien très parfait accord d'accord beaucoup revoir au
    gracias sí si hola vale bueno adiós adios claro perfecto muchas buenos buenas días tardes noches genial
    grazie sì prego bene va perfetto buongiorno buonasera certo molte
    obrigado obrigada sim não nao olá ola tchau tudo bem beleza valeu muito bom dia boa tarde noite
    wkwk wkwkwk makasih terima kasih iya oke sip siap
    да нет спасибо привет пока хорошо ладно ок окей угу ага здравствуйте пожалуйста понятно отлично супер большое
    شكرا نعم لا مرحبا حسنا تمام أهلا السلام عليكم وعليكم جزيلا طيب
    네 넵 응 아니 아니요 감사합니다 고마워 안녕 안녕하세요 좋아 좋아요
    はい いいえ うん ううん ありがとう ありがとうございます
    こんにちは おはよう こんばんは さようなら 了解 わかりました なるほど
    好 好的 好吧 嗯 嗯嗯 谢谢 謝謝 是 是的 不 不是 对 對 你好 再见 再見 哦 哈哈 哈哈哈 收到 明白 行 可以 没事 沒事
""")  # noqa: RUF001  Cyrillic letters among them
_PHRASES = ({
    "thank you very much", "thank you so much", "thank you", "thanks a lot", "good morning", "good afternoon",
    "good evening", "good night", "got it", "see you later", "see you soon", "see you", "sounds good", "sounds great",
    "no problem", "of course", "all right", "very good", "very nice", "that is great", "that's great", "you're welcome",
    "i see", "i agree", "i know", "me too", "let me see", "one moment", "good to know", "no worries", "not really",
    "makes sense", "have a nice day", "take care", "what's up", "how are you", "how are you doing", "wie geht's",
    "comment ça va", "ça va", "qué tal", "come stai", "tudo bem",
})  # fmt: skip
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SAID = re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, _PHRASES), key=len, reverse=True))})\b")
MOST_WORDS = 6  # a longer row of such words says something after all: "no that is really not all right"
MOST_CHARACTERS = 60


@lru_cache(maxsize=4096)
def is_filler(text: str) -> bool:
    """Whether a text says nothing that could be remembered or asked: "ok, thanks!", "👍", "haha". "I'm vegan" does."""
    if len(text) > MOST_CHARACTERS:
        return False
    said = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    words = _WORD.findall(said)
    if len(words) > MOST_WORDS:
        return False
    rest = _SAID.sub(" ", " ".join(words)).split()
    return all(word in _WORDS or _is_drawn_out(word) for word in rest)


def _is_drawn_out(word: str) -> bool:
    """Whether a word is one of these with its letters drawn out: "yesss", "hahahaha"."""
    short = re.sub(r"(.)\1+", r"\1", word)
    return short in _WORDS or bool(re.fullmatch(r"(?:ha|he|hi|ja|wk|[ㅋㅎ\u110f\u1112]|哈){2,}h?", word))


def forget_fillers() -> None:
    """Drop the texts that were looked at lately."""
    is_filler.cache_clear()
