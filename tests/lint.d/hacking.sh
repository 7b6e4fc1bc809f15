# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# The documents for developers are true to the tree, and short: paths, functions and enumerators that
# they name exist, each folder of src/ has a README.md, and no document is longer than its limit.

hacking_documents() {
    for document in HACKING.md doc/architecture.md src/*/README.md tests/README.md bench/README.md; do
        for file in "$src"/$document; do
            [ ! -f "$file" ] || echo "$file"
        done
    done
}

# hacking_words PATTERN: "FILE LINE WORD" for each word of the documents that matches; words are of
# letters, digits and ._/()-
hacking_words() {
    hacking_documents | xargs awk -v pattern="$1" '
    {
        n = split($0, word, /[^A-Za-z0-9_.\/()-]+/)
        for (i = 1; i <= n; i++) {
            sub(/^\(/, "", word[i])
            if (word[i] !~ /\(\)[.:]*$/)
                sub(/\)[.:]*$/, "", word[i])
            sub(/[.:]+$/, "", word[i])
            if (word[i] ~ pattern)
                print FILENAME, FNR, word[i]
        }
    }' | sort -u -k 1,1 -k 3,3
}

# Paths start at the top of the tree, at src/, or at the document's folder. Programs are named without
# their .c, and files that configure makes without their .in. NAME and X stand for any name.
hacking_paths() {
    hacking_words '[a-z]/[a-z]|[a-z]/$|^\.?[a-z_A-Z]+\.(c|h|def|sh|md|in|pc|test)$' |
        while read -r file line path; do
            case $path in
            *NAME* | */X/* | src/forkbeard | -* | tmp/* | bsd/* | /* | *\(*) continue ;;
            esac
            [ -e "$src/$path" ] || [ -e "$src/src/$path" ] || [ -e "$src/$path.in" ] ||
                [ -e "$src/$path.c" ] || [ -e "${file%/*}/$path" ] || echo "$file:$line: there is no $path"
        done
}

# Enumerators by the prefixes that phases have, and functions, which are written as "name()".
hacking_names() {
    code=$(c_files src tests | xargs awk '{ gsub(/[^A-Za-z0-9_]+/, "\n"); print }' | sort -u)
    {
        hacking_words '^(CONN|SESSION|ACCEPT|WORKER|POOL_WORKER|GENERATION|RELOAD|MASTER|UPGRADE|ENDPOINTS|CLIENT|MESSAGE|ROLE|QUEUE|PHASE)_[A-Z_]+$'
        hacking_words '^[a-z][a-z0-9_]*\(\)$' | tr -d '()'
    } | while read -r file line name; do
        among "$name" "$code" || echo "$file:$line: there is no $name in the code"
    done
}

# hacking_length LINES FILE: rows of tables may be wider than 100 columns.
hacking_length() {
    if [ ! -f "$2" ]; then
        echo "$2: there is none"
        return
    fi
    awk -v most="$1" '
    length($0) > 100 && !/^\|/ {
        printf "%s:%d: wider than 100 columns\n", FILENAME, FNR
    }
    END {
        if (NR > most)
            printf "%s: %d lines; %d are the most\n", FILENAME, NR, most
    }' "$2"
}

hacking_lengths() {
    hacking_length 150 "$src/HACKING.md"
    hacking_length 150 "$src/README.md"
    hacking_length 200 "$src/doc/architecture.md"
    hacking_length 300 "$src/tests/README.md"
    hacking_length 100 "$src/bench/README.md"
    for folder in "$src"/src/*/; do
        hacking_length 15 "${folder}README.md"
    done
}

check_hacking() {
    hacking_paths
    hacking_names
    hacking_lengths
}
