# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# HACKING.md is true to the tree: every path that it names exists, its table of floors has every folder
# of src/ and no other, functions and phases that it names are in the code, and its tables of phases
# are those of the setters.

# hacking_words PATTERN: "LINE WORD" for each word of HACKING.md that matches; words are of letters,
# digits and ._/()-
hacking_words() {
    awk -v pattern="$1" '
    {
        n = split($0, word, /[^A-Za-z0-9_.\/()-]+/)
        for (i = 1; i <= n; i++) {
            sub(/[.:]+$/, "", word[i])
            if (word[i] ~ pattern)
                print FNR, word[i]
        }
    }' "$src/HACKING.md" | sort -u -k 2
}

# Programs are named without their .c, and files that configure makes without their .in. A name that
# stands for others, as in NAME.c, is none of the tree's.
hacking_paths() {
    hacking_words '[a-z]/[a-z]|^\.?[a-z_A-Z]+\.(c|h|def|sh|md|in|pc|test)$' | while read -r line path; do
        case $path in
        *NAME* | */X/* | -* | tmp/* | bsd/* | /* | *\(*) continue ;;
        esac
        [ -e "$src/$path" ] || [ -e "$src/src/$path" ] || [ -e "$src/src/protocols/$path" ] ||
            [ -e "$src/$path.in" ] || [ -e "$src/$path.c" ] || echo "$src/HACKING.md:$line: there is no $path"
    done
}

# The folders of the table of floors.
hacking_floors() {
    sed -n '/^    floor  /,/^$/s/^    \([a-z]*\)\/ .*/\1/p' "$src/HACKING.md"
}

hacking_folders() {
    floors=$(hacking_floors)
    [ -n "$floors" ] || echo "$src/HACKING.md: there is no table of floors"
    for folder in "$src"/src/*/; do
        folder=$(basename "$folder")
        [ "$folder" = include ] || among "$folder" "$floors" ||
            echo "$src/HACKING.md: src/$folder is not in the table of floors"
    done
    for folder in $floors; do
        [ -d "$src/src/$folder" ] ||
            echo "$src/HACKING.md: there is no src/$folder, which the table of floors has"
    done
}

# Enumerators by the prefixes that phases have, and functions, which are written as "name()".
hacking_names() {
    code=$(c_files src tests | xargs awk '{ gsub(/[^A-Za-z0-9_]+/, "\n"); print }' | sort -u)
    {
        hacking_words '^(CONN|SESSION|ACCEPT|WORKER|POOL_WORKER|GENERATION|RELOAD|MASTER|UPGRADE|ENDPOINTS|CLIENT|MESSAGE|ROLE|QUEUE)_[A-Z_]+$'
        hacking_words '^[a-z][a-z0-9_]*\(\)$' | tr -d '()'
    } | while read -r line name; do
        among "$name" "$code" || echo "$src/HACKING.md:$line: there is no $name in the code"
    done
}

# "FILE FROM TO" for each step that the setters' tables allow. A table is made of rows
# [FROM] = ... 1u << TO or TO(TO), where TO() puts the prefix in front.
phase_steps() {
    for file in "$@"; do
        awk -v file="${file#"$src/src/"}" '
        /^#define TO\(/ {
            match($0, /[A-Z_]+##/)
            prefix = substr($0, RSTART, RLENGTH - 2)
            next
        }
        {
            gsub(/\/\*.*\*\//, "")
            sub(/ *$/, "")
        }
        /^ *\[[A-Z_]+\] *= *(TO|1u|0,|$)/ {
            match($0, /\[[A-Z_]+\]/)
            from = substr($0, RSTART + 1, RLENGTH - 2)
        }
        from != "" {
            rest = $0
            while (match(rest, /(1u << |TO\()[A-Z_]+/)) {
                to = substr(rest, RSTART, RLENGTH)
                rest = substr(rest, RSTART + RLENGTH)
                if (sub(/^TO\(/, "", to))
                    to = prefix to
                sub(/^1u << /, "", to)
                print file, from, to
            }
        }
        /,$/ || /^ *\};/ {
            from = ""
        }' "$file"
    done | sort -u
}

# The same of HACKING.md, where the steps stand below "    FILE: TEXT".
hacking_steps() {
    awk '
    /^    [a-z_]+\/[a-z_]+\.[ch]: / {
        file = $1
        sub(/:$/, "", file)
        next
    }
    !/^    / {
        file = ""
    }
    file != "" && $1 ~ /^[A-Z_]+$/ {
        prefix = $1 ~ /^POOL_WORKER_/ ? "POOL_WORKER_" : $1
        if (prefix == $1)
            sub(/_.*/, "_", prefix)
        for (i = 2; i <= NF; i++)
            print file, $1, prefix $i
    }' "$src/HACKING.md" | sort -u
}

hacking_phases() {
    tables=$(c_files src | xargs grep -lE '^ *\[[A-Z_]+\] *= *(1u <<|TO\()')
    # shellcheck disable=SC2086 # a list of files
    steps=$([ -z "$tables" ] || phase_steps $tables)
    told=$(hacking_steps)
    echo "$steps" | while read -r file from to; do
        [ -z "$file" ] || among "$file $from $to" "$told" ||
            echo "$src/HACKING.md: $file lets $to follow $from, and the tables of phases do not"
    done
    echo "$told" | while read -r file from to; do
        [ -z "$file" ] || among "$file $from $to" "$steps" ||
            echo "$src/HACKING.md: the tables of phases let $to follow $from, and $file does not"
    done
}

check_hacking() {
    hacking_paths
    hacking_folders
    hacking_names
    hacking_phases
}
