-- What is kept of a job that was run again: it has ended, and nothing of it changes any more. The newest run is in jobs,
-- whose columns stay as they are: a supervisor of an older Oarsman that is still running reads all of them.
CREATE TABLE IF NOT EXISTS runs (
    uid TEXT PRIMARY KEY,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    number INTEGER NOT NULL,           -- from 1
    engine TEXT NOT NULL,
    owner TEXT NOT NULL,
    folder TEXT NOT NULL,
    document TEXT NOT NULL,
    created_at TEXT NOT NULL,
    generation INTEGER NOT NULL,
    stop_requested INTEGER NOT NULL,
    status TEXT NOT NULL,
    revision INTEGER NOT NULL,
    events TEXT NOT NULL,              -- as rows of that table, in JSON
    UNIQUE (namespace, name, number)
) STRICT;
