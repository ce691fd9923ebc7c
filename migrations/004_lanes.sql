-- The indexes of lanes. They are in a transaction of their own: a Step locks a queue first and then jobs. While they are
-- built, in some seconds for a million jobs, jobs can be neither enqueued nor claimed; leases are renewed.
set local lock_timeout = '2s';

-- Lanes are compared byte by byte, in every statement too: their order means nothing, and must not depend on a locale.
create index jobs_lanes on {{.schema}}.jobs (queue, lane collate "C", run_at, id) where state = 'pending';
-- Pending jobs that were started before: with order = "strict" they go first in their lane. Nearly always few.
create index jobs_started_before on {{.schema}}.jobs (queue, lane collate "C", run_at, id)
	where state = 'pending' and attempts > 0;
