CREATE TABLE jobs (
    uid TEXT PRIMARY KEY,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    engine TEXT NOT NULL,
    owner TEXT NOT NULL,
    folder TEXT NOT NULL,
    document TEXT NOT NULL,            -- the manifest as given, with edits (scale, suspend)
    environment TEXT NOT NULL,         -- the submitting user's own
    created_at TEXT NOT NULL,
    generation INTEGER NOT NULL DEFAULT 1,
    stop_requested INTEGER NOT NULL DEFAULT 0,
    deleting INTEGER NOT NULL DEFAULT 0,
    finished INTEGER NOT NULL DEFAULT 0,
    status TEXT NOT NULL DEFAULT '{}',
    revision INTEGER NOT NULL,
    UNIQUE (namespace, name)
) STRICT;
CREATE INDEX jobs_unfinished ON jobs (finished) WHERE finished = 0;

CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    uid TEXT NOT NULL REFERENCES jobs (uid) ON DELETE CASCADE,
    first_time TEXT NOT NULL,
    time TEXT NOT NULL,
    severity TEXT NOT NULL,
    reason TEXT NOT NULL,
    message TEXT NOT NULL,
    count INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX events_of_job ON events (uid, id);

CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
INSERT INTO counters VALUES ('revision', 0);
