# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# Files are formatted as .clang-format says, in a way that clang-format 14 to 19 agree on: the newest that
# is installed is asked, and each of them in a long run (FORKBEARD_TEST_LONG). In CI one has to be.

# formatters [COUNT]: the newest, each version once
formatters() {
    for formatter in clang-format clang-format-14 clang-format-19; do
        version=$($formatter --version 2>/dev/null | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
        [ "${version:-0}" -lt 14 ] || echo "$version $formatter"
    done | sort -u -k 1,1n | sed 's/.* //' | tail -n "${1:-1}"
}

check_format() {
    sources | xargs awk '
    /^[ \t]*for \(/ {
        head = $0
        sub(/\/\*.*/, "", head)
        if (gsub(/\(/, "", head) > gsub(/\)/, "", head))
            printf "%s:%d: the head of a \"for\" has more than one line\n", FILENAME, FNR
    }'
    found=$(formatters ${FORKBEARD_TEST_LONG:+99})
    [ -n "$found" ] || lacks "clang-format (14 or later)"
    for formatter in $found; do
        sources | xargs "$formatter" --dry-run -Werror 2>&1 | sed -n \
            "s/^\([^ ]*:[0-9]*\):[0-9]*: error: code should be.*/\1: not as $formatter has it/p"
    done | sort -u
}
