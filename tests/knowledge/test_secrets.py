"""What is refused as a credential, and what is not."""

from __future__ import annotations

import itertools
import random
import time

import pytest

from memoryd.knowledge.secrets import SecretDetector, passes_luhn
from tests.knowledge.credentials import live

# put together here, so that no scanner of this repository takes them for real ones
CREDENTIALS = {
    "GitHub token": "ghp_" + "a1B2" * 9,
    "GitHub fine-grained token": "github_pat_" + "11ABCDEFG0" * 5,
    "GitLab token": "glpat-" + "a1B2c3D4e5" * 2,
    "OpenAI key": "sk-proj-" + "a1b2c3d4" * 6,
    "Anthropic key": "sk-ant-api03-" + "a1b2c3d4" * 6,
    "Discord token": "MTk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs",
    "bearer token": "Authorization: Bearer " + "a1b2c3d4e5" * 3,
    "password in an address": "postgres://app:" + "hunter22" + "@db.example.com/prod",
    "age key": "AGE-SECRET-KEY-1" + "QPZRY9X8GF" * 6,
    "card": "4111 1111 1111 1111",
    "card without spaces": "5500005555555559",
    "American Express": "3782-822463-10005",
}
JWT = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ."
    "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
)
SAMPLES = [
    "AKIA" + "IOSFODNN7EXAMPLE",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "xoxb-" + "123456789012-123456789012-abcdefghijklmnopqrstuvwx",
    "https://hooks.slack.com/services/" + "T00000000/B00000000/" + "X" * 24,
    JWT,
    "sk_test_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "sk-" + "x" * 40,
    "OPENAI_API_KEY=sk-your-openai-api-key-goes-here",
    "-----BEGIN RSA " + "PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----",
    "A PEM file begins with -----BEGIN OPENSSH " + "PRIVATE KEY-----",
    "Authorization: Bearer YOUR_ACCESS_TOKEN_GOES_HERE",
    "postgres://user:password@host/db",
    "postgres://username:password@localhost:5432/mydatabase",
    "mongodb+srv://<username>:<password>@cluster0.mongodb.net",
    "redis://:${REDIS_PASSWORD}@redis:6379/0",
    "postgresql://postgres:postgres@localhost/test",
    "https://user:a%20secret@host",
    "use the access token = abc123def456",
    "token: abcdef1234567890",
    "password: changeme",
    "Password: [Your Password]",
    "const secret = 'your_jwt_secret';",
    "SECRET_KEY = 'your-secret-key-here'",
    "PASSWORD=********",
    "password: <your password>",
    "password: mysecretpassword123",
    '-d \'{"username": "testuser", "password": "testpassword"}\'',
    "password_hash = '$2b$12$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW'",
    "the hostname is db and the password is ${DB_PASSWORD}",
]
CODE = [
    "password: String",
    "const token = jwt.sign({ id: user.id }, process.env.JWT_SECRET, { expiresIn: '1h' });",
    "interface Login { username: string; password: string }",
    "def login(username: str, password: str | None = None) -> Token:",
    "password = models.CharField(max_length=128)",
    "const { email, password } = req.body;",
    "if (password !== confirmPassword) throw new Error('Passwords do not match');",
    "password: { type: String, required: true, minlength: 8 },",
    "user = authenticate(username=username, password=password)",
    "errors.password = 'Password must be at least 8 characters';",
    '<input type="password" name="password" placeholder="Password" />',
    "private String password;",
    "access_token = create_access_token(identity=user.id)",
    "token = request.headers.get('Authorization').split(' ')[1]",
    "hashed = bcrypt.hashpw(password.encode('utf-8'), bcrypt.gensalt())",
    "api_key = os.getenv('OPENAI_API_KEY')",
    "const apiKey = import.meta.env.VITE_API_KEY;",
    "self.token = self.tokens[self.pos]",
    "token = match.group(0)",
    "class Token: kind: str = 'token'",
    'passwordField.setPlaceholderText("Enter your password")',
    "CREATE TABLE users (id INT, password VARCHAR(255) NOT NULL)",
    "$password = $_POST['password'];",
    "$password = password_hash($_POST['password'], PASSWORD_DEFAULT);",
    'password := r.FormValue("password")',
    "let password = prompt('Password: ');",
    "{% csrf_token %} <label for='password'>Password:</label>",
    "assert response.json()['access_token']",
    "print('Your new password is: ' + password)",
    "AuthToken(token=token_value, expires=3600)",
    'type Secret struct { Token string `json:"token"` }',
    "- name: token\n  valueFrom:\n    secretKeyRef:\n      name: app",
    "SECRET_KEY = secrets.token_hex(32)",
    "password: ${{ secrets.DOCKER_PASSWORD }}",
    "validates :password, length: { minimum: 6 }",
]
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
    "The CVV is 123",
    "client secret: x8!kQ2pLm",
    "my bank's security code is 553311",
    "wifi password hunter22",
    "my pass\u200bword is hunter22",
    "my ｐａｓｓｗｏｒｄ is hunter22",
    "Mein Passwort lautet Sommer2026!",
    "password = hunter22",
    "login: bob, pass: P@ssw0rd",
    "my ssn is 078-05-1120",
    "password: $uperS3cret!",
    "password: Tr0ub4dor(3)",
    "password: user.Name2024!",
    "DB_PASSWORD=%tr0ngPass",
    "password for gmail.com is Hunter22!",
    "my password's hunter22",
    "Password (work): Hunter22!",
    "pay with 4111.1111.1111.1111",
]
ORDINARY = [
    "my password is very long",
    "the password for this laptop is in the safe",
    "The token for this bus is lost",
    "Password reset emails are sent within 5 minutes",
    "The password must have 12 characters, 1 number and 1 symbol",
    "Wrong password: 3 attempts left",
    "Bearer tokens expire after 15 minutes",
    "the api key is rotated every 90 days",
    "a PIN has 4 digits",
    "our secret is OAuth2 with PKCE",
    "the access token is a JWT signed with RS256",
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


SEED = "timber orbit velvet canyon mosquito pledge hollow saddle ginger trumpet arctic noble"


@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_token_is_refused_alone_and_inside_a_sentence(detector, name):
    assert detector.find(CREDENTIALS[name])
    assert detector.find(f"note to self, it is {CREDENTIALS[name]} for now")


@pytest.mark.parametrize("text", TOLD)
def test_a_password_told_in_a_sentence_is_refused(detector, text):
    assert detector.find(text)


@pytest.mark.parametrize("seed", range(4))
def test_no_generated_credential_is_missed(detector, seed):
    texts = list(live(seed, each=5))

    assert len(texts) >= 500
    assert [] == [text for text in texts if not detector.find(text)]


@pytest.mark.parametrize("text", [*SAMPLES, *CODE])
def test_samples_and_code_pass(detector, text):
    assert "" == detector.find(text)


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
        "mysql -p " * 900,
        "login is a " * 740,
        "curl -u a" * 900,
    ],
    ids=range(12),
)
def test_no_text_of_8_kb_holds_the_detector_up(detector, text):
    began = time.process_time()
    detector.find(text)
    assert time.process_time() - began < 1  # it takes milliseconds; where a pattern explodes, minutes


@pytest.mark.parametrize(
    ("text", "live"),
    [
        ("mysql -u root -p'Wq8#kd92Lm' shop", True),
        ("run mysqldump -h db -u backup -pWq8kd92Lm shop > dump.sql", True),
        ("sshpass -p 'kd92Lm!x' ssh root@host", True),
        ("redis-cli -h cache -a Wq8kd92Lm ping", True),
        ("curl -u admin:qX7pLw2zRt99 https://host/api", True),
        ("docker login -u bot -p qX7pLw2zRt99 registry", True),
        ("smbclient //nas/share -U anna%qX7pLw2z", True),
        ("The login for the router is admin / qX7!pLw2zR", True),
        ("the credentials are admin:qX7pLw2zR", True),
        ("mysql -u root -p shop", False),
        ("curl -u $USER:$TOKEN https://host/api", False),
        ("curl -u user:password https://host/api", False),
        ("docker login -u bot -p $PASSWORD1", False),
        ("the login page is at /login2", False),
        ("my login is anna and I use it on 3 machines", False),
        ("login: http://localhost:3000/a1", False),
        ("credentials: src/config/auth2.py", False),
        ("The login page is auth.example.com/oauth2", False),
        ("The login tests are tests/test_login2.py", False),
        ("My login is anna@example.com / qX7pLw2", True),
        ("use qX7!pLw2zR as the password for the admin account", True),
        ("“Tr0ub4dor&Zebra!9” is my new password", True),
        ("KeePassXC-2.7 is my password manager", False),
        ("use argon2id as the password hash", False),
        ("Das Passwort für den Server lautet Qx7!mRt2Lp", True),
        ("La contraseña del wifi es Luna#4471verde", True),
        ("Le mot de passe du NAS : Luna#4471verte", True),
        ("Das Passwort für den Server ist sicher", False),
        (f"seed phrase of my wallet: {SEED}", True),
        (f'mnemonic = "{SEED}"', True),
        ("my recovery phrase is written down behind the painting near their kitchen window where nobody looks", False),
        ("Telegram bot token 6718203954:AAHqX7pLw2zRt99bQmK4vN8sYd3fGh5jLQ-", True),
        ("https://api.telegram.org/bot6718203954:AAHqX7pLw2zRt99bQmK4vN8sYd3fGh5jLQk/getMe", True),
        ("curl --user-agent:Mozilla5 example.com", False),
        ("Balang Mountain Pass (elevation 4,480 m): 2–8°C, cloudy", False),
        ("redis-cli -h cache7 ping", False),
    ],
)
def test_a_password_that_a_tool_takes_without_a_word_for_it(detector, text, live):
    assert live is bool(detector([text]))


UUIDS_LIKE_CARDS = [
    "ca5a4804-0899-4775-9ce1-aec1106114b5",
    "125b4871-9936-4257-8f8c-2da2ed6f68a5",
    "3def4600-1209-4174-8c11-df709e342a8b",
    "bc3b4548-8174-4428-8d62-a26ce3ad4e5f",
    "091f4823-5397-4605-8bcc-177a779425a4",
]


def test_a_uuid_is_no_card(detector):
    dice = random.Random(11)
    digits = ["".join(dice.choices("0123456789", k=n)) for _ in range(20_000) for n in (8, 4, 4, 4, 12)]
    plain = ["-".join(digits[n : n + 5]) for n in range(0, len(digits), 5)]  # of figures alone: the worst there are
    assert not [text for text in (*UUIDS_LIKE_CARDS, *plain) if detector([f"the order {text} has come"])]


def test_a_number_inside_a_name_is_no_card(detector):
    assert detector(["pay with 4012888888881881 today"])
    assert not detector(["the ticket AB4012888888881881 is open"])


def test_luhn():
    assert passes_luhn("4111111111111111")
    assert not passes_luhn("4111111111111112")
