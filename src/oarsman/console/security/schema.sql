CREATE TABLE accounts (
    name TEXT PRIMARY KEY COLLATE NOCASE,  -- nobody shall pass for Alice by being alice
    role TEXT NOT NULL,
    password TEXT NOT NULL,                -- argon2id, with its parameters and salt
    created TEXT NOT NULL,
    disabled INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE sessions (
    hash BLOB PRIMARY KEY,                 -- SHA-256 of the cookie's value, which is 256 random bits
    account TEXT REFERENCES accounts (name) ON DELETE CASCADE,  -- NULL: the owner of this machine
    name TEXT NOT NULL,
    opened TEXT NOT NULL,
    seen TEXT NOT NULL
) STRICT;
CREATE INDEX sessions_of_account ON sessions (account, opened);

CREATE TABLE tokens (
    id TEXT PRIMARY KEY,                   -- how the secret begins, to recognise it
    hash BLOB NOT NULL UNIQUE,             -- SHA-256 of the secret, which is 256 random bits
    account TEXT REFERENCES accounts (name) ON DELETE CASCADE,  -- NULL: the owner of this machine
    owner TEXT NOT NULL,
    note TEXT NOT NULL,
    created TEXT NOT NULL,
    expires TEXT,
    last_used TEXT
) STRICT;
CREATE INDEX tokens_of_account ON tokens (account);

CREATE TABLE links (
    hash BLOB PRIMARY KEY,                 -- SHA-256 of the key, which is 256 random bits
    name TEXT NOT NULL,
    expires TEXT NOT NULL
) STRICT;

CREATE TABLE notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;

CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never given twice
    time TEXT NOT NULL,
    who TEXT NOT NULL,
    address TEXT NOT NULL,
    what TEXT NOT NULL,
    about TEXT NOT NULL,
    outcome TEXT NOT NULL
) STRICT;
CREATE TRIGGER audit_is_not_rewritten BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit WHEN OLD.id > (SELECT max(id) FROM audit) - 100000 BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
