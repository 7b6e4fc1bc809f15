# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154 # read by tests/lint
# A test waits for a condition (support/wait.h, support/wait.sh), and does not measure how late the
# machine lets it see that: it sleeps for no time, and asserts no upper bound of what it has waited.

# Files that wait by sleeping, are clients with a pace, or replace a call. Modules are the daemon's
# guests, and fuzzers have no time.
may_sleep='tests/support/wait.h tests/daemon/steady_clients.c tests/daemon/load_clients.c
    tests/daemon/faults_preload.c tests/shm/test_map_damage.c tests/shm/test_map_look.c'

check_waits() {
    facts W tests | awk -v may="$may_sleep" '
    BEGIN {
        n = split(may, list)
        for (i = 1; i <= n; i++)
            exempt[list[i]] = 1
    }
    $2 ~ /^tests\/(module|fuzz)\// || $2 in exempt || !$4 {
        next
    }
    $3 ~ /^(sleep|usleep|nanosleep|clock_nanosleep)$/ {
        print $2 ":" $4 ": calls " $3 "(): a test waits for a condition (tests/support/wait.h)"
    }'
    c_files tests | xargs grep -nE \
        '_l[te]\((now_ms|now_us|now_s|time|milliseconds)\((NULL)?\) - ' /dev/null |
        sed "s|^$src/||; s|:[^:]*\$|: asserts an upper bound of wall time|"
    find "$src/tests" -name '*.test' | sort | xargs grep -nE '(^|[;&|])[[:space:]]*sleep ' /dev/null |
        sed "s|^$src/||; s|\\(:[0-9]*\\):.*|\\1: sleeps: a test waits for a condition (tests/support/wait.sh)|"
}
