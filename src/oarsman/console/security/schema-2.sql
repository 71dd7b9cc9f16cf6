CREATE TABLE views (
    account TEXT REFERENCES accounts (name) ON DELETE CASCADE,  -- NULL: somebody who has none here
    who TEXT NOT NULL,
    name TEXT NOT NULL,
    address TEXT NOT NULL                  -- the query of the jobs page: filter, order and columns
) STRICT;
CREATE UNIQUE INDEX views_by_name ON views (ifnull(account, ''), who, name);
