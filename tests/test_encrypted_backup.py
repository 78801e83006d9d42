"""Chains that are encrypted lead to every transaction, for those who hold an identity, and tell others nothing."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from functools import partial
from pathlib import Path

import pyrage
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from memory_client import MessageDraft

from memoryd.backup import shipper as shipping
from memoryd.backup.chain import BLOCK_BYTES, MANIFEST, BackupDamaged, Chain, digest_of
from memoryd.backup.encryption import Encryption, ledger_key, read_identities, read_recipients
from memoryd.backup.folder import chains_of, point_of, restore
from memoryd.backup.refusal import NotForUs
from memoryd.backup.shipper import Shipper
from memoryd.errors import StartupError
from memoryd.store.refusal import StoreRefused
from tests.builders import MEMORY_LIMIT
from tests.support import running, short_folder, until
from tests.test_backup import SPOOL, checkpoint, digests, digests_of, shipped
from tests.test_snapshot import memoryd, reaches, rewrite

SAID = "heliotrope"


def identity_in(folder: Path, name: str = "key.txt") -> tuple[Path, str]:
    """Write an identity to a file as age-keygen does; return it and its recipient."""
    identity = pyrage.x25519.Identity.generate()
    path = folder / name
    path.write_text(f"# created: 2026-11-29\n# public key: {identity.to_public()}\n{identity}\n")
    return path, str(identity.to_public())


def encryption_in(folder: Path, *recipients: str) -> Encryption:
    return Encryption(recipients, folder / "data" / "memory.duckdb.chain-key", os.urandom)


def restored(chains, folder: Path, key: Path | None, **wanted) -> Path:
    chain, point = point_of(chains, **wanted)
    target = folder / "restored"
    shutil.rmtree(target, ignore_errors=True)
    chain.unlock(None if key is None else read_identities([key]))
    restore(
        chain, point, target, chain.folder.parent / "ledger", memory_limit_bytes=MEMORY_LIMIT,
        random_bytes=os.urandom, closes_sandboxes=True,
    )  # fmt: skip
    return target


async def write(client, *, shipper, rng, states) -> None:
    store = client.ports.store
    for n in range(25):
        if rng.random() < 0.6:
            await client.add(f"note {n} of {rng.random()} {SAID}")
        else:
            await client.append(f"t{n % 3}", [MessageDraft(content=f"{SAID} {n} " * rng.randrange(1, 60))])
        states[store._writer.commit_seq] = await digests(store)
        if rng.random() < 0.2:
            await checkpoint(store)
        if rng.random() < 0.3:
            await shipper.step()


async def test_every_transaction_is_reached_and_no_file_says_what_is_stored(folder, monkeypatch):
    proofs, prove = [], shipping._prove
    monkeypatch.setattr(shipping, "_prove", lambda *words: proofs.append(words[-1]) or prove(*words))
    key, recipient = identity_in(folder)
    other, _ = identity_in(folder, "other.txt")
    rng, states = random.Random(7), {}
    for _ in range(2):
        async with shipped(folder, encryption_in(folder, recipient)) as (client, shipper):
            await shipper.step()
            await write(client, shipper=shipper, rng=rng, states=states)
            await shipper.prove(MEMORY_LIMIT)
    store = next((folder / "backup").iterdir())
    chains = chains_of(store)
    assert [recipient] == chains[-1].recipients
    assert 1 == len(chains), "the second start goes on with the chain of the first"
    held = b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())
    database = next(folder.rglob("*.duckdb")).read_bytes()
    assert len(held) > 4 * BLOCK_BYTES
    for told in (SAID, "alice", "working_memories"):  # not shorter: four bytes come about by chance
        assert told.encode() not in held, told
        assert told == SAID or told.encode() in database, told
    assert not (store / "ledger" / "key").exists()
    assert sum(Chain.read(chains[0].folder).check()) > 0, "it is checked without a key"
    reached = sorted({point.commit_seq for point in chains[0].points} & states.keys())
    assert len(reached) > 0.8 * len(states)
    for seq in rng.sample(reached, 8):
        target = restored(chains_of(store), folder, key, transaction=seq)
        assert states[seq] == digests_of(target / "memory.duckdb"), seq
    assert [folder / "data"] * 2 == proofs, "what is in clear does not get to the folder of backups"
    key_there = (folder / "data" / "ledger" / "key").read_bytes()
    assert key_there == (target / "ledger" / "key").read_bytes()
    for wrong, said in ((other, "encrypted for others"), (None, "--identity")):
        with pytest.raises(NotForUs, match=said):
            restored(chains_of(store), folder, wrong)
        assert not (folder / "restored").exists()


async def test_a_part_that_was_put_in_place_of_another_is_refused_by_its_name(folder):
    key, recipient = identity_in(folder)
    async with shipped(folder, encryption_in(folder, recipient)) as (client, shipper):
        await shipper.step()
        await client.add("I like tea")
        await checkpoint(client.ports.store)
        await shipper.step()
    chain = chains_of(next((folder / "backup").iterdir()))[0]
    image = chain.folder / chain.images[0].name
    data, part = bytearray(image.read_bytes()), BLOCK_BYTES + 16
    data[:part] = data[part : 2 * part]
    image.write_bytes(data)
    with pytest.raises(BackupDamaged, match="block 0 of the database is not what was written"):
        sum(chain.check())
    manifest = chain.folder / MANIFEST  # and now one who can write to the folder lets the manifest say so

    def lies(line):
        if line.get("image") == 1:
            line["blocks"][0][1] = digest_of(bytes(data[:part]))
        return line

    rewrite(manifest, lies)
    assert sum(Chain.read(chain.folder).check()) > 0
    with pytest.raises(BackupDamaged, match=r"image-000001 is damaged: block 0 is not what was encrypted"):
        restored(chains_of(chain.folder.parent), folder, key)
    assert not (folder / "restored").exists()


async def test_a_chain_is_begun_where_the_key_is_lost_or_the_recipients_change(folder):
    (_, first), (_, second) = identity_in(folder, "1"), identity_in(folder, "2")

    async def ship(encryption: Encryption | None) -> list[bool]:
        async with shipped(folder, encryption) as (client, shipper):
            await client.add(f"I like {os.urandom(4).hex()}")
            await shipper.step()
        return [chain.is_encrypted for chain in chains_of(ledger.parent)]

    async with shipped(folder, None) as (client, shipper):
        await client.add("I like tea")
        await shipper.step()
    ledger = next((folder / "backup").iterdir()) / "ledger"
    (ledger / "key.part").write_text("of a copy that was killed")
    assert [False, True] == await ship(encryption_in(folder, first))
    assert ["key", "key.part", "purges.jsonl"] == sorted(path.name for path in ledger.iterdir())
    shutil.rmtree(chains_of(ledger.parent)[0].folder)
    assert [True] == await ship(encryption_in(folder, first))
    assert ["purges.jsonl"] == [path.name for path in ledger.iterdir()], "no chain in clear is left"
    assert [True] == await ship(encryption_in(folder, first))
    (folder / "data" / "memory.duckdb.chain-key").unlink()
    assert [True, True] == await ship(encryption_in(folder, first))
    (folder / "data" / "memory.duckdb.chain-key").write_text("{}")
    assert [True, True, True] == await ship(encryption_in(folder, first))
    assert 4 == len(await ship(encryption_in(folder, second, first)))
    assert 4 == len(await ship(encryption_in(folder, first, second)))
    reasons = [chain.header["reason"] for chain in chains_of(ledger.parent)]
    told = [reason.partition(" ")[2] for reason in reasons]  # what stands before is the name of a chain
    assert ["is in clear", *["was for other recipients, or its key is not kept here"] * 3] == told
    with pytest.raises(StoreRefused, match=r"nothing says who may open the next one: set backup\.encrypt_recipients"):
        await ship(None)
    assert ["purges.jsonl"] == [path.name for path in ledger.iterdir()]
    later = ledger.parent.with_name(f"{ledger.parent.name}-abcdef01")  # of a history that a restore began
    other = Shipper(None, later, folder / "data" / "ledger", {"store_id": ledger.parent.name}, SPOOL.clock)
    with pytest.raises(StoreRefused, match="nothing says who may open the next one"):
        await other.step()
    assert [".lock"] == [path.name for path in later.iterdir()]
    assert [True] * 4 == [chain.is_encrypted for chain in chains_of(ledger.parent)]
    assert 0o600 == (folder / "data" / "memory.duckdb.chain-key").stat().st_mode & 0o777


async def test_each_recipient_opens_the_ledger_with_their_chain_and_no_other_ledger_takes_its_place(folder):
    (old, first), (key, second) = identity_in(folder, "1"), identity_in(folder, "2")
    for recipient in (first, second):
        async with shipped(folder, encryption_in(folder, recipient)) as (client, shipper):
            await client.delete((await client.add(f"note {recipient}")).memory.id, purge=True)
            await shipper.step()
    store = next((folder / "backup").iterdir())
    restored(chains_of(store), folder, key)
    restored(chains_of(store)[:1], folder, old)
    kept = {path.name: path.read_bytes() for path in (store / "ledger").iterdir()}
    shutil.rmtree(folder / "data" / "ledger")
    async with shipped(folder, encryption_in(folder, first)) as (client, shipper):
        await client.add("more")
        await shipper.step()
        assert "does not go on with" in shipper.ledger_fault
    assert kept == {path.name: path.read_bytes() for path in (store / "ledger").iterdir()}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no recipient"),
        ("# only a comment\n", "names no recipient"),
        ("age1nonsense\n", "recipient 1 is not what memoryd encrypts to"),
        ("AGE-SECRET-KEY-1QQQ\n", "a private key; name its public one"),
        ("\udcff", "is no text"),
    ],
)
def test_recipients_that_cannot_be_used_are_named(folder, text, said):
    path = folder / "recipients.txt"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(StartupError, match=said) as refused:
        read_recipients(path)
    assert str(path) in str(refused.value)
    assert "QQQ" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "age1nonsense", "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n", "AGE-SECRET-KEY-1Q"])
def test_an_identity_that_cannot_be_used_is_named_and_not_shown(folder, text):
    path = folder / "key.txt"
    path.write_text(text)
    with pytest.raises(StartupError, match="holds no identity") as refused:
        read_identities([path])
    assert "KEY-1Q" not in str(refused.value).replace("AGE-SECRET-KEY-1…", "")


@pytest.mark.parametrize("make", [ed25519.Ed25519PrivateKey.generate, partial(rsa.generate_private_key, 65537, 2048)])
def test_keys_of_ssh_do_as_well(folder, make):
    key, encoding, formats = make(), serialization.Encoding, serialization
    path, public = folder / "id", folder / "id.pub"
    path.write_bytes(key.private_bytes(encoding.PEM, formats.PrivateFormat.OpenSSH, formats.NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(encoding.OpenSSH, formats.PublicFormat.OpenSSH))
    encryption = Encryption(read_recipients(public), folder / "kept", os.urandom)
    cipher, header = encryption.begin(b"a key")
    assert cipher.key == read_identities([path]).cipher(header, path).key
    assert b"a key" == ledger_key(header, cipher, path)


def test_a_daemon_ships_for_a_recipient_and_the_holder_of_its_identity_restores():
    with short_folder() as folder:
        key, recipient = identity_in(folder)
        (folder / "to.txt").write_text(f"# of the safe\n{recipient}\n")
        for name in ("b", "d"):
            (folder / name).mkdir()
        config = f'[backup]\ndirectory = "{folder}/b"\nship_s = 1\nencrypt_recipients_file = "{folder}/to.txt"\n'
        with running(folder / "d", config=config) as daemon, daemon.client() as memory:
            memory.add("I like tea")
            purged = memory.add(f"my locker code is {SAID}").memory
            memory.run_job("backup")
            assert until(lambda: any(Chain.read(path.parent).proofs for path in folder.glob("b/*/*/manifest.jsonl")))
            at = memory.server_info().commit_seq
            memory.delete(purged.id, purge=True)
            last = memory.server_info().commit_seq
            assert until(lambda: any(reaches(path.parent, last) for path in folder.glob("b/*/*/manifest.jsonl")))
            shown = memoryd("status", "--socket", daemon.socket).stdout.decode()
            assert re.search(r"backup    \S+/b/\S+: shipped at .*, proved at ", shown), shown
        listed = memoryd("backup", "list", folder / "b")
        assert f"encrypted for {recipient}" in listed.stdout.decode(), listed
        assert "proved up to" in listed.stdout.decode()
        checked = memoryd("backup", "verify", folder / "b")
        assert (0, True) == (checked.returncode, b"not restored as a trial" in checked.stderr), checked
        refused = memoryd("restore", folder / "b", "--data-dir", folder / "r")
        assert (78, True) == (refused.returncode, b"--identity" in refused.stderr), refused
        verified = memoryd("backup", "verify", folder / "b", "--identity", key, "--json")
        assert last <= json.loads(verified.stdout)["proved"], verified
        trial = memoryd("restore", folder / "b", "--data-dir", folder / "new" / "deep", "--identity", key, "--dry-run")
        assert 0 == trial.returncode, trial
        snapshot = memoryd("backup", "snapshot", folder / "b", "-o", "-", "--identity", key)
        for source, stdin in ((folder / "b", b""), ("-", snapshot.stdout)):
            more = ("--transaction", at) if not stdin else ()
            done = memoryd("restore", source, "--data-dir", folder / "r", "--identity", key, *more, stdin=stdin)
            assert 0 == done.returncode, done.stderr
            with running(folder / "r") as daemon, daemon.client() as memory:
                assert ["I like tea"] == [one.content for one in memory.pages()]
            shutil.rmtree(folder / "r")
        assert not list(folder.glob("b/*/.memoryd-scratch-*"))


def test_a_stopped_store_is_taken_for_a_recipient():
    with short_folder() as folder:
        key, recipient = identity_in(folder)
        (folder / "to.txt").write_text(recipient)
        for name in ("b", "d"):
            (folder / name).mkdir()
        with running(folder / "d") as daemon, daemon.client() as memory:
            memory.add("I like tea")
        taken = memoryd("backup", "take", folder / "b", "--data-dir", folder / "d", "--encrypt-to", folder / "to.txt")
        assert 0 == taken.returncode, taken
        assert 0 == memoryd("restore", folder / "b", "--data-dir", folder / "r", "--identity", key).returncode
        again = memoryd("backup", "take", folder / "b", "--data-dir", folder / "d")
        assert (78, True) == (again.returncode, b"nothing says who may open the next one" in again.stderr), again
        other, _ = identity_in(folder, "other.txt")
        both = ("--identity", other, "--identity", key)
        assert 0 == memoryd("restore", folder / "b", "--data-dir", folder / "r2", *both).returncode
        renamed = (folder / "b").rename(folder / "renamed")
        store = next(renamed.iterdir()).rename(renamed / "copy-of-a-store")
        written = memoryd("backup", "snapshot", store, "-o", folder / "s.tar", "--identity", key)
        assert 0 == written.returncode, written
        assert 0 == memoryd("restore", folder / "s.tar", "--data-dir", folder / "r3").returncode
        manifest = next(store.glob(f"*/{MANIFEST}"))
        rewrite(manifest, lambda line: {**line, "key": line["key"][:-40]} if "key" in line else line)
        damaged = memoryd("restore", store, "--data-dir", folder / "r4", "--identity", key)
        assert (65, True) == (damaged.returncode, b"its key is not what was written" in damaged.stderr), damaged
        missing = memoryd("backup", "take", folder / "b", "--data-dir", folder / "d", "--encrypt-to", folder / "no")
        assert (78, True) == (missing.returncode, b"no cannot be read" in missing.stderr), missing


def test_who_opens_only_an_earlier_chain_is_told_the_way_to_it():
    with short_folder() as folder:
        key, first = identity_in(folder)
        other, second = identity_in(folder, "other.txt")
        for name in ("b", "d"):
            (folder / name).mkdir()
        for text, recipient in (("I like tea", first), ("I like coffee", second)):
            (folder / "to.txt").write_text(recipient)
            with running(folder / "d") as daemon, daemon.client() as memory:
                memory.add(text)
            to = ("--encrypt-to", folder / "to.txt")
            taken = memoryd("backup", "take", folder / "b", "--data-dir", folder / "d", *to)
            assert 0 == taken.returncode, taken
        refused = memoryd("restore", folder / "b", "--data-dir", folder / "r", "--identity", key)
        way = re.search(rb"it opens 000001-\S+: (--transaction) (\d+)", refused.stderr)
        assert way is not None, refused
        words = [word.decode() for word in way.groups()]
        done = memoryd("restore", folder / "b", "--data-dir", folder / "r", "--identity", key, *words)
        assert 0 == done.returncode, done
        with running(folder / "r") as daemon, daemon.client() as memory:
            assert ["I like tea"] == [one.content for one in memory.pages()]
        assert 0 == memoryd("restore", folder / "b", "--data-dir", folder / "r2", "--identity", other).returncode
