# shellcheck shell=bash
# Where the fetched parts of the local stack are. Sourced by dev/setup and dev/stack.

cache_dir() {
    if [ -n "${XDG_CACHE_HOME:-}" ]; then
        printf '%s/report-scheduler-dev\n' "$XDG_CACHE_HOME"
    elif [ "$(id -u)" -eq 0 ]; then
        printf '/var/cache/report-scheduler-dev\n'
    else
        printf '%s/.cache/report-scheduler-dev\n' "$HOME"
    fi
}

# Where the Debian package `prometheus` or `pgbouncer` is unpacked: $(tool_dir prometheus)/usr/bin/promtool,
# $(tool_dir pgbouncer)/usr/sbin/pgbouncer. It exists only when complete.
tool_dir() {
    printf '%s/tool-%s\n' "$(cache_dir)" "$1"
}

# The directory of jars for `zookeeper` or `kafka`: it exists only when complete, and its name
# follows the pom, so that a changed pom is fetched anew and old clones keep theirs.
java_part_dir() {
    local part=$1 pom hash
    pom=${BASH_SOURCE[0]%/*}/$part/pom.xml
    hash=$(sha256sum "$pom")
    printf '%s/%s-%s\n' "$(cache_dir)" "$part" "${hash:0:16}"
}

# The home of a Java of at least version 17: RS_JAVA_HOME, else Debian's own, else JAVA_HOME, else
# any below /usr/lib/jvm, else the one on the PATH. The JDK a developer uses may be older.
java_home_find() {
    local home version candidates=()
    [ -z "${RS_JAVA_HOME:-}" ] || candidates+=("$RS_JAVA_HOME")
    candidates+=(/usr/lib/jvm/java-17-openjdk-*)
    [ -z "${JAVA_HOME:-}" ] || candidates+=("$JAVA_HOME")
    candidates+=(/usr/lib/jvm/*)
    if command -v java >/dev/null; then
        home=$(readlink -f "$(command -v java)")
        candidates+=("${home%/bin/java}")
    fi
    for home in "${candidates[@]}"; do
        [ -x "$home/bin/java" ] || continue
        # "17.0.15" and, before Java 9, "1.8.0_402"; a runtime without a release file is asked.
        version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$home/release" 2>/dev/null || true)
        if [ -z "$version" ]; then
            version=$("$home/bin/java" -version 2>&1 |
                sed -n 's/.* version "\([0-9]*\).*/\1/p' || true)
        fi
        if [ "${version:-0}" -ge 17 ]; then
            printf '%s\n' "$home"
            return 0
        fi
    done
    return 1
}
