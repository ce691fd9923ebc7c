-- What the supervisor of a queue last knew of its child, for whoever looks from outside. Nothing is decided by it.

-- While this waits for the table, every Step waits behind it: better fail than cost running queues their leases.
set local lock_timeout = '2s';

alter table {{.schema}}.queues
	-- All null: nobody has said anything.
	add column child_supervisor text,        -- who says so; as in supervisor
	add column child_host       text,
	add column child_state      text,
	add column child_detail     text,        -- why; null: nothing to say
	add column child_pid        integer,     -- null: no process
	add column restarts         integer,
	add column last_exit        text,        -- how the last process that died by itself ended; null: none did
	add column last_exit_at     timestamptz,
	add column failed_reload    text,        -- of the supervisor, so the same in all its queues
	add column seen_at          timestamptz; -- when all this was said last
