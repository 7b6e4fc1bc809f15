# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154 # read by tests/lint
# Each call of the SDK has a wrapper of the checked mode, whose handles mean nothing to the call.

check_checked() {
    headers=$src/src/include/forkbeard
    wrappers=$src/src/checked/calls.def
    calls=$(sed -n 's/^FB_SDK[^(]*[ *]fb_\([a-z_]*\)(.*/\1/p' "$headers"/*.h)
    wrapped=$(sed -n 's/^CALL[A-Z_]*(\([a-z_]*\)[,)].*/\1/p' "$wrappers")

    [ -n "$calls" ] || echo "$headers: no call is found"
    for call in $calls; do
        among "$call" "$wrapped" || echo "$wrappers: fb_$call() has no line"
    done
    for call in $wrapped; do
        among "$call" "$calls" || echo "$headers: fb_$call() is not declared"
    done
}
