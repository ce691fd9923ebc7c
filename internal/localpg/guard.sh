# The guard: starts and stops one Postgres for the process that holds the other end of its stdin, and ends
# Postgres when that process is gone, however it ended.
#
# Arguments: folder of the binaries, folder of the cluster, how to stop at the end (fast or immediate), and
# "remove" if the folder of the cluster goes with it. Orders come one a line; each is answered by its exit status.
trap '' PIPE # an answer nobody reads must not end the guard
bin=$1 dir=$2 mode=$3 after=$4

initialize() {
	rm -rf "$dir/data.new" &&
		"$bin/initdb" -D "$dir/data.new" -U queuekeeper -E UTF8 --locale=C \
			--auth-local=trust --auth-host=reject "$@" &&
		mv "$dir/data.new" "$dir/data" # so that an initdb that was cut off is no data folder
}

stop() {
	"$bin/pg_ctl" stop -D "$dir/data" -w -s -t 30 -m "$1"
}

while read -r order; do
	case $order in
	initialize) initialize ;;
	initialize-no-sync) initialize --no-sync ;;
	start) "$bin/pg_ctl" start -D "$dir/data" -w -s -l "$dir/log" ;;
	halt) stop immediate ;;
	esac </dev/null >>"$dir/log" 2>&1
	echo $?
done

status=0
if [ -f "$dir/data/postmaster.pid" ]; then
	stop "$mode" </dev/null >>"$dir/log" 2>&1 || stop immediate </dev/null >>"$dir/log" 2>&1
	status=$?
fi
if [ "$after" = remove ]; then
	rm -rf "$dir" 2>/dev/null
fi
exit $status
