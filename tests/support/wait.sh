# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Waiting for a condition, with a deadline, for tests that read this file. Such a test has a function
# fail MESSAGE, and shows on its way out what explains a failure.

# within SECONDS COMMAND ...: repeats it until it succeeds, which is false where the time is up
within() {
    until_=$(($(date +%s) + $1))
    shift
    until "$@"; do
        [ "$(date +%s)" -le $until_ ] || return 1
        sleep 0.05
    done
}

# eventually COMMAND ...: the same, for as long as a slow machine may need; the test fails without it
eventually() {
    within 60 "$@" && return
    fail "waited in vain for: $*"
    exit 1
}
