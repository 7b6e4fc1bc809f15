# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# The daemon exports the SDK: all of it, and nothing else. Names that begin with "_", and "data_start",
# are the compiler's; and a sanitizer or the shims (tests/shims) that are linked in export names of
# the C library.

check_symbols() {
    daemon=src/forkbeard
    [ ! -e src/.libs/forkbeard ] || daemon=src/.libs/forkbeard
    [ -e "$daemon" ] || echo "$daemon is not built"
    exported=$(nm -D --defined-only "$daemon" | awk '$2 ~ /^[TWi]$/ { sub(/@.*/, "", $3); print $3 }')
    own=.
    if echo "$exported" | grep -q -x -e __asan_init -e kqueue; then
        own='^fb_'
    fi
    sdk=$(sdk_functions)

    [ -n "$sdk" ] || echo "$src/src/include/forkbeard: no FB_SDK function is found"
    for name in $(echo "$exported" | grep -Ev '^(_|data_start$)' | grep "$own"); do
        among "$name" "$sdk" || echo "$daemon exports $name, which is not FB_SDK"
    done
    for name in $sdk; do
        among "$name" "$exported" || echo "$daemon does not export the SDK's $name"
    done
}
