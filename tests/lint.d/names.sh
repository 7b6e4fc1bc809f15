# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# A public function is named after its file: its name is, or begins with, the file's name, its first
# word or two, or its folder's name, with a plural's "s" or without it. One in twenty need not be.
# "fb_" is the SDK's alone. A static function's name stands in one file; os/linux and
# os/posix are the same file of two systems.

check_names() {
    sdk=$({ sdk_functions && kit_functions; } | tr '\n' ' ')
    facts F src | awk -F '\t' -v sdk="$sdk" '
    function begins(name, prefix) {
        return prefix != "" && (name == prefix || index(name, prefix "_") == 1)
    }
    function fits(name, prefix,   single) {
        single = prefix
        sub(/s$/, "", single)
        return begins(name, prefix) || begins(name, single) || begins(name, prefix "s")
    }
    # The folder is the one that the file lies in; a file of a folder within one has both.
    function is_named_after(name, path,   part, depth, stem, word, n) {
        depth = split(path, part, "/")
        stem = part[depth]
        sub(/\.c$/, "", stem)
        n = split(stem, word, "_")
        return fits(name, stem) || fits(name, word[1]) ||
            (n > 2 && fits(name, word[1] "_" word[2])) ||
            (depth > 2 && (fits(name, part[2]) || fits(name, part[depth - 1])))
    }
    $4 == "static" && $2 ~ /\.c$/ {
        path = $2
        sub(/^src\/os\/posix\//, "src/os/linux/", path)
        if ($5 in place && place[$5] != path)
            print $2 ":" $3 ": " $5 "() stands in " place[$5] ", too"
        place[$5] = path
    }
    BEGIN {
        n = split(sdk, name, " ")
        for (i = 1; i <= n; i++)
            is_sdk[name[i]] = 1
    }
    $4 == "public" && $2 ~ /\.c$/ && !($5 in is_sdk) {
        all++
        if ($5 ~ /^fb_/)
            print $2 ":" $3 ": " $5 "() begins with fb_ and is not the SDK\047s"
        if (!is_named_after($5, $2))
            other[++other_n] = $2 ":" $3 ": " $5 "() is not named after its file or folder"
    }
    END {
        if (all == 0)
            print "no public function is found"
        if (other_n * 20 <= all)
            exit
        for (i = 1; i <= other_n; i++)
            print other[i]
        printf "%.1f %% of %d public functions are named after their files; 95 %% must be\n",
            100 * (all - other_n) / all, all
    }'
}
