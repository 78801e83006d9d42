"""Every key is known, checked, and overridden by its environment variable."""

from __future__ import annotations

import pytest

from memoryd.daemon.config import Config
from memoryd.daemon.config_file import load_config
from memoryd.daemon.config_key import ConfigError


def load(folder, text, **env):
    path = folder / "memoryd.toml"
    path.write_text(text)
    return load_config(path, env)


def test_without_a_file_every_key_has_its_default(folder):
    assert Config() == load_config(None, {}) == load(folder, "")


def test_a_file_and_the_environment_set_keys_and_the_environment_wins(folder):
    text = '[store]\nmin_free_bytes = 5\n[embedding]\nprovider = "none"\ntimeout_s = 3\n'
    config = load(folder, text, MEMORYD_STORE_MIN_FREE_BYTES="7", MEMORYD_MEMORY_AUTO_GC="no", UNRELATED="x")
    assert (7, "none", 3.0, False) == (
        config.store.min_free_bytes, config.embedding.provider, config.embedding.timeout_s, config.memory.auto_gc
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[stor]\n", "unknown section [stor]; did you mean store?"),
        ("[store]\npaht = 'x'\n", "unknown key store.paht; did you mean path?"),
        ("[store]\nzzz = 'x'\n", "known are engine, path, ledger, memory_limit_bytes, min_free_bytes"),
        ("store = 3\n", "must be a section"),
        ("[store]\nmin_free_bytes = 'much'\n", "must be a whole number, not 'much'"),
        ("[store]\nmin_free_bytes = 1.5\n", "must be a whole number"),
        ("[store]\nmin_free_bytes = -1\n", "at least 0"),
        ("[store]\nmemory_limit_bytes = 67108864\n", "at least 134217728"),
        ("[memory]\ndelete_grace_days = 1e300\n", "at most 36525"),
        ("[store]\npath = ' '\n", "store.path is empty"),
        ("[store]\nmin_free_bytes = true\n", "must be a whole number"),
        ("[embedding]\ntimeout_s = nan\n", "at least 0.1"),
        ("[memory]\nauto_gc = 1\n", "must be true or false"),
        ("[daemon]\nlog_level = 'loud'\n", "one of debug, info, warning, error"),
        ("[agents.a.memory]\nenabeld = false\n", "did you mean enabled"),
        ("[agents.a.memory]\nenabled = 0\n", "must be true or false"),
        ("[agents.a.mind]\nenabled = false\n", "known are memory, search, context, conversation"),
        ("agents = 3\n", "[agents.NAME.memory]"),
        ("[store\n", "is not TOML"),
    ],
)
def test_a_mistake_names_the_key_and_the_way_out(folder, text, words):
    with pytest.raises(ConfigError) as caught:
        load(folder, text)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MEMORYD_MEMORY_AUTO_GC", "maybe"),
        ("MEMORYD_STORE_MIN_FREE_BYTES", "1.5"),
        ("MEMORYD_DAEMON_LOG_FORMAT", "x"),
        ("MEMORYD_STORE_PTH", "x"),
        ("MEMORYD_SERACH_FLOOR", "0.5"),
        ("MEMORYD_STORES_PATH", "/x"),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(name, value):
    with pytest.raises(ConfigError, match=name):
        load_config(None, {name: value})


@pytest.mark.parametrize(
    "name",
    [
        "MEMORYD_SERVICE_HOST",
        "MEMORYD_SERVICE_PORT",
        "MEMORYD_PORT",
        "MEMORYD_PORT_7443_TCP_ADDR",
        "MEMORYD_HOME",
        "MEMORY_STORE_PATH",
        "MEMORY_SEARCH_FLOOR",
        "MY_MEMORYD_STORE_PATH",
        "MEMORY_ENDPOINT",
    ],
)
def test_variables_that_others_set_for_a_service_of_this_name_are_let_be(name):
    assert load_config(None, {}) == load_config(None, {name: "tcp://127.0.0.1:7443"})


def test_an_agent_can_be_switched_off(folder):
    text = "[agents.a.memory]\nenabled = false\n[agents.b.memory]\nenabled = true\n"
    config = load(folder, text)
    assert [False, True, True] == [config.of_agent(name).memory.enabled for name in ("a", "b", "c")]


def test_an_agent_has_limits_of_its_own(folder):
    config = load(folder, "[context]\nmax_tokens = 900\n[agents.a.context]\nmax_memories = 3\n")
    assert (3, 900) == (config.of_agent("a").context.max_memories, config.of_agent("a").context.max_tokens)
    assert 10 == config.of_agent("b").context.max_memories


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[agents.a.memory]\nenabeld = true", "agents.a.memory.enabeld; did you mean enabled"),
        ("[agents.a.memory]\nenabled = 1", "memory.enabled must be true or false"),
        ("[agents.a.memory]\ndedup_cosine = 0.5", "agents.a.memory.dedup_cosine"),
        ("[agents.a.contxt]\nmax_tokens = 5", r"\[agents.a.contxt\]; did you mean context"),
        ("[agents.a.context]\nmax_tokens = 0", "at least 1"),
        ("[agents]\na = 1", "agents.a must have sections"),
    ],
)
def test_a_mistake_about_an_agent_is_named(folder, text, named):
    with pytest.raises(ConfigError, match=named):
        load(folder, text)


def test_a_home_in_a_path_is_replaced_or_refused_and_never_a_folder_called_tilde(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    text = '[store]\npath = "~/m/x.duckdb"\n[embedding]\nprovider = "~/model"\n[audit]\npath = "{data_dir}/~audit"\n'
    config = load(folder, text, MEMORYD_DAEMON_SOCKET="~/s")
    assert (f"{folder}/m/x.duckdb", f"{folder}/model", "{data_dir}/~audit", f"{folder}/s") == (
        config.store.path, config.embedding.provider, config.audit.path, config.daemon.socket
    )  # fmt: skip
    with pytest.raises(ConfigError, match=r"store.path: '~nobody-here/x' begins with a home directory that is not"):
        load(folder, '[store]\npath = "~nobody-here/x"\n')
