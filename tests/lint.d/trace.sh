# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154 # read by tests/lint
# base/trace.h, the manual and the binary have the same trace points. A binary without any says by -V
# that it was built without them.

# trace_points_of FILE: the names that the file has, from standard input
trace_points_of() {
    has=$(sort -u)
    for name in $points; do
        among "$name" "$has" || echo "$1: there is no trace point $name"
    done
    for name in $has; do
        among "$name" "$points" || echo "$header: there is no trace point $name"
    done
}

check_trace() {
    header=$src/src/base/trace.h manual=$src/man/forkbeard.8.in
    daemon=src/forkbeard
    [ ! -e src/.libs/forkbeard ] || daemon=src/.libs/forkbeard
    points=$(sed -n 's/^ *DTRACE_PROBE[0-9]*(forkbeard, \([a-z_]*\).*;$/\1/p' "$header" | sort -u)

    [ -n "$points" ] || echo "$header: no trace point is found"
    sed -n '/^\.\\" trace points$/,/^\.El$/s/^\.It \([a-z_]*\) Ta .*/\1/p' "$manual" | trace_points_of "$manual"
    [ -e "$daemon" ] || return 0
    "$daemon" -V 2>&1 | grep -q '^libraries that it lacks:.*sdt' ||
        readelf -n "$daemon" | awk '
        /^ *Provider: / { ours = $2 == "forkbeard" }
        /^ *Name: / && ours { print $2 }' | trace_points_of "$daemon"
}
