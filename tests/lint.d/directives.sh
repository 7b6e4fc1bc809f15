# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# Directives, their manual and the example agree.

# "NAME DEFAULT" for each row of the tables of directives, which may be two of a name in different
# contexts; "NAME" alone for one that has no default and does not say so. A protocol's row without a
# default has none.
directives() {
    set -- "$src"/src/settings/*.c "$src"/src/features/*/*.c "$src"/src/event/mechanisms/*.c "$src"/src/protocols/*/*.c
    awk '
    function value(key,   text) {
        text = row
        if (!match(text, "\\." key " = [^,}]*"))
            return ""
        text = substr(text, RSTART + length(key) + 4, RLENGTH - length(key) - 4)
        sub(/ *$/, "", text)
        gsub(/"/, "", text)
        return text
    }
    /^ *\{ "[a-z_]+", [A-Z_]+_(MAIN|EVENTS|STREAM|SERVERS?|UPSTREAM|ANY)[ ,]/ || /^ *(\.options = \{ *)?\{ *\.name = "/ {
        row = ""
        open = 1
    }
    open {
        row = row " " $0
    }
    open && /\},?$/ {
        open = 0
        name = value("name")
        initial = value("initial")
        if (match(row, /\{ "[a-z_]+", [A-Z_]+_(MAIN|EVENTS|STREAM|SERVERS?|UPSTREAM|ANY)[ ,]/)) {
            split(row, word, "\"")
            name = word[2]
            if (initial == "")
                initial = value("unset")
        } else if (row ~ /\.value = FB_VALUE_/) {
            if (initial == "")
                initial = "none"
        } else if (FILENAME !~ /\/mechanisms\//)
            next
        print name, initial
    }' "$@" | sort -u
}

# The same for the entries of the manual.
manual_entries() {
    awk '
    /^\.It Ic / {
        name = $3
    }
    wanted {
        print name, $0
    }
    {
        wanted = $0 == ".It Default:"
    }' "$src/man/forkbeard.conf.5.in" | sort -u
}

# "NAME CONTEXT" for each context that the settings' tables allow, and the manual names.
allowed_contexts() {
    awk '
    match($0, /^ *\{ "[a-z_]+", [A-Z]+_(MAIN|EVENTS|STREAM|SERVERS?|UPSTREAM|ANY)[A-Z_| ]*,/) {
        n = split(substr($0, RSTART, RLENGTH), word, /[^A-Za-z_]+/)
        for (i = 3; i < n; i++) {
            sub(/^[A-Z]+_/, "", word[i])
            if (word[i] == "SERVERS") {
                print word[2], "stream"
                word[i] = "SERVER"
            }
            print word[2], tolower(word[i])
        }
    }' "$src"/src/settings/*.c "$src"/src/features/*/*.c | sort -u
}

manual_contexts() {
    awk '
    /^\.It Ic / {
        name = $3
    }
    wanted {
        n = split($0, context, / *, */)
        for (i = 1; i <= n; i++)
            print name, context[i]
    }
    {
        wanted = $0 == ".It Context:"
    }' "$src/man/forkbeard.conf.5.in" | sort -u
}

check_contexts() {
    allowed=$(allowed_contexts)
    named=$(manual_contexts)
    echo "$allowed" | while read -r name context; do
        among "$name $context" "$named" ||
            echo "$src/man/forkbeard.conf.5.in: \"$name\" does not name its context \"$context\""
    done
    echo "$named" | while read -r name context; do
        ! echo "$allowed" | grep -q "^$name " || among "$name $context" "$allowed" ||
            echo "$src/man/forkbeard.conf.5.in: \"$name\" is not allowed in \"$context\""
    done
}

check_directives() {
    example=$src/conf/forkbeard.conf.in
    manual=$(manual_entries)
    tables=$(directives)

    [ "$(echo "$tables" | wc -l)" -gt 20 ] || echo "$src/src: the tables of directives are not found"
    echo "$tables" | while read -r name initial; do
        entry=$(echo "$manual" | grep "^$name ")
        if [ -z "$initial" ]; then
            echo "$src/src: the row of \"$name\" has neither a default nor a word for none"
        elif [ -z "$entry" ]; then
            echo "$src/man/forkbeard.conf.5.in: \"$name\" has no entry with a default"
        elif ! among "$name $initial" "$entry"; then
            echo "$src/man/forkbeard.conf.5.in: the default of \"$name\" is \"$initial\"," \
                "not \"${entry#"$name "}\""
        fi
        grep -Eq "^[ #]*$name([ ;{]|\$)" "$example" || echo "$example: \"$name\" is not named"
    done
    echo "$manual" | while read -r name _; do
        echo "$tables" | grep -Eq "^$name( |\$)" ||
            echo "$src/man/forkbeard.conf.5.in: there is no directive \"$name\""
    done
    check_contexts
}
