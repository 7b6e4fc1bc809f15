# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# The master's struct is for the few functions that give everything its turn: fewer than 40 of the
# master's folders take it, and all others take the part that they need.

check_master() {
    facts F src/master src/pool src/control src/upgrade | awk -F '\t' '
    $6 ~ /(^|[^A-Za-z_0-9])struct (fb_)?master \*/ {
        found[++n] = $2 ":" $3 ": " $5 "() takes a struct master"
    }
    END {
        if (n < 40)
            exit
        for (i = 1; i <= n; i++)
            print found[i]
        printf "%d functions take a struct master; fewer than 40 may\n", n
    }'
}
