"""Facts are found in other languages, and where the model cannot read them, no worse than by words alone."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from memoryd.domain.retrieval.question import read_question
from memoryd.domain.retrieval.ranking import ranked
from memoryd.domain.retrieval.relevance import above_floor
from memoryd.embedding.packaged import builtin_encoder
from memoryd.embedding.windows import codes_of, later_windows
from memoryd.index.analysis import analyse, analyse_query, indexed_memory
from memoryd.index.scope import ScopeIndex
from memoryd.knowledge.grammar.function_words import content_of
from memoryd.model.change import Entry
from memoryd.model.memory import Kind, Source
from memoryd.model.query import Filter
from tests.builders import memory
from tests.knowledge.languages import LANGUAGES, WEAK
from tests.test_long_texts import APART, BUILDING, FACTS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOISE = {
    "Chinese": "写一首诗",
    "Japanese": "円周率を計算して",
    "Korean": "프로그램 짜줘",
    "Russian": "Напиши стихи",
    "Arabic": "اكتب قصيدة",
    "German": "Erzähl mir einen lustigen Witz",
}


@pytest.fixture(scope="module")
def encoder():
    return builtin_encoder()


def index_of(texts, encoder, **more) -> ScopeIndex:
    entries = []
    for text, known in zip(texts, encoder.read(texts, query=False), strict=True):
        one = memory(text, **more)
        later = later_windows(text)
        windows = codes_of(np.stack([read.vector for read in encoder.read(later, query=False)])) if later else b""
        entries.append(Entry(one, " ".join(analyse(indexed_memory(one))), known.vector, "f", known.tokens, windows))
    return ScopeIndex([entries], dimensions=encoder.dimensions, fingerprint="f")


@pytest.fixture(scope="module")
def indexes(encoder):
    return {language: index_of([fact for fact, _ in pairs], encoder) for language, pairs in LANGUAGES.items()}


def reciprocal_ranks(index, pairs, encoder, kind=Kind.FACT) -> list[float]:
    """Of each question; 0 where its fact is not found, or is below the floor."""
    found = []
    for fact, asked in pairs:
        embedded = None if encoder is None else encoder.read([asked], query=True)[0]
        question = read_question(asked, embedded, Filter(kinds=frozenset({kind})), NOW, [index])
        of = ranked([index], question)
        order = (-of.place).argsort(kind="stable")
        kept = order[above_floor(of, order)]
        texts = [index.memory_at(int(of.pools[0].rows[n])).content for n in kept]
        found.append(1 / (texts.index(fact) + 1) if fact in texts else 0.0)
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_fact_that_answers_stands_first(language, encoder, indexes):
    ranks = reciprocal_ranks(indexes[language], LANGUAGES[language], encoder)
    assert sum(ranks) / len(ranks) >= 0.9, dict(zip(LANGUAGES[language], ranks, strict=True))


@pytest.mark.parametrize("language", WEAK)
def test_a_model_that_cannot_read_a_script_makes_nothing_worse(language, encoder, indexes):
    pairs = LANGUAGES[language]
    assert all(encoder.read([asked], query=True)[0].known_share < 0.2 for _, asked in pairs)
    with_model = reciprocal_ranks(indexes[language], pairs, encoder)
    assert sum(with_model) >= sum(reciprocal_ranks(indexes[language], pairs, None))


@pytest.mark.parametrize("language", sorted(set(LANGUAGES) - set(WEAK)))
def test_what_the_model_reads_in_pieces_counts_in_full(language, encoder):
    assert all(encoder.read([asked], query=True)[0].known_share == 1.0 for _, asked in LANGUAGES[language])


@pytest.mark.parametrize("language", NOISE)
def test_what_shares_nothing_finds_nothing(language, encoder, indexes):
    index, asked = indexes[language], NOISE[language]
    question = read_question(asked, encoder.read([asked], query=True)[0], Filter(), NOW, [index])
    of = ranked([index], question)
    assert not above_floor(of, (-of.place).argsort(kind="stable")).any()


@pytest.mark.parametrize(
    ("asked", "share"),
    [
        ("Where did I put my passport last week?", 1.0),
        ("wehre do I kep the sapre kee?", 1.0),  # misspelt
        ("typsecript compilation config", 1.0),
        ("mongod", 1.0),
        ("Erzähl mir einen lustigen Witz", 0.0),
        ("Qu'est-ce que je ne mange jamais à Noël ?", 0.5),
        ("Где лежит запасной ключ?", 0.0),
        ("黑猫在哪里睡觉", 0.0),
        ("?", 1.0),
    ],
)
def test_scores_go_by_words_where_the_language_is_not_english(asked, share, encoder):
    question = read_question(asked, encoder.read([asked], query=True)[0], Filter(), NOW, [])
    assert abs(question.judged_share - share) < 0.5, question.judged_share


WORDY = {
    "你能不能帮我回忆一下我之前跟你说过我对什么食物过敏来着？": "我对花生过敏",
    "不好意思，请问你还记得我把备用钥匙放在哪里了吗？": "备用钥匙在门口花盆下面",
    "可以告诉我一下我女儿的钢琴课到底是星期几吗？": "女儿每周四上钢琴课",
    "前に話したと思うんですけど、猫の名前って何でしたっけ？": "うちの猫はモモといいます",
    "すみません、歯医者の予約がいつだったか教えてもらえますか？": "歯医者は来週の金曜日です",
    "혹시 제가 예전에 말씀드렸던 알레르기가 뭐였는지 알려주실 수 있나요?": "저는 새우 알레르기가 있어요",
    "지난번에 얘기한 회의실 비밀번호 좀 다시 알려줄래?": "회의실 비밀번호는 4471이야",
    "ช่วยบอกหน่อยได้ไหมว่าผมแพ้ยาอะไรที่เคยบอกไว้": "ผมแพ้ยาเพนิซิลลิน",
    "จำได้ไหมว่ากุญแจสำรองอยู่ที่ไหน": "กุญแจสำรองอยู่ใต้กระถาง",
    "Скажи, пожалуйста, на какие продукты у меня аллергия, я же тебе говорил": "У меня аллергия на орехи",
    "Не мог бы ты напомнить, где лежат запасные ключи?": "Запасной ключ лежит под ковриком",
    "क्या आप मुझे बता सकते हैं कि मुझे किस चीज़ से एलर्जी है?": "मुझे मूंगफली से एलर्जी है",
    "Kannst du mir bitte noch mal sagen, wogegen ich eigentlich allergisch bin?": "Ich bin allergisch gegen Haselnüsse",
    "Est-ce que tu te souviens du code de la porte de l'immeuble ?": "Le code de l'immeuble est 4471B",
    "¿Me puedes recordar a qué hora sale el tren a Valencia?": "Mi tren a Valencia sale a las 7:40",
    "ज़रा याद दिलाना कि मेरी बहन कहाँ रहती है?": "मेरी बहन पुणे में रहती है",
}
BESIDE = [
    "我每天早上喝咖啡",
    "我在银行工作",
    "私は毎朝コーヒーを飲みます",
    "妹は大阪に住んでいます",
    "저는 은행에서 일해요",
    "매일 아침 커피를 마셔요",
    "ผมดื่มกาแฟทุกเช้า",
    "ผมทำงานที่ธนาคาร",
    "Я работаю в банке",
    "Каждое утро пью кофе",
    "मैं बैंक में काम करता हूँ",
    "Ich arbeite bei einer Bank",
    "Ich bin gegen neun im Büro",
    "Je travaille dans une banque",
    "Je bois un café tous les matins",
    "Trabajo en un banco",
    "Mi hermana vive en Sevilla",
    "मैं हर सुबह कॉफ़ी पीता हूँ",
]


@pytest.mark.parametrize("with_model", [True, False])
@pytest.mark.parametrize("asked", WORDY)
def test_a_polite_question_is_answered_by_what_it_asks_for(asked, with_model, encoder):
    texts = [*BESIDE, *dict.fromkeys(WORDY.values())]
    index = index_of(texts, encoder)
    ranks = reciprocal_ranks(index, [(WORDY[asked], asked)], encoder if with_model else None)
    assert [1.0] == ranks


@pytest.mark.parametrize(
    ("run", "content"),
    [
        ("你能不能告诉我我对什么过敏", ["对", "过敏"]),
        ("首都是哪里", ["首"]),
        ("歯医者の予約がいつだったか", ["歯医者", "予約"]),
        ("りんごが好き", ["りんご", "好"]),
        ("알레르기가", ["알레르기"]),
        ("차를", ["차"]),
        ("제가", []),
        ("我是谁", []),
        ("ผมแพ้ยาอะไร", ["แพ้ยา"]),
    ],
)
def test_what_is_left_of_a_run_without_grammar(run, content):
    assert content == content_of(run)


def test_marks_belong_to_their_letters_and_words_of_other_scripts_have_stems():
    assert ["ถั่", "ว", "ถั่ว"] == analyse("ถั่ว")
    assert analyse("मूंगफली") == analyse_query("मूंगफली")
    assert 1 == len(analyse("मूंगफली"))
    assert analyse_query("ключи") == analyse_query("ключ") == analyse("ключей")
    assert [] == analyse_query("что это")
    assert analyse_query("die notre") == ["die", "notr"]
    assert [] == analyse_query("die notre", is_english=False)


def test_signs_that_are_written_out_are_words_as_long_as_they_are_few():
    assert analyse("محمد صلى الله عليه وسلم") == analyse("محمد \ufdfa")
    for sign in "\ufdfa\u3316\ufdfb":
        assert 0 < len(analyse(f"{sign} " * 64)) == len(analyse(f"{sign} " * 9_000))


def test_a_question_of_others_by_their_own_names_finds_nothing_that_was_said(encoder):
    lines = [
        ("Ann", "I finally fixed the tap in the kitchen"), ("Ben", "Great, was it the seal?"),
        ("Ann", "Yes, it cost me two euros"), ("Ben", "I walked the dog along the canal"),
        ("Ann", "How is Rex doing?"), ("Ben", "He is old but happy"), ("Ann", "My running group meets in the park"),
    ]  # fmt: skip
    entries = []
    for n, (who, text) in enumerate(lines * 10):
        text += f" {n}" * (n >= len(lines))
        one, known = (
            memory(text, kind=Kind.EPISODE, source=Source(who)),
            encoder.read([f"{who}: {text}"], query=False)[0],
        )
        entries.append(Entry(one, " ".join(analyse(indexed_memory(one))), known.vector, "f", known.tokens))
    index = ScopeIndex([entries], dimensions=encoder.dimensions, fingerprint="f")
    for asked in ("What did Ann paint for the auction?", "How long did Ben stay in Peru?", "What is Ann reading?"):
        assert [0.0] == reciprocal_ranks(index, [(lines[0][1], asked)], encoder, Kind.EPISODE), asked
    for asked, at in (("What did Ann fix?", 0), ("Where did Ben walk the dog?", 3)):
        assert reciprocal_ranks(index, [(lines[at][1], asked)], encoder, Kind.EPISODE)[0] > 0, asked


@pytest.mark.parametrize("asked", APART)
def test_words_that_stand_far_apart_find_a_long_text_among_many(asked, encoder):
    texts = [*dict.fromkeys(APART.values()), *(fact for pairs in LANGUAGES.values() for fact, _ in pairs)]
    assert [1.0] == reciprocal_ranks(index_of(texts, encoder), [(APART[asked], asked)], encoder)


def test_a_long_message_of_another_language_is_found_for_what_it_shares_alone(encoder):
    index = index_of([BUILDING * 2, *FACTS], encoder, kind=Kind.EPISODE)
    assert [1.0] == reciprocal_ranks(index, [(BUILDING * 2, "Wer fehlte, Frau Gruber?")], encoder, Kind.EPISODE)
    for asked in ("Wie funktioniert ein Dieselmotor?", "Womit heizt man Gewächshäuser?"):
        assert [0.0] == reciprocal_ranks(index, [(BUILDING * 2, asked)], encoder, Kind.EPISODE)


def test_what_an_apostrophe_cuts_off_is_no_word_of_a_question():
    assert ["choos", "redi"] == analyse_query("Why didn't we choose Redis?")
    assert ["move", "take", "vitamin", "d"] == analyse_query("we’ve moved, and I’d take vitamin D")
    assert ["o", "brien"] == analyse_query("O'Brien's")
    for alone in ("don't", "I don't", "Is it 'Don't'?"):
        assert ["don"] == analyse_query(alone)  # of what would be left out as a whole something is left
    for typed in "'’‘´ʼ＇":
        assert ["pump"] == analyse_query(f"Didn{typed}t the pump?")
        assert ["infiltr"] == analyse_query(f"l{typed}infiltration", is_english=False)
    assert ["guus", "van", "veer"] == analyse_query("Guus van't Veer")
    assert ["work", "サー", "ーバ", "バー"] == analyse_query("サーバーdidn't work")
    assert ["bici"] == analyse_query("Dov'è la bici? Cos'è?", is_english=False)
    assert ["venait", "infiltr"] == analyse_query("D'où venait l’infiltration ?", is_english=False)
    assert ["anno", "vitamin", "d"] == analyse_query("dell'anno, la vitamine D", is_english=False)


def test_grammar_of_other_languages_is_content_in_english():
    assert ["war", "end", "die"] == analyse_query("When does the war end, and did they die?", is_english=True)
    assert ["endet"] == analyse_query("wann endet die oder der war", is_english=False)


WORDS = {
    "東京": "私は東京に住んでいます",
    "犬": "彼女は毎朝公園で犬と散歩するのが好きです",
    "医院": "我的姐姐在上海的一家医院当护士",
    "서울": "저는 서울에 살고 있어요",
    "กรุงเทพ": "ฉันอาศัยอยู่ในกรุงเทพ",
    "живу": "Я живу в Риме",
    "القاهرة": "أنا أسكن في القاهرة",
    "दिल्ली": "मैं दिल्ली में रहता हूँ",
}
PLACES = ("near the harbour", "in the old town", "behind the station", "on the hill", "by the lake")


@pytest.fixture(scope="module")
def large(encoder):
    """Facts in eight scripts among 4,000 in English."""
    facts = list(WORDS.values())
    others = [f"Visitor number {n} left a bicycle {PLACES[n % 5]}" for n in range(4_000)]
    known = encoder.read(facts, query=False)
    entries = [
        Entry(one := memory(text), " ".join(analyse(indexed_memory(one))), read.vector, "f", read.tokens)
        for text, read in zip([*facts, *others], [*known, *[known[0]] * len(others)], strict=True)
    ]
    return ScopeIndex([entries], dimensions=encoder.dimensions, fingerprint="f")


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_any_script_is_found_in_a_large_scope(word, encoder, large):
    assert [1.0] == reciprocal_ranks(large, [(WORDS[word], word)], encoder)


@pytest.mark.parametrize("word", ["猫", "大阪", "Прага", "부산", "大阪 公園"])
def test_words_of_which_no_text_holds_all_find_nothing_in_a_large_scope(word, encoder, large):
    question = read_question(word, encoder.read([word], query=True)[0], Filter(), NOW, [large])
    of = ranked([large], question)
    assert not above_floor(of, (-of.place).argsort(kind="stable")).any()


@pytest.mark.parametrize("language", ["Chinese", "Japanese", "Korean", "Russian"])
def test_words_weigh_alike_whether_or_not_spaces_stand_between_them(language, encoder):
    """The score of a text that holds the one word that is asked for, as in a language with spaces."""
    facts = {
        "Chinese": "我姐姐住在上海",
        "Japanese": "姉は大阪に住む",
        "Korean": "누나는 부산에 살아요",
        "Russian": "Сестра живёт в Риме",
    }
    asked = {"Chinese": "上海", "Japanese": "大阪", "Korean": "부산", "Russian": "Риме"}
    index = index_of([facts[language], *(f"Visitor number {n} left a bicycle" for n in range(60))], encoder)
    question = read_question(asked[language], encoder.read([asked[language]], query=True)[0], Filter(), NOW, [index])
    of = ranked([index], question)
    assert of.pools[0].lexical.max() > 0.4
