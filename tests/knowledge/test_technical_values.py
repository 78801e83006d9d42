"""Another address, path, version or product in one place is noticed; the same one written otherwise is the same."""

from __future__ import annotations

import itertools

import pytest

from memoryd.knowledge.comparison.comparison import compare
from memoryd.knowledge.comparison.rules import Relation
from memoryd.knowledge.read_statement import Reader

NOTICED = {Relation.CHANGED, Relation.DOUBTFUL}
PAIRS = [
    ("The API base URL is api.v1.example.com", "The API base URL is api.v2.example.com"),
    ("The API base URL is https://api.example.com/v1", "The API base URL is https://api.example.com/v2"),
    ("The database host is db1.internal", "The database host is db2.internal"),
    ("The database host is db-old.acme.net:5432", "The database host is db-new.acme.net:5432"),
    ("The log path is /var/log/app", "The log path is /srv/log/app"),
    ("Logs go to /var/log/app.log", "Logs go to /data/log/app.log"),
    ("we run version 2.4.1", "we run version 2.5.0"),
    ("We run Postgres 14", "We run Postgres 16"),
    ("the build uses Python 3.11", "the build uses Python 3.12"),
    ("The cache lives in Redis", "The cache lives in Memcached"),
    ("The default branch is main", "The default branch is develop"),
    ("The staging server is blue-falcon", "The staging server is red-falcon"),
    ("The service listens on port 8080", "The service listens on port 9090"),
    ("The config file is config/app.yaml", "The config file is config/app.toml"),
    ("The repo lives at github.com/acme/app", "The repo lives at gitlab.com/acme/app"),
    ("Our CI runs on Jenkins", "Our CI runs on GitHub Actions"),
    ("The package manager is npm", "The package manager is pnpm"),
    ("The frontend is written in React", "The frontend is written in Svelte"),
    ("The timeout is 30s", "The timeout is 60s"),
    ("The docker image is acme/app:1.2", "The docker image is acme/app:1.3"),
    ("We deploy to eu-west-1", "We deploy to us-east-1"),
    ("The entry point is src/main.py", "The entry point is app/main.py"),
    ("Node version is v18.2.0", "Node version is v20.1.0"),
    ("The schema is stored in db/schema.sql", "The schema is stored in sql/schema.sql"),
    ("Team standup is at 9:15", "Team standup is at 10:00"),
    ("The shop opens at 9 am", "The shop opens at 8 am"),
    ("Kickoff is at 3pm", "Kickoff is at 4pm"),
    ("Standup starts at 9", "Standup starts at 10"),
    ("My phone number ends in 318", "My phone number ends in 774"),
    ("My phone number ends in 318", "My new phone number ends in 774"),
]
SAME = [
    ("The API base URL is https://api.example.com/v1", "The API base URL is https://api.example.com/v1/"),
    ("The API base URL is api.example.com", "The API's base URL: api.example.com"),
    ("the build uses Python 3.11", "The build uses Python v3.11"),
    ("The log path is /var/log/app", "The log path is `/var/log/app`"),
    ("we run version 2.4.1", "We run version v2.4.1"),
    ("The docker image is acme/app:1.2", 'The Docker image is "acme/app:1.2"'),
    ("The repo lives at github.com/acme/app", "The repo lives at https://github.com/acme/app"),
]
APART = [
    ("The build uses Python 3.11", "The build uses Node 18"),
    ("The museum is big", "The museum is old"),
    ("I ran 14 km", "I ran 16 km"),
    ("We visited python.org", "We visited pypi.org"),
    ("The server is slow", "The server is old"),
    ("The app uses Redis", "The app uses Kafka"),
    ("The team lives in Ghent", "The team lives in Bruges and Ghent"),
    ("I read docs/setup.md", "I read docs/api.md"),
    ("The backup server is db2.internal", "The database server is db1.internal"),
    ("The log is also sent to /var/log/b", "The log is also sent to /var/log/a"),
    ("Anna works on api.py", "Anna works on cli.py"),
    ("The api test is flaky", "The api test is slow"),
    ("We drove 300 km", "We drove 500 km"),
    ("Standup is at 9:15 on Monday", "Standup is at 10:00 on Friday"),
    ("The bus leaves at 9:15", "The bus leaves at 10:15"),
    ("Anna called at 9", "Anna called at 10"),
    ("Team standup is at 9 am", "Team standup is at 9:00"),
    ("Lunch is at noon", "Lunch is at 12"),
    ("Another standup is at 9:15", "Another standup is at 10:00"),
    ("The film ends in tears", "The film ends in 5"),
    ("The tests are green", "The tests are fast"),
]
FRAMES = [
    ("The {} is {}", ["webhook url", "database host", "log path", "config file", "admin endpoint", "docker registry",
                      "staging domain", "api gateway"]),
    ("Our {} is at {}", ["wiki site", "git repository", "artifact bucket", "docs page url"]),
]  # fmt: skip
VALUES = ["https://a.acme.io/v1", "b.acme.io:8443", "/srv/app/x.log", "acme/app:2.1", "eu-central-1", "x1.internal"]


def found(old: str, new: str) -> Relation:
    reader = Reader()
    return compare(reader.read(new), reader.read(old), similarity=0.9).relation


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_another_value_of_a_programmer_is_noticed(old, new):
    assert found(old, new) in NOTICED
    assert found(new, old) in NOTICED


@pytest.mark.parametrize(("old", "new"), SAME)
def test_the_same_value_written_otherwise_is_the_same(old, new):
    assert Relation.SAME is found(old, new)


@pytest.mark.parametrize(("old", "new"), APART)
def test_what_may_both_be_true_is_left_alone(old, new):
    assert Relation.APART is found(old, new)


def test_two_hundred_neighbours_of_one_shape_are_all_noticed():
    neighbours = [
        (frame.format(thing, one), frame.format(thing, other))
        for frame, things in FRAMES
        for thing in things
        for one, other in itertools.permutations(VALUES, 2)
    ]
    assert len(neighbours) > 200
    assert [] == [pair for pair in neighbours if found(*pair) not in NOTICED]
    assert [] == [pair for pair in neighbours if found(pair[0], pair[0].upper().lower()) in NOTICED]
