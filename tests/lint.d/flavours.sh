# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# No test is forgotten: each test file is in a list of a Makefile fragment, and has a row of
# tests/flavours.def by which tests/run runs it at least every third time. No row is left over.

# The names of all tests, as make has them.
flavours_tests() {
    (cd "$src" && find tests -name 'test_*.c' -o -name '*.test' -o -path tests/lint -type f) |
        sed 's/\.c$//' | sort
}

check_flavours() {
    table=$src/tests/flavours.def
    names=$(flavours_tests)
    listed=$(cat "$src"/tests/*.inc "$src"/tests/*/*.inc "$src/examples/Makefile.inc" 2>/dev/null |
        awk '
        /^(unit_tests|module_tests|daemon_tests|test_scripts|replay_tests|kit_replays|all_tests) /, !/\\$/ {
            gsub(/[ \t\\]+/, "\n")
            print
        }')
    for name in $names; do
        among "$name" "$listed" || echo "$src: $name is in no list of tests, and never runs"
    done
    echo "$names" | awk -v table="$table" '
    NR == FNR && !/^(#|$)/ {
        text = $1
        gsub(/\./, "[.]", text)
        gsub(/\*/, "[^/]*", text)
        pattern[++row_n] = "^" text "$"
        row[row_n] = $1
        place[row_n] = table ":" FNR
        for (i = 2; i <= 3; i++) {
            if ($i !~ /^(each|nofork|third|ninth|27th|night|-)$/)
                print place[row_n] ": " $i " is not how often a test runs"
            if ($i ~ /^(each|nofork|third)$/)
                runs[row_n] = 1
        }
    }
    NR == FNR {
        next
    }
    {
        found = 0
        for (i = 1; i <= row_n && !found; i++)
            if ($1 ~ pattern[i]) {
                found = used[i] = 1
                if (!runs[i])
                    print place[i] ": no flavour runs " $1 " every third time"
            }
        if (!found)
            print table ": " $1 " has no row"
    }
    END {
        for (i = 1; i <= row_n; i++)
            if (!used[i])
                print place[i] ": there is no test " row[i]
    }' "$table" -
}
