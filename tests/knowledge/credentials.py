"""Credentials as people and programs write them down, generated: none of them was ever anybody's."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Iterator

LETTERS, LOWER, DIGITS = string.ascii_letters, string.ascii_lowercase, string.digits
ALNUM = LETTERS + DIGITS
HEX = "0123456789abcdef"
WORDS = """
    otter maple thunder velvet canyon pepper rocket island copper meadow falcon harbor winter sunset marble
    forest pirate lemon bridge candle dragon violet summer tiger planet garden silver coffee rabbit mirror
""".split()  # noqa: SIM905
PROSE = (
    "my password is {p}",
    "The guest wifi password is {p}",
    "Password: {p}",
    "the password for the router is {p}",
    "remember that my email password was changed to {p}",
    "my netflix password's {p}",
    "use the password {p} for the NAS",
    "the wifi password is '{p}'",
    "Login is anna, password is {p}.",
    "my laptop passphrase is {p}",
    "Mein Passwort lautet {p}",
    "mot de passe: {p}",
    "la contraseña es {p}",
    "Password (work): {p}",
    "for the bank my password is {p}, please keep it",
    "My new passcode is: {p}",
    "password: {p}\nuser: bob",
    "user: bob\npassword: {p}",
    "**Password:** {p}",
    "Wi-Fi: HomeNet Password: {p}",
)
ENV = (
    "DB_PASSWORD={p}",
    "export PGPASSWORD={p}",
    "POSTGRES_PASSWORD={p}\nPOSTGRES_DB=app",
    "SMTP_PASSWORD='{p}'",
    'REDIS_PASSWORD="{p}"',
    "ADMIN_PASSWORD = {p}",
    "MYSQL_ROOT_PASSWORD={p}\n",
    "# live\nAPP_PASSWORD={p}",
)
DATA = (
    '{{"user": "bob", "password": "{p}"}}',
    '{{"password":"{p}"}}',
    '"dbPassword": "{p}",',
    "password: {p}",
    "  password: '{p}'",
    'password = "{p}"',
    "<password>{p}</password>",
    "spring.datasource.password={p}",
    "Server=db;Database=app;User Id=sa;Password={p};",
    "login bob password {p}",
)
CODE = (
    'password = "{p}"',
    "const password = '{p}';",
    'String password = "{p}";',
    'conn = connect(user="bob", password="{p}")',
    "db.setPassword('{p}')",
    'password: str = "{p}"',
    "CREATE USER bob IDENTIFIED BY '{p}'",
    "mysql --password={p} app",
    'var dbPassword string = "{p}"',
    '$password = "{p}";',
    'passwd := "{p}"',
    "{{ user: 'bob', password: '{p}' }}",
)
URLS = (
    "postgres://bob:{u}@db.internal:5432/app",
    "mongodb+srv://bob:{u}@cluster0.mongodb.net",
    "https://bob:{u}@git.corp.com/x",
    "redis://:{u}@10.0.0.5:6379/0",
    "amqp://bob:{u}@mq:5672",
    "mysql://bob:{u}@db/app",
    "ftp://bob:{u}@files.corp.com",
)
KEYS = (
    "the api key is {k}",
    "API_KEY={k}",
    '"api_key": "{k}"',
    'apiKey: "{k}"',
    "X-Api-Key token: {k}",
    "client secret: {k}",
    "CLIENT_SECRET={k}",
    'const accessToken = "{k}";',
    "AWS_SECRET_ACCESS_KEY={k}",
    "secret_key = '{k}'",
    "my access token is {k}",
    'SECRET_KEY = "{k}"',
    "auth token={k}",
    "JWT_SECRET={k}",
    '"refresh_token": "{k}"',
)
NUMBERS = (
    "my PIN is {n}",
    "The pin code for the garage is {n}",
    "my bank's security code is {n}",
    "The CVV is {n}",
    "PIN: {n}",
)
BARE = (
    "{t}",
    "note to self, it is {t} for now",
    "token: {t}",
    'KEY="{t}"',
    "curl -H 'X: {t}' https://api.corp.com",
    "({t})",
)


class Forge:
    """Makes credentials from a seed."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def some(self, letters: str, count: int) -> str:
        return "".join(self.dice.choice(letters) for _ in range(count))

    def password(self) -> str:
        words = self.dice.sample(WORDS, 3)
        return self.dice.choice(
            [
                words[0] + str(self.dice.randint(10, 99)),
                words[0].capitalize() + str(self.dice.randint(2019, 2026)) + "!",
                words[0].capitalize() + words[1].capitalize() + str(self.dice.randint(1, 9)),
                "-".join(words) + str(self.dice.randint(1, 9)),
                self.some(ALNUM, 9) + self.some(DIGITS, 1) + self.some(LETTERS, 1),
                self.some(LETTERS, 4) + self.some("!#%&*+?", 1) + self.some(ALNUM, 5) + self.some(DIGITS, 1),
                words[0].replace("e", "3").replace("o", "0").replace("a", "4")
                + self.some(DIGITS, 1)
                + self.some("!?#", 1),
            ]
        )

    def address_password(self) -> str:
        return self.some(LETTERS, 6) + self.some(DIGITS, 3) + self.some(LETTERS, 3)

    def key(self) -> str:
        return self.dice.choice(
            [
                self.some(HEX, 32),
                self.some(ALNUM, 40),
                self.some(ALNUM + "-_", 30) + "7q",
                self.some(ALNUM, 8) + "-" + self.some(ALNUM, 12) + "4z",
                self.some(ALNUM + "+/", 39) + "8",
            ]
        )

    def jwt(self) -> str:
        def part(value: object) -> str:
            return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

        claims = {"sub": self.some(LOWER, 9), "iat": self.dice.randint(16 * 10**8, 18 * 10**8)}
        return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(claims)}.{self.some(ALNUM + '-_', 43)}"

    def tokens(self) -> list[str]:
        some = self.some
        return [
            "AKIA" + some(string.ascii_uppercase + DIGITS, 16),
            "ghp_" + some(ALNUM, 36),
            "glpat-" + some(ALNUM, 20),
            "github_pat_" + some(ALNUM, 40),
            "xoxb-" + some(DIGITS, 12) + "-" + some(DIGITS, 12) + "-" + some(ALNUM, 24),
            "https://hooks.slack.com/services/T"
            + some(DIGITS + "ABC", 8)
            + "/B"
            + some(DIGITS + "ABC", 8)
            + "/"
            + some(ALNUM, 24),
            "sk_live_" + some(ALNUM, 24),
            "sk-proj-" + some(ALNUM, 48),
            "sk-ant-api03-" + some(ALNUM, 60),
            "AIza" + some(ALNUM, 35),
            "npm_" + some(ALNUM, 36),
            "pypi-" + some(ALNUM, 70),
            "hf_" + some(ALNUM, 34),
            "SG." + some(ALNUM, 22) + "." + some(ALNUM, 43),
            "SK" + some(HEX, 32),
            "dop_v1_" + some(HEX, 64),
            "M" + some(ALNUM, 23) + "." + some(ALNUM, 6) + "." + some(ALNUM, 27),
            "shpat_" + some(HEX, 32),
            some(DIGITS[1:], 9) + ":AA" + some(ALNUM, 33),
            "Authorization: Bearer " + some(ALNUM, 40),
            self.jwt(),
            "AccountKey=" + some(ALNUM, 86) + "==",
            "AGE-SECRET-KEY-1" + some("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
            "-----BEGIN RSA PRIVATE " + "KEY-----\n" + some(ALNUM + "+/", 64),
            "-----BEGIN OPENSSH PRIVATE " + "KEY-----\n" + some(ALNUM + "+/", 70),
            "ya29." + some(ALNUM, 40),
        ]


def live(seed: int = 7, each: int = 3) -> Iterator[str]:
    """Yield texts that each hold a credential."""
    forge = Forge(seed)
    for template in (*PROSE, *ENV, *DATA, *CODE):
        for _ in range(each):
            yield template.format(p=forge.password())
    for template in URLS:
        for _ in range(each):
            yield template.format(u=forge.address_password())
    for template in KEYS:
        for _ in range(each):
            yield template.format(k=forge.key())
    for template in NUMBERS:
        for _ in range(each):
            yield template.format(n=forge.some(DIGITS[1:], 3 if "CVV" in template else 4))
    for n in range(2 * each):
        for m, token in enumerate(forge.tokens()):
            yield BARE[(n + m) % len(BARE)].format(t=token)
