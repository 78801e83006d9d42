-- The first schema. Every key of an owner's rows begins with owner_id (128 bits of a hash of who owns), so that owners
-- can be moved from server to server. Times are UTC without zone, as in DuckDB: both engines share the code of rows.
-- Names that are ordered are of collation "C": by code point, as in Python.
CREATE TABLE meta (name text PRIMARY KEY, value text NOT NULL);

CREATE FUNCTION contended(what text) RETURNS bigint LANGUAGE plpgsql AS $$
  BEGIN RAISE EXCEPTION USING ERRCODE = 'MD409', MESSAGE = what; END $$;

-- Messages are numbered in the order of transactions, not of a sequence: whoever reads up to the oldest transaction that
-- is still open misses none. What is added since a restore or a failover is feed_base.
CREATE FUNCTION feed_number(place bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT ((pg_current_xact_id()::text::bigint + (SELECT value::bigint FROM meta WHERE name = 'feed_base')) << 12) + place $$;
CREATE FUNCTION feed_end() RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT (pg_snapshot_xmin(pg_current_snapshot())::text::bigint
    + (SELECT value::bigint FROM meta WHERE name = 'feed_base')) << 12 $$;

-- How far the commits of each owner have come: of memories, of messages, of notes. The row is number, lock and fence.
-- Grants and keys have one of their own, of the owner of zeros.
CREATE TABLE heads (
  owner_id uuid, feed text COLLATE "C", agent_id text NOT NULL, user_id text, chat_id text, commit_seq bigint NOT NULL,
  purge_seq bigint NOT NULL, newest_create_time timestamp, PRIMARY KEY (owner_id, feed)
) WITH (fillfactor = 60);
CREATE INDEX heads_user ON heads (user_id) WHERE user_id IS NOT NULL;

-- Of which history the rows are: the cluster, its timeline, the database. It changes with a failover and a restore.
CREATE FUNCTION generation() RETURNS text LANGUAGE plpgsql STABLE AS $$
  DECLARE cluster text := '?';
  BEGIN
    BEGIN
      SELECT system_identifier INTO cluster FROM pg_control_system();
    EXCEPTION WHEN insufficient_privilege THEN cluster := '?';
    END;
    RETURN concat_ws('/', cluster, left(pg_walfile_name(pg_current_wal_lsn()), 8),
      (SELECT oid FROM pg_database WHERE datname = current_database()));
  END $$;

-- Asked on each new connection. In another history commits may be lost that daemons have followed: all numbers leap
-- beyond what any of them has seen, so that each reads anew, and nothing is written that was decided on what is lost.
CREATE FUNCTION note_generation() RETURNS boolean LANGUAGE plpgsql AS $$
  DECLARE
    is_now text := generation();
    leap constant bigint := 1::bigint << 32;
    known text;
  BEGIN
    IF EXISTS (SELECT FROM meta WHERE name = 'generation' AND value = is_now) THEN RETURN false; END IF;
    LOCK TABLE heads, threads, messages IN SHARE ROW EXCLUSIVE MODE;  -- whoever numbers messages has ended, or begins after
    SELECT value INTO known FROM meta WHERE name = 'generation';
    IF known = is_now THEN RETURN false; END IF;
    INSERT INTO meta VALUES ('generation', is_now) ON CONFLICT (name) DO UPDATE SET value = excluded.value;
    IF known IS NULL THEN RETURN false; END IF;
    UPDATE heads SET commit_seq = commit_seq + leap, purge_seq = commit_seq + leap;
    UPDATE threads SET revision = revision + leap;
    UPDATE meta SET value = (leap + greatest(value::bigint,
      (SELECT coalesce(max(number) >> 12, 0) FROM messages) - pg_current_xact_id()::text::bigint))::text
      WHERE name = 'feed_base';
    RETURN true;
  END $$;

CREATE TABLE memories (
  owner_id uuid NOT NULL, id text COLLATE "C" NOT NULL, agent_id text NOT NULL, user_id text, chat_id text,
  content text NOT NULL, text_digest text NOT NULL, kind text NOT NULL, key text NOT NULL, facets text NOT NULL,
  details text NOT NULL, create_time timestamp NOT NULL, event_time timestamp NOT NULL, expire_time timestamp,
  supersede_time timestamp, delete_time timestamp, purge_time timestamp, terms text NOT NULL, traits text NOT NULL,
  fingerprint text NOT NULL, grant_id text NOT NULL, text_bytes bigint NOT NULL, vector bytea, token_vectors bytea,
  window_vectors bytea, insert_seq bigint NOT NULL, vector_seq bigint NOT NULL, commit_seq bigint NOT NULL,
  PRIMARY KEY (owner_id, id)
) WITH (toast_tuple_target = 4080);
ALTER TABLE memories ALTER vector SET STORAGE EXTERNAL, ALTER token_vectors SET STORAGE EXTERNAL,
  ALTER window_vectors SET STORAGE EXTERNAL;
CREATE INDEX memories_id ON memories (id);
CREATE INDEX memories_time ON memories (owner_id, create_time, id);
CREATE INDEX memories_seq ON memories (owner_id, commit_seq);
CREATE INDEX memories_text ON memories (owner_id, text_digest);
CREATE INDEX memories_key ON memories (owner_id, key) WHERE key <> '';
CREATE INDEX memories_grant ON memories (grant_id, create_time, id) WHERE grant_id <> '';
CREATE INDEX memories_purge ON memories (purge_time) WHERE delete_time IS NOT NULL;
CREATE INDEX memories_ended ON memories (supersede_time) WHERE delete_time IS NULL AND supersede_time IS NOT NULL;
CREATE INDEX memories_expiry ON memories (expire_time)
  WHERE delete_time IS NULL AND supersede_time IS NULL AND expire_time IS NOT NULL;
CREATE INDEX memories_since ON memories USING brin (create_time);
CREATE TABLE uses (
  owner_id uuid, memory_id text COLLATE "C", recall_time timestamp NOT NULL, recall_count bigint NOT NULL,
  trusted_recall_time timestamp, PRIMARY KEY (owner_id, memory_id)
) WITH (fillfactor = 70);

-- Requests that were carried out, and the ids that their receipts name, each of the owner whose thing it is.
CREATE TABLE requests (
  owner_id uuid, name text, answer text NOT NULL, create_time timestamp NOT NULL, PRIMARY KEY (owner_id, name)
);
CREATE INDEX requests_time ON requests USING brin (create_time);
CREATE TABLE request_ids (
  owner_id uuid NOT NULL, request_owner uuid NOT NULL, request text NOT NULL, place integer NOT NULL,
  rank integer NOT NULL, agent_id text NOT NULL, user_id text, chat_id text, thread_id text NOT NULL, id text NOT NULL
);
CREATE INDEX request_ids_of ON request_ids (request_owner, request);
CREATE INDEX request_ids_named ON request_ids (owner_id, thread_id, id);

CREATE TABLE entities (
  owner_id uuid, id text COLLATE "C", agent_id text NOT NULL, user_id text, chat_id text, details text NOT NULL,
  create_time timestamp NOT NULL, commit_seq bigint NOT NULL, PRIMARY KEY (owner_id, id)
);
CREATE TABLE tombstones (
  owner_id uuid, digest bytea, is_lifted boolean NOT NULL, commit_seq bigint NOT NULL, PRIMARY KEY (owner_id, digest)
);
CREATE TABLE usage (
  owner_id uuid, grant_id text, day date, stored_memories bigint NOT NULL, stored_bytes bigint NOT NULL,
  written_messages bigint NOT NULL, PRIMARY KEY (owner_id, grant_id, day)
) WITH (fillfactor = 60);
CREATE INDEX usage_grant ON usage (grant_id, day);

CREATE TABLE threads (
  owner_id uuid, thread_id text COLLATE "C", agent_id text NOT NULL, user_id text, chat_id text,
  create_time timestamp NOT NULL, update_time timestamp NOT NULL, session_id text NOT NULL, revision bigint NOT NULL,
  details text NOT NULL, is_unsummarised boolean NOT NULL, PRIMARY KEY (owner_id, thread_id)
) WITH (fillfactor = 50);
CREATE INDEX threads_update ON threads (owner_id, update_time);
CREATE INDEX threads_open ON threads (update_time) WHERE session_id <> '';
CREATE INDEX threads_unsummarised ON threads (owner_id, thread_id) WHERE is_unsummarised;
CREATE INDEX threads_user ON threads (user_id) WHERE user_id IS NOT NULL;
CREATE TABLE sessions (
  owner_id uuid, thread_id text COLLATE "C", session_id text COLLATE "C", agent_id text NOT NULL, user_id text,
  chat_id text, state text NOT NULL, start_time timestamp NOT NULL, details text NOT NULL,
  PRIMARY KEY (owner_id, thread_id, session_id)
) WITH (fillfactor = 60);
CREATE INDEX sessions_start ON sessions (owner_id, start_time);
CREATE INDEX sessions_pending ON sessions (owner_id, thread_id, session_id) WHERE state = 'pending';
CREATE TABLE messages (
  owner_id uuid, number bigint, thread_id text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, seq bigint NOT NULL,
  agent_id text NOT NULL, user_id text, chat_id text, content text NOT NULL, details text NOT NULL,
  metadata text NOT NULL, create_time timestamp NOT NULL, grant_id text NOT NULL, text_bytes bigint NOT NULL,
  terms text NOT NULL, traits text NOT NULL, commit_seq bigint NOT NULL,
  PRIMARY KEY (owner_id, number), UNIQUE (owner_id, thread_id, seq), UNIQUE (owner_id, thread_id, id)
);
CREATE UNIQUE INDEX messages_number ON messages (number);
CREATE INDEX messages_id ON messages (id);
CREATE INDEX messages_seq ON messages (owner_id, commit_seq);
CREATE TABLE message_vectors (
  owner_id uuid, number bigint, fingerprint text NOT NULL, vector bytea NOT NULL, token_vectors bytea,
  window_vectors bytea, commit_seq bigint NOT NULL, PRIMARY KEY (owner_id, number)
);
ALTER TABLE message_vectors ALTER vector SET STORAGE EXTERNAL, ALTER token_vectors SET STORAGE EXTERNAL,
  ALTER window_vectors SET STORAGE EXTERNAL;
CREATE INDEX message_vectors_seq ON message_vectors (owner_id, commit_seq);
CREATE TABLE working_memories (
  owner_id uuid PRIMARY KEY, agent_id text NOT NULL, user_id text, chat_id text, text text NOT NULL,
  update_time timestamp NOT NULL, trust text NOT NULL, grant_id text NOT NULL, author text NOT NULL
);

CREATE TABLE notes (
  owner_id uuid, path text COLLATE "C", id text COLLATE "C" NOT NULL, agent_id text NOT NULL, user_id text, chat_id text,
  create_time timestamp NOT NULL, expire_time timestamp, details text NOT NULL, text_bytes bigint NOT NULL,
  is_searched boolean NOT NULL, terms text NOT NULL, fingerprint text NOT NULL, vector bytea, token_vectors bytea,
  window_vectors bytea, insert_seq bigint NOT NULL, vector_seq bigint NOT NULL, commit_seq bigint NOT NULL,
  PRIMARY KEY (owner_id, path)
);
CREATE INDEX notes_id ON notes (id);
CREATE INDEX notes_expiry ON notes (expire_time) WHERE expire_time IS NOT NULL;
CREATE TABLE note_texts (
  owner_id uuid, version_id text COLLATE "C", text text NOT NULL, PRIMARY KEY (owner_id, version_id)
);

CREATE TABLE work (
  owner_id uuid, kind text COLLATE "C", thread_id text COLLATE "C", agent_id text NOT NULL, user_id text, chat_id text,
  state text NOT NULL, due_time timestamp NOT NULL, seq bigint NOT NULL, details text NOT NULL,
  PRIMARY KEY (owner_id, kind, thread_id)
) WITH (fillfactor = 60);
CREATE INDEX work_due ON work (kind, due_time) WHERE state = 'waiting';
CREATE TABLE proposals (
  owner_id uuid, id text COLLATE "C", agent_id text NOT NULL, user_id text, chat_id text, thread_id text NOT NULL,
  message_ids text NOT NULL, content text NOT NULL, create_time timestamp NOT NULL, details text NOT NULL,
  PRIMARY KEY (owner_id, id)
);

-- Of the whole store.
CREATE TABLE grants (id text PRIMARY KEY, details text NOT NULL, create_time timestamp NOT NULL);
CREATE TABLE token_keys (id text PRIMARY KEY, secret text NOT NULL, create_time timestamp NOT NULL);
CREATE TABLE marks (name text PRIMARY KEY, time timestamp NOT NULL);
CREATE TABLE leases (name text PRIMARY KEY, holder text NOT NULL, until timestamp NOT NULL);
CREATE TABLE counters (name text, day date, value bigint NOT NULL, PRIMARY KEY (name, day));
CREATE TABLE runs (
  id text COLLATE "C" PRIMARY KEY, job text NOT NULL, state text NOT NULL, start_time timestamp NOT NULL,
  details text NOT NULL
);
CREATE INDEX runs_job ON runs (job, start_time);
