# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# The table of verbs in the manual has the rows that tests have, in their order, and each cell begins
# as its test says: a row without a test, and a test without a row, are breaches.

# "NAME|CELL|TEXT" for each row of tests/daemon/verbs.def and each of its cells, "ID|state|" for
# the unit's state, and "ID|step|" where a step of the unit's test is the verb's.
verb_rows() {
    awk '
    function emit(   text, part) {
        text = row
        split("clients|sessions|unit|at most|back", cell, "|")
        split(text, part, "\"")
        for (i = 1; i <= 5; i++)
            print part[2] "|" cell[i] "|" part[2 + 2 * i]
        unit = text ~ /^VERB_UNIT/
        sub(/^[A-Z_]*\(/, "", text)
        sub(/,.*/, "", text)
        print text "|state|"
        if (unit)
            print text "|step|"
    }
    /^VERB/ {
        row = ""
    }
    /^VERB|^    / {
        row = row $0
    }
    /\)$/ && row != "" {
        emit()
        row = ""
    }' "$1"
}

# The same for the manual, as it reads, but in lower case.
verb_entries() {
    awk '
    function plain(line,   n, word, i, text) {
        n = split(line, word, " ")
        text = ""
        for (i = 1; i <= n; i++) {
            if (word[i] == "Fl")
                word[i + 1] = "-" word[i + 1]
            else if (word[i] == "Nm")
                text = text " forkbeard"
            else if (word[i] == ",")
                text = text ","
            else if (word[i] !~ /^(Cm|Dv|Ic|Ql|No|Pa|Ev|Sx|Dq|Ar)$/)
                text = text " " word[i]
        }
        sub(/^ /, "", text)
        gsub(/ \./, ".", text)
        return text
    }
    /^\.Sh / {
        inside = $2 == "VERBS"
    }
    !inside {
        next
    }
    /^\.(Bl|El|Pp)/ {
        if (cell != "")
            print name "|" cell "|" tolower(text)
        cell = ""
        depth += /^\.Bl/ ? 1 : /^\.El/ ? -1 : 0
        next
    }
    /^\.It / {
        if (cell != "")
            print name "|" cell "|" tolower(text)
        cell = ""
        if (depth == 1)
            name = plain(substr($0, 5))
        else if (depth == 2) {
            cell = substr($0, 5)
            text = ""
        }
        next
    }
    cell != "" {
        sub(/^\./, "")
        text = text (text == "" ? "" : " ") plain($0)
    }' "$1"
}

check_verbs() {
    manual=man/forkbeard.8.in
    rows=$(verb_rows "$src/tests/daemon/verbs.def")
    entries=$(verb_entries "$src/$manual")

    [ "$(echo "$rows" | wc -l)" -gt 20 ] || echo "$src/tests/daemon/verbs.def: the rows are not found"
    [ "$(echo "$rows" | grep -v '|$' | cut -d'|' -f1,2)" = "$(echo "$entries" | cut -d'|' -f1,2)" ] ||
        echo "$src/$manual: the rows of VERBS are not those of tests/daemon/verbs.def, in their order"
    echo "$rows" | while IFS='|' read -r name cell begins; do
        case $cell in
        step)
            grep -q "^$name() {" "$src/tests/init/systemd.test" ||
                echo "$src/tests/init/systemd.test: there is no step $name, which is a verb's test"
            continue
            ;;
        state)
            grep -q "^ *unit_is $name\$" "$src/tests/init/systemd.test" ||
                echo "$src/tests/init/systemd.test: the unit's state after the verb $name is not looked at"
            continue
            ;;
        esac
        said=$(echo "$entries" | awk -F'|' -v name="$name" -v cell="$cell" '
            $1 == name && $2 == cell {
                print $3
            }')
        begins=$(echo "$begins" | tr '[:upper:]' '[:lower:]')
        case $said in
        "$begins"[!a-z0-9_]* | "$begins") ;;
        *) echo "$src/$manual: \"$name\", $cell: the test asserts \"$begins\", the manual has \"$said\"" ;;
        esac
    done
}
