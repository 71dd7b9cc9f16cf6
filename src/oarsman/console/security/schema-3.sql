CREATE TABLE cluster_sessions (            -- of people whom only a cluster knows; never the owner of this machine
    hash BLOB PRIMARY KEY,                 -- SHA-256 of the cookie's value, which is 256 random bits
    name TEXT NOT NULL,                    -- as the cluster said
    sealed BLOB NOT NULL,                  -- their token, by a key that only the cookie has
    opened TEXT NOT NULL,
    seen TEXT NOT NULL,
    expires TEXT                           -- of the token
) STRICT;
CREATE INDEX cluster_sessions_of_name ON cluster_sessions (name, opened);
