# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# An include may only point down the floors.

check_floors() {
    find "$src/src" -name '*.[ch]' | sort | xargs awk -v root="$src/src/" '
    function breach(text) {
        printf "%s:%d: %s\n", FILENAME, FNR, text
    }
    function quoted(target,   to) {
        if (target !~ /\//)
            return breach("\"" target "\" is not rooted at src/")
        to = target
        sub(/\/.*/, "", to)
        if (!(to in floor))
            return breach("there is no floor for \"" target "\"")
        if (from == "include")
            return breach("the SDK includes \"" target "\"")
        if (protocol != "" && index(target, "protocols/" protocol "/") != 1)
            return breach("a protocol includes \"" target "\" and not only the SDK")
        if (floor[to] > floor[from])
            breach("\"" target "\" lies above " from "/")
    }
    function angled(target) {
        if (target ~ /^forkbeard\// && target != "forkbeard/types.h" && from != "include" &&
            from !~ /^(protocols|kit|checked|sdk|worker|settings|session|text|backends|features|module|upstream|names)$/)
            return breach("<" target "> is not for " from "/")
        if (target == "forkbeard/types.h" && from != "include" && floor[from] < floor["net"])
            return breach("<" target "> is not for " from "/")
        if (protocol != "" && target ~ /\// && target !~ /^(forkbeard|sys|netinet|arpa)\//)
            breach("a protocol includes <" target "> and not only the SDK and the C library")
    }
    BEGIN {
        n = split("os base shm conf event net tls names upstream sim module session text backends " \
            "settings features systemd process pidfile channel configuration sandbox " \
            "keeper worker pool sdk checked control upgrade master cli kit protocols", names, " ")
        for (i = 1; i <= n; i++)
            floor[names[i]] = i
    }
    FNR == 1 {
        path = substr(FILENAME, length(root) + 1)
        depth = split(path, part, "/")
        from = part[1]
        protocol = from == "protocols" && depth > 2 ? part[2] : ""
        if (path != "main.c" && from != "include" && !(from in floor))
            breach("there is no floor for it")
    }
    path == "main.c" || (from != "include" && !(from in floor)) {
        next
    }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        split($0, word, "\"")
        quoted(word[2])
    }
    /^[ \t]*#[ \t]*include[ \t]*</ {
        split($0, word, /[<>]/)
        angled(word[2])
    }'
}
