# shellcheck shell=bash
# Facts about the machine and what runs on it, printed above every benchmark's figures.
# Sourced by bench/plan and bench/lateness; needs RS_PG_SUPER.

bench_need_stack() {
    if [ -z "${RS_PG_SUPER:-}" ] || [ -z "${RS_KAFKA:-}" ]; then
        printf '%s: no stack: run dev/stack up, then evaluate what dev/stack env prints\n' "$0" >&2
        exit 2
    fi
}

bench_facts() {
    printf 'machine   %s, %s cores, %s GiB\n' \
        "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" \
        "$(awk '/^MemTotal/ {printf "%.0f", $2 / 1048576}' /proc/meminfo)"
    printf 'system    %s, kernel %s, load %s\n' \
        "$(sed -n 's/^PRETTY_NAME="\(.*\)"$/\1/p' /etc/os-release)" "$(uname -r)" \
        "$(cut -d ' ' -f 1-3 /proc/loadavg)"
    psql -XAtq -d "$RS_PG_SUPER" -c "
        SELECT format('database  PostgreSQL %s, fsync %s, synchronous_commit %s, shared_buffers %s, checksums %s',
                      current_setting('server_version'), current_setting('fsync'),
                      current_setting('synchronous_commit'), current_setting('shared_buffers'),
                      current_setting('data_checksums'))"
}
