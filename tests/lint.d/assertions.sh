# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# Where there is state its invariants are asserted: at least 25 times a 1,000 lines in each of these
# folders. Static assertions do not count.

check_assertions() {
    for folder in master pool control upgrade worker stream upstream net shm event; do
        [ ! -d "$src/src/$folder" ] || facts A "src/$folder" | awk -F '\t' -v folder="$folder" '
        {
            lines += $3
            assertions += $4
        }
        END {
            if (assertions * 1000 < lines * 25)
                printf "src/%s: %d assertions in %d lines, %.1f a 1,000; 25 are the least\n", folder,
                    assertions, lines, 1000 * assertions / lines
        }'
    done
}
