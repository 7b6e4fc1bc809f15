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
    {
        allowed_contexts | sed 's/^/allowed /'
        manual_contexts | sed 's/^/named /'
    } | awk -v manual="$src/man/forkbeard.conf.5.in" '
    {
        name = $2
        context = substr($0, length($1) + length(name) + 3)
        row[NR] = $1 "\t" name "\t" context
        there[$1, name, context]
        known[$1, name]
    }
    END {
        for (i = 1; i <= NR; i++) {
            split(row[i], field, "\t")
            name = field[2]
            context = field[3]
            if (field[1] == "allowed" && !(("named", name, context) in there))
                printf "%s: \"%s\" does not name its context \"%s\"\n", manual, name, context
            if (field[1] == "named" && (("allowed", name) in known) && !(("allowed", name, context) in there))
                printf "%s: \"%s\" is not allowed in \"%s\"\n", manual, name, context
        }
    }'
}

check_directives() {
    {
        manual_entries | sed 's/^/manual /'
        sed -n -E 's/^[ #]*([a-z0-9_]+)([ ;{].*)?$/example \1/p' "$src/conf/forkbeard.conf.in"
        directives | sed 's/^/table /'
    } | awk -v src="$src" '
    BEGIN {
        manual = src "/man/forkbeard.conf.5.in"
    }
    {
        name = $2
        initial = substr($0, length($1) + length(name) + 3)
    }
    $1 == "manual" {
        entry[name] = entry[name] initial "\n"
        next
    }
    $1 == "example" {
        named[name]
        next
    }
    {
        n++
        rows[name]
        if (initial == "")
            printf "%s/src: the row of \"%s\" has neither a default nor a word for none\n", src, name
        else if (!(name in entry))
            printf "%s: \"%s\" has no entry with a default\n", manual, name
        else if (index("\n" entry[name], "\n" initial "\n") == 0)
            printf "%s: the default of \"%s\" is \"%s\", not \"%s\"\n", manual, name, initial,
                substr(entry[name], 1, length(entry[name]) - 1)
        if (!(name in named))
            printf "%s/conf/forkbeard.conf.in: \"%s\" is not named\n", src, name
    }
    END {
        for (name in entry)
            if (!(name in rows))
                printf "%s: there is no directive \"%s\"\n", manual, name
        if (n <= 20)
            printf "%s/src: the tables of directives are not found\n", src
    }'
    check_contexts
}
