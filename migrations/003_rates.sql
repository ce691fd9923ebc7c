-- Quotas, pauses by hand, and lanes that take turns.

-- While this waits for a table, every Step waits behind it: better fail than cost running queues their leases.
set local lock_timeout = '2s';

alter table {{.schema}}.queues
	-- What was known of the starts when this was stored. Starts that may have happened since and are in no count:
	-- waiting, and the jobs that were claimed in the same moment.
	add column settled_at timestamptz not null default '-infinity',
	add column waiting    integer not null default 0,
	add column quotas     text not null default '', -- the starts of the last while, as package ratelimit writes them
	-- Whose turn it is.
	add column lane       text collate "C" not null default '', -- the lane that was served last
	add column lane_left  integer not null default 0,           -- how many more it may have in a row
	-- The bucket of every lane's own rate was empty then, if lanes does not say later.
	add column lanes_empty_at     timestamptz not null default '-infinity',
	-- Some lane has a pause until then.
	add column lanes_paused_until timestamptz not null default '-infinity';

-- Lanes of which more is known than their jobs tell.
create table {{.schema}}.lanes (
	queue        {{.schema}}.job_queue not null,
	lane         {{.schema}}.job_lane collate "C" not null,
	paused_until timestamptz not null default '-infinity',
	pause_reason text,
	empty_at     timestamptz not null default '-infinity', -- when the bucket of its own rate was empty
	primary key (queue, lane)
);

-- Whoever may do something with queues, as a role that is not the owner of the tables, may do it with lanes. From there
-- rows are removed too, once they are of no use.
do $queuekeeper_grants$
declare
	may record;
begin
	for may in
		select case a.privilege_type when 'UPDATE' then 'update, delete' else a.privilege_type end as do_what, a.grantee
		from pg_class c cross join aclexplode(c.relacl) a
		where c.oid = $queuekeeper_name${{.schema}}.queues$queuekeeper_name$::regclass and a.grantee <> c.relowner
	loop
		execute format('grant %s on %s to %s', may.do_what, $queuekeeper_name${{.schema}}.lanes$queuekeeper_name$,
			case when may.grantee = 0 then 'public' else may.grantee::regrole::text end);
	end loop;
end
$queuekeeper_grants$;
