-- What a follower needs: the newest changes without reading the rest, and what is gone, whoever removed it.
CREATE INDEX jobs_by_revision ON jobs (revision);
CREATE INDEX jobs_deleting ON jobs (deleting) WHERE deleting = 1;

CREATE TABLE removed (
    revision INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL
) STRICT;
-- A trigger, so that a supervisor of an older Oarsman that is still running leaves its marks too.
CREATE TRIGGER job_removed AFTER DELETE ON jobs BEGIN
    UPDATE counters SET value = value + 1 WHERE name = 'revision';
    INSERT INTO removed SELECT value, OLD.namespace, OLD.name FROM counters WHERE name = 'revision';
    DELETE FROM removed WHERE revision < (SELECT value - 50000 FROM counters WHERE name = 'revision');
END;
