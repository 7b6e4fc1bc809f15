# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154 # read by tests/lint
# Each call that modules are linked to has a wrapper of the checked mode: a handle of that means
# nothing to the call itself.

check_checked() {
    link=$src/src/sdk/link.c
    wrappers=$src/src/checked/calls.def
    calls=$(sed -n 's/^    CALL(fb_\([a-z_]*\)),$/\1/p' "$link")
    wrapped=$(sed -n 's/^CALL[A-Z_]*(\([a-z_]*\)[,)].*/\1/p' "$wrappers")

    [ -n "$calls" ] || echo "$link: no call is found"
    for call in $calls; do
        among "$call" "$wrapped" || echo "$wrappers: fb_$call() has no line"
    done
    for call in $wrapped; do
        among "$call" "$calls" || echo "$link: fb_$call() has no line"
    done
}
