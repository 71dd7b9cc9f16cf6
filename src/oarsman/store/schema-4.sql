-- The variables of a job are kept until its end, and no longer.
UPDATE jobs SET environment = '{}' WHERE finished = 1;
