# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# State has an owner that is passed in: only process/ has variables of a file, and os/ for what ends the
# sleep of a process.

# All objects are read at once. One that is left over from an earlier tree has no source.
check_state() {
    objects=$(find ./src -name '*.o')
    [ -n "$objects" ] || echo "./src: no object is found"
    # the machine code, not the compiler's own form that objects for link-time optimisation have too
    target=$(echo "$objects" | head -n 1 | xargs -r objdump -f | sed -n 's/.*file format //p')
    echo "$objects" | xargs -r nm --target="$target" --format=sysv | awk -F'|' -v src="$src/" '
    function source_of(object) {
        sub(/^\.\//, "", object)
        sub(/\/\.libs\//, "/", object)
        sub(/\.o$/, ".c", object)
        if (match(object, /\/[^\/]*_l?a-[^\/]*$/)) {
            name = substr(object, RSTART + 1)
            sub(/.*_l?a-/, "", name)
            object = substr(object, 1, RSTART) name
        }
        return object
    }
    /^Symbols from / {
        source = $0
        sub(/^Symbols from /, "", source)
        sub(/:$/, "", source)
        source = source_of(source)
        is_asked = source !~ /^src\/(process\/|systemd\/|os\/posix\/wakeup\.c$)/ &&
            (getline line <(src source)) >= 0
        close(src source)
    }
    is_asked && NF == 7 {
        gsub(/ /, "")
        if ($7 ~ /^(\.t?data|\.t?bss|\*COM\*)/ && $7 !~ /^\.data\.rel\.ro/ && $1 !~ /^[_.]/ &&
            $4 ~ /OBJECT|TLS/)
            print source ": \"" $1 "\" is a variable of the file, which only process/ may have"
    }'
}
