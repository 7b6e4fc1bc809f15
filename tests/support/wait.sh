# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Waiting for a condition, with a deadline, and turns, for tests that read this file. Such a test has a
# function fail MESSAGE, and shows on its way out what explains a failure.

# within SECONDS COMMAND ...: repeats it until it succeeds, which is false after so many seconds of waiting.
# Questions become rarer, because each starts processes.
within() {
    left_=$(($1 * 50)) pause_=1 # of 20 ms
    shift
    until "$@"; do
        [ $left_ -gt 0 ] || return 1
        sleep 0.$((pause_ * 2 / 10))$((pause_ * 2 % 10))
        left_=$((left_ - pause_))
        [ $pause_ -ge 10 ] || pause_=$((pause_ + 1))
    done
}

# eventually COMMAND ...: the same, for as long as a slow machine may need; the test fails without it
eventually() {
    within 60 "$@" && return
    fail "waited in vain for: $*"
    exit 1
}

# has_turn NUMBER RUNS: whether an item of a long list is tried in this run of so many, by the number of
# commits (TURN of tests/run). Runs by hand and long runs try all items.
has_turn() {
    case ${TURN-all} in
    *[!0-9]* | '') ;;
    *) [ $((($1 + TURN) % $2)) = 0 ] ;;
    esac
}
