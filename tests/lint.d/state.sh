# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# State has an owner that is passed in: only process/ has variables of a file.

# The source of an object, or nothing for one that is left over from an earlier tree.
source_of() {
    source=$(echo "$1" | sed -e 's|^\./||' -e 's|/\.libs/|/|' -e 's|\.o$|.c|' \
        -e 's|/[^/]*_l\{0,1\}a-\([^/]*\)$|/\1|')
    [ ! -e "$src/$source" ] || echo "$source"
}

check_state() {
    objects=$(find ./src -name '*.o')
    [ -n "$objects" ] || echo "./src: no object is found"
    for object in $objects; do
        source=$(source_of "$object")
        case $source in
        '' | src/process/* | src/systemd/*) continue ;;
        esac
        nm --format=sysv "$object" | awk -F'|' -v source="$source" '
        NF == 7 {
            gsub(/ /, "")
            if ($7 ~ /^(\.t?data|\.t?bss|\*COM\*)/ && $7 !~ /^\.data\.rel\.ro/ && $1 !~ /^[_.]/ &&
                $4 ~ /OBJECT|TLS/)
                print source ": \"" $1 "\" is a variable of the file, which only process/ may have"
        }'
    done
}
