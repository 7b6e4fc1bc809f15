# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# Rules that are seen in each file by itself: the licence, the length, no #if within a function.

check_text() {
    sources | xargs awk '
    function breach(text) {
        printf "%s:%d: %s\n", FILENAME, FNR, text
    }
    FNR == 1 {
        within = 0
        if ($0 != "/* SPDX-License-Identifier: BSD-2-Clause */")
            breach("the first line is not the SPDX line")
    }
    FNR == 501 {
        breach("the file has more than 500 lines")
    }
    /^\{/ {
        within = 1
    }
    /^\}/ {
        within = 0
    }
    within && /^[ \t]*#[ \t]*if/ {
        breach("#if within a function")
    }'
}
