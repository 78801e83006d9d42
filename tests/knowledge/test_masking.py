"""What is masked in messages: credentials, and nothing that stands beside them."""

from __future__ import annotations

import base64
import json
import random
import time

import pytest

from memoryd.knowledge.secrets import SecretDetector


@pytest.fixture(scope="module")
def detector():
    return SecretDetector()


MADE_UP = ["Sommer2024", "hunter2", "Tz8kLmQ2x9", "dragon99", "Vq7pLx2Zk9!"]
PHRASES = [
    "password: {}, thanks", "my email password: {}, can you log in?", "Login: maria, Passwort: {}",
    "I set the password to {}", "I changed the wifi password to {} yesterday", "the db password? its {}",
    "Q: password?\nA: {}", "| password | {} |", "пароль: {}", "пароль {}", "密码: {}", "密码：{}", "密码是{}",
    "パスワード：{}", "비밀번호: {}", "كلمة السر: {}", "κωδικός: {}", "hasło: {}", "şifre: {}", "wachtwoord: {}",
]  # fmt: skip
HARMLESS = [
    "I forgot the password to Netflix", "password: sha256 hashed", "the password to my heart", "password: min8 chars",
    "My password manager is Bitwarden", "function login(user: string, password: string2, x: number)",
    "change the password to a passphrase", "reset the password to default", "| password | username |",
    "password? I forgot it", "Q: password?\nA: I don't know", "密码是什么", "密码太短", "パスワードを忘れました",
    "пароль забыл", "basic auth is deprecated", "Basic understanding of things",
    "Authorization: Basic aGVsbG8gd29ybGQ=",
    "hasło jest złe", "wachtwoord vergeten?", "LS0tLS1CRUdJTi" + base64.b64encode(b"BEGIN CERTIFICATE" * 9).decode(),
]  # fmt: skip


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_password_is_masked_however_it_is_told_and_what_stands_beside_it_is_kept(detector, phrase):
    for password in MADE_UP:
        masked = detector.mask(phrase.format(password))
        assert password.rstrip("!") not in masked
        assert "[masked]" in masked


@pytest.mark.parametrize("text", HARMLESS)
def test_what_looks_like_a_credential_and_is_none_stays(detector, text):
    assert text == detector.mask(text)


def private_key(random_bytes: bytes) -> str:
    """A file as OpenSSH writes it: long runs of one letter are a part of the format."""
    body = base64.b64encode(b"openssh-key-v1\0" + b"\0" * 12 + random_bytes + b"\0" * 30).decode()
    name = "OPENSSH " + "PRIVATE KEY"
    return f"-----BEGIN {name}-----\n{body}\n-----END {name}-----"


@pytest.mark.parametrize("wrapped", ["{}", "```\n{}\n```", "here it is: {} thanks"])
def test_a_private_key_is_masked_whole(detector, wrapped):
    for seed in range(20):
        key = private_key(random.Random(seed).randbytes(200))
        assert wrapped.format("[masked]") == detector.mask(wrapped.format(key))
        coded = base64.b64encode(key.encode()).decode()
        assert "client-key-data: [masked]" == detector.mask(f"client-key-data: {coded}")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Login\n\nPassword:\n\nhunter22x\n\nThanks", "Login\n\nPassword:\n\n[masked]\n\nThanks"),
        ("a\nthe password is\nTz8kLmQ2x9\nb", "a\nthe password is\n[masked]\nb"),
    ],
)
def test_a_credential_over_several_lines_is_masked_alone(detector, text, masked):
    assert masked == detector.mask(text)
    long = "notes of the meeting\n" * 100
    assert f"{long}{masked}\n{long}" == detector.mask(f"{long}{text}\n{long}")


def test_no_word_is_cut_where_a_long_text_is_looked_at_in_pieces(detector):
    for word in ("order 00004539578763621486", "topspin: 4821", "id 45395787636214864539578"):
        for at in (15_340, 15_350, 15_355, 15_360, 16_370, 16_380, 16_384):
            text = ("log line of the build " * 2000)[:at] + f" {word} " + "and so on " * 500
            assert text == detector.mask(text)


TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("told", "masked"),
    [
        (f'{{"a": "{TOKEN}", "a":"x"}}', '{"a": "[masked]", "a":"x"}'),
        (f'{{"n": 0.10000000000000000555,  "e":1e999, "t": ["{TOKEN}"]}}',
         '{"n": 0.10000000000000000555,  "e":1e999, "t": ["[masked]"]}'),
        ('{"x": " {\\"t\\": \\"\\\\u0067' + TOKEN[1:] + '\\"}"}', '{"x": " {\\"t\\": \\"[masked]\\"}"}'),
        (json.dumps(json.dumps({"t": TOKEN})), json.dumps(json.dumps({"t": "[masked]"}))),
        ('{"args":["mysql","-u","root","--password","Vq7pLx2Zk9!"]}',
         '{"args":["mysql","-u","root","--password","[masked]"]}'),
        ('{"label":"Password","text":"Vq7pLx2Zk9!"}', '{"label":"Password","text":"[masked]"}'),
        ('{"key":"password","value":"Vq7pLx2Zk9!"}', '{"key":"password","value":"[masked]"}'),
        ('{"password":{"type":"plain","value":"Vq7pLx2Zk9!"}}', '{"password":{"type":"plain","value":"[masked]"}}'),
        ('{"pin":{"value":4821}, "port":{"value":5432}}', '{"pin":{"value":"[masked]"}, "port":{"value":5432}}'),
        ('{"tokens":[{"type":"name","value":"getUserById2"}]}', '{"tokens":[{"type":"name","value":"getUserById2"}]}'),
        ('{"name":"password","at":{"line":3},"value":"hunter22x"}',
         '{"name":"password","at":{"line":3},"value":"[masked]"}'),
        ('{"password":{"type":"string","description":"of the user"}}',
         '{"password":{"type":"string","description":"of the user"}}'),
        ('{"password":{"text":"Minimum 8 characters"},"email":{"value":"a@b.example"}}',
         '{"password":{"text":"Minimum 8 characters"},"email":{"value":"a@b.example"}}'),
        ('{"user":"svc","password":"Vq7pLx2Zk9!", "\\ud800": null}',
         '{"user":"svc","password":"[masked]", "\\ud800": null}'),
        ('{"pin": 4821, "port": 5432}', '{"pin": "[masked]", "port": 5432}'),
        ("no JSON: " + TOKEN, "no JSON: [masked]"),
        ('{"password":"hunter22x ' + TOKEN + '"}', '{"password":"[masked]"}'),
        ('{"note":"\\ud83d password: hunter22x"}', '{"note":"\\ud83d password: [masked]"}'),
        ('{"path": "/usr/bin", "key": "id", "value": "hunter2"}',
         '{"path": "/usr/bin", "key": "id", "value": "hunter2"}'),
    ],
)  # fmt: skip
def test_json_is_masked_where_it_stands_and_all_else_is_kept_letter_by_letter(detector, told, masked):
    assert masked == detector.mask_json(told)


def test_json_of_a_megabyte_is_looked_through_in_time(detector):
    steps = [
        {"tool": "search", "input": f"query {n}", "output": "lorem ipsum dolor sit amet " * 6} for n in range(4000)
    ]
    text = json.dumps({"steps": steps})
    began = time.process_time()
    assert text == detector.mask_json(text)
    assert time.process_time() - began < 10  # a quadratic reading takes minutes
