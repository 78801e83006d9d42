"""Facts and questions about them in languages other than English, each question with the fact that answers it."""

from __future__ import annotations

__all__ = ["LANGUAGES", "WEAK"]

Pairs = list[tuple[str, str]]

LANGUAGES: dict[str, Pairs] = {
    "Chinese": [
        ("我最喜欢的颜色是蓝色", "我喜欢什么颜色？"),
        ("我对花生过敏，不能吃花生酱", "我对什么过敏？"),
        ("我妹妹住在上海浦东新区", "我妹妹住在哪里？"),
        ("我每周三晚上去游泳馆游泳", "我什么时候去游泳？"),
        ("我们公司的会议室在三楼", "会议室在几楼？"),
        ("爸爸的生日是十月五号", "爸爸的生日是哪天？"),
        ("我的护照放在书房的抽屉里", "护照放在哪里？"),
        ("去年夏天我们去了云南旅行", "去年夏天去了哪里旅行？"),
        ("小猫的名字叫豆豆", "小猫叫什么名字？"),
        ("我在一家银行做软件工程师", "我做什么工作？"),
        ("周末我常常和朋友打羽毛球", "周末和朋友打什么球？"),
        ("医生说我要少喝咖啡多喝水", "医生让我少喝什么？"),
    ],
    "Japanese": [
        ("好きな食べ物はラーメンです", "好きな食べ物は何ですか"),
        ("妹は大阪の大学に通っています", "妹はどこの大学に通っていますか"),
        ("毎週土曜日にテニスをします", "土曜日に何をしますか"),
        ("卵アレルギーがあります", "何のアレルギーがありますか"),
        ("猫の名前はタマです", "猫の名前は何ですか"),
        ("パスポートは机の引き出しにあります", "パスポートはどこにありますか"),
        ("父の誕生日は三月十日です", "父の誕生日はいつですか"),
        ("去年の冬に北海道へ旅行しました", "去年の冬にどこへ旅行しましたか"),
        ("会社は渋谷駅の近くにあります", "会社はどこの駅の近くですか"),
        ("コーヒーより紅茶のほうが好きです", "コーヒーと紅茶のどちらが好きですか"),
    ],
    "Korean": [
        ("제일 좋아하는 색깔은 파란색이에요", "좋아하는 색깔이 뭐예요?"),
        ("여동생은 부산에 살아요", "여동생은 어디에 살아요?"),
        ("땅콩 알레르기가 있어요", "무슨 알레르기가 있어요?"),
        ("매주 화요일에 수영을 해요", "화요일에 뭐 해요?"),
        ("고양이 이름은 나비예요", "고양이 이름이 뭐예요?"),
        ("여권은 책상 서랍에 있어요", "여권은 어디에 있어요?"),
        ("작년 여름에 제주도에 갔어요", "작년 여름에 어디에 갔어요?"),
        ("회사는 강남역 근처에 있어요", "회사는 어느 역 근처예요?"),
    ],
    "Russian": [
        ("Мой любимый цвет — синий", "Какой мой любимый цвет?"),
        ("У меня аллергия на арахис", "На что у меня аллергия?"),
        ("Моя сестра живёт в Казани", "Где живёт моя сестра?"),
        ("По средам я хожу в бассейн", "Когда я хожу в бассейн?"),
        ("Нашу кошку зовут Мурка", "Как зовут нашу кошку?"),
        ("Паспорт лежит в ящике стола", "Где лежит паспорт?"),
        ("Прошлым летом мы ездили на Байкал", "Куда мы ездили прошлым летом?"),
        ("Я работаю инженером на заводе", "Кем я работаю?"),
    ],
    "Arabic": [
        ("لوني المفضل هو الأزرق", "ما هو لوني المفضل؟"),
        ("أختي تسكن في القاهرة", "أين تسكن أختي؟"),
        ("عندي حساسية من الفول السوداني", "عندي حساسية من ماذا؟"),
        ("اسم قطتي مشمش", "ما اسم قطتي؟"),
        ("جواز السفر في درج المكتب", "أين جواز السفر؟"),
        ("أعمل مهندسا في مصنع", "أين أعمل مهندسا؟"),
    ],
    "German": [
        ("Meine Lieblingsfarbe ist Blau", "Was ist meine Lieblingsfarbe?"),
        ("Ich bin gegen Erdnüsse allergisch", "Wogegen bin ich allergisch?"),
        ("Die Haustürschlüssel liegen beim Nachbarn", "Wo liegen die Haustürschlüssel?"),
        ("Unsere Krankenversicherung ist die Techniker", "Welche Krankenversicherung haben wir?"),
        ("Der Donaudampfer fährt um neun Uhr", "Wann fährt der Donaudampfer?"),
        ("Meine Schwester wohnt in Köln", "Wo wohnt meine Schwester?"),
        ("Mittwochs gehe ich schwimmen", "Wann gehe ich schwimmen?"),
        ("Das Auto ist in der Tiefgarage geparkt", "Wo ist das Auto geparkt?"),
    ],
    "French": [
        ("Ma couleur préférée est le bleu", "Quelle est ma couleur préférée ?"),
        ("Je suis allergique aux arachides", "À quoi suis-je allergique ?"),
        ("Ma sœur habite à Besançon", "Où habite ma sœur ?"),
        ("Le mercredi je vais à la piscine", "Quand est-ce que je vais à la piscine ?"),
        ("Le chat s'appelle Noël", "Comment s'appelle le chat ?"),
        ("Mon médecin est le docteur Lefèvre", "Qui est mon médecin ?"),
        ("L'été dernier nous étions en Bretagne", "Où étions-nous l'été dernier ?"),
        ("La réunion a été déplacée à l'étage", "Où a été déplacée la réunion ?"),
    ],
}  # fmt: skip

WEAK = ("Chinese", "Japanese", "Korean", "Russian", "Arabic")
"""Of which the packaged model reads letters at the most."""
