"""What is refused as a credential, and what is not."""

from __future__ import annotations

import itertools
import time

import pytest

from memoryd.knowledge.secrets import SecretDetector, passes_luhn

# put together here, so that no scanner of this repository takes them for real ones
CREDENTIALS = {
    "AWS key": "AKIA" + "IOSFODNN7EXAMPLE",
    "GitHub token": "ghp_" + "a1B2" * 9,
    "GitHub fine-grained token": "github_pat_" + "11ABCDEFG0" * 5,
    "GitLab token": "glpat-" + "a1B2c3D4e5" * 2,
    "Slack bot token": "xoxb-" + "123456789012-123456789012-abcdefghijklmnopqrstuvwx",
    "Slack webhook": "https://hooks.slack.com/services/" + "T00000000/B00000000/" + "X" * 24,
    "JSON web token": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "RSA key": "-----BEGIN RSA " + "PRIVATE KEY-----",
    "OpenSSH key": "-----BEGIN OPENSSH " + "PRIVATE KEY-----",
    "PGP key": "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----",
    "Stripe key": "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "OpenAI key": "sk-proj-" + "a1b2c3d4" * 6,
    "Anthropic key": "sk-ant-api03-" + "a1b2c3d4" * 6,
    "Google key": "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "npm token": "npm_" + "abcdEFGH1234" * 3,
    "PyPI token": "pypi-" + "AgEIcHlwaS5vcmc" + "a" * 60,
    "Hugging Face token": "hf_" + "abcdefghij" * 4,
    "SendGrid key": "SG." + "a" * 22 + "." + "b" * 43,
    "Twilio key": "SK" + "0123456789abcdef" * 2,
    "Discord token": "MTk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs",
    "Azure key": "AccountKey=" + "a" * 86 + "==",
    "DigitalOcean token": "dop_v1_" + "0123456789abcdef" * 4,
    "Telegram token": "123456789:AA" + "a1B2c3D4e5F" * 3,
    "bearer token": "Authorization: Bearer " + "a1b2c3d4e5" * 3,
    "password in an address": "postgres://app:" + "hunter22" + "@db.example.com/prod",
    "age key": "AGE-SECRET-KEY-1" + "QPZRY9X8GF" * 6,
    "card": "4111 1111 1111 1111",
    "card without spaces": "5500005555555559",
    "American Express": "3782-822463-10005",
}
TOLD = [
    "my password is hunter22",
    "The guest wifi password is bluebird77",
    "my password is swordfish",
    "Password: Tr0ub4dor&3",
    "the api key is 9f8e7d6c5b4a",
    "my PIN is 4821",
    "The pin code for the garage is 90210",
    "the passphrase is 'correct horse battery staple'",
    "my email password was changed to Winter2026!",
    "use the access token = abc123def456",
    "The CVV is 123",
    "client secret: x8!kQ2pLm",
    "my bank's security code is 553311",
    "wifi password hunter22",
    "my pass\u200bword is hunter22",
    "my ｐａｓｓｗｏｒｄ is hunter22",
    "Mein Passwort lautet Sommer2026!",
    "password = hunter22",
    "password: 'request.form'",
    "login: bob, pass: P@ssw0rd",
    "my ssn is 078-05-1120",
    "password: $uperS3cret!",
    "password: Tr0ub4dor(3)",
    "password: user.Name2024!",
    "DB_PASSWORD=%tr0ngPass",
    "password: superpassword",
    "password for gmail.com is Hunter22!",
    "my password's hunter22",
    "Password (work): Hunter22!",
    "token: abcdef1234567890",
    "pay with 4111.1111.1111.1111",
    "xoxb-" + "abcdefghij-klmnopqrst",
]
ORDINARY = [
    "my password is very long",
    "the password is stored in the safe",
    "my password is strong",
    "I forgot my password again",
    "the key is under the doormat",
    "the secret to good bread is patience",
    "my favorite token is the dog in Monopoly",
    "The pin is on the map",
    "my phone number is +49 151 23456789",
    "the tracking number is 00340434161094042557",
    "ISBN 978-3-16-148410-0 is on my list",
    "my IBAN starts with DE89",
    "the meeting code is on the invitation",
    "my locker is number 12 and the gym opens at 6:30",
    "commit 9f8e7d6c5b4a3f2e1d0c broke the build",
    "the order 4111-1111-1111-1112 arrived",
    "I study key signatures and pass exams",
    "Sarah's password is different from mine",
    "the secret is out",
    "visit https://example.com/path?q=1",
    "my uuid is 123e4567-e89b-12d3-a456-426614174000",
    "password = request.form['password']",
    "password = db.Column(db.String(120), nullable=False)",
    "print(f'password: {new_user.password_hash}')",
    "export PASSWORD=${DB_PASSWORD} before you start",
    "token = os.environ.get('SLACK_TOKEN', 'xoxb-your-slack-token')",
    "each password sha256 hashed",
    "password managers like 1Password",
    "the password reset-flow is broken",
    "Das Passwort ist falsch",
    "boarding pass: gate B12",
    "The team discussed password escrow",
    "We worked on a password estimate",
    "Read about password escalation",
    "I had password issues",
    "I reset my password https://example.com/reset",
    "We protect every password AES-256 encrypted",
    "Emailed the password bob@example.com",
    "require password 12-character minimum",
    "The network uses password WPA2-PSK mode",
    "call 555-12-3456 about the social event",
    "**Password Hashing**: never store it plainly",
    "const apiKey = 'my_api_key';",
    "connect(user='app', password='your-password')",
]


@pytest.fixture(scope="module")
def detector():
    return SecretDetector()


@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_token_is_refused_alone_and_inside_a_sentence(detector, name):
    assert detector.find(CREDENTIALS[name])
    assert detector.find(f"note to self, it is {CREDENTIALS[name]} for now")


@pytest.mark.parametrize("text", TOLD)
def test_a_password_told_in_a_sentence_is_refused(detector, text):
    assert detector.find(text)


@pytest.mark.parametrize("text", ORDINARY)
def test_what_only_speaks_of_secrets_passes(detector, text):
    assert "" == detector.find(text)


def ordinary_sentences():
    """Ordinary statements by the thousand: who, does what, what, when; with the figures and names of everyday life."""
    who = ["I", "My wife Sarah", "My brother Tom", "Our team", "The user", "Anna's mother", "My boss", "The landlord"]
    does = [
        "likes", "ordered", "moved", "keeps", "remembers", "booked", "lost", "bought", "finished reading",
        "is looking for",
    ]  # fmt: skip
    what = [
        "the key to the old house", "two tickets for flight LH1234", "a token of appreciation", "room 4021 on floor 12",
        "the passport office on 5th Avenue", "item number 8841-2201-7", "invoice 2026-000417", "a password manager",
        "10 km runs at 5:45", "the secret garden at 52.5200, 13.4050", "a Bosch GSR 12V-15 drill", "version 3.11.7",
        "the book with ISBN 9783161484100", "the pin board in the kitchen", "a 1,250.00 EUR deposit",
        "the phrase 'break a leg'", "the train ICE 1601 to Berlin", "a new access card for the gym",
        "the code of conduct", "room for 16 GB of RAM", "the keys, the phone and the bag", "a pass for the museum",
        "order 302-1234567-7654321", "the number +1 555 0100 200", "the commit 4f2a9c1", "a map of 221B Baker Street",
    ]  # fmt: skip
    when = ["", " on Monday", " since 2019", " at 9:30", " for two weeks", " every morning", " because of the move"]
    for parts in itertools.product(who, does, what, when):
        yield f"{parts[0]} {parts[1]} {parts[2]}{parts[3]}."


def test_ordinary_sentences_are_hardly_ever_refused(detector):
    sentences = list(ordinary_sentences())

    refused = [sentence for sentence in sentences if detector.find(sentence)]

    assert len(sentences) >= 2000
    assert len(refused) < len(sentences) * 0.001, refused[:5]


@pytest.mark.parametrize(
    "text",
    [
        "my password" + " " * 8000 + "is fine",
        "a." * 4096,
        "password " * 900,
        "token:" * 1300,
        "pass" + "\t \n" * 2000,
        "password for " + "a." * 4000,
        "1 " * 4000,
        "(" * 8000,
        "key=" + "{" * 8000,
    ],
    ids=range(9),
)
def test_no_text_of_8_kb_holds_the_detector_up(detector, text):
    began = time.process_time()
    detector.find(text)
    assert time.process_time() - began < 1  # it takes milliseconds; where a pattern explodes, minutes


def test_luhn():
    assert passes_luhn("4111111111111111")
    assert not passes_luhn("4111111111111112")
