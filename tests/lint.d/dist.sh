# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154 # read by tests/lint
# "make dist" packs each file that git has, but those of the top whose names begin with a dot.

check_dist() {
    files=$(git -c safe.directory='*' -C "$src" ls-files 2>/dev/null | grep -v '^\.')
    [ -n "$files" ] && [ -f Makefile ] || return 0
    { make -s --no-print-directory list-dist | tail -n 1 | tr ' ' '\n' | sed "s|^$src/||" && echo && echo "$files"; } | awk '
    /^$/ {
        listed = 1
        next
    }
    !listed {
        packed[$1] = 1
        next
    }
    {
        path = $1
        while (!(path in packed) && sub("/[^/]*$", "", path))
            ;
        if (!(path in packed))
            print $1 ": \"make dist\" does not pack it"
    }'
}
