# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# Texts name their nouns. Pronouns and placeholders are counted in comments of src/ and of tests/,
# in messages (string literals of src/) and in manuals: the share of all words, per mille, and the
# texts with a quarter or more. prose.limits has both for each kind, and a limit far above the count
# is a breach as well: limits only go down. A kind without a row may have 40 per mille and no
# such text. Comments and paragraphs of eight words and more count, and messages of four.
# FORKBEARD_TEST_PROSE=N shows texts with N % or more, the worst first.

pronouns='who whom whose what which that those this these such it its they them their one ones other
    others another each same former latter thing something somebody nobody whatever'

# "KIND TAB FILE TAB LINE TAB TEXT" for each comment, string literal and paragraph.
prose_texts() {
    facts CS src | sed 's/^C/src/; s/^S/messages/'
    facts C tests | sed 's/^C/tests/'
    find "$src/man" -name '*.[1-8].in' 2>/dev/null | sort | xargs awk -v root="$src/" '
    # Lines of macros are names and other words of code.
    function end_paragraph() {
        if (text != "")
            print "manuals\t" substr(path, length(root) + 1) "\t" start "\t" text
        text = ""
    }
    FNR == 1 {
        end_paragraph()
        within = 0
        path = FILENAME
    }
    /^\.(Pp|It|Sh|Ss|Bl|El|Bd)/ {
        end_paragraph()
    }
    /^\.Bd|^\.Ed/ {
        within = /^\.Bd/
    }
    !within && /^[^.]/ {
        if (text == "")
            start = FNR
        text = text " " $0
    }
    END {
        end_paragraph()
    }'
}

# Counts the texts of standard input: "KIND TEXTS WORDS PER_MILLE QUARTERS"; with a number, shows
# texts of so many per cent instead, as "SHARE KIND FILE:LINE: TEXT". Names with a "_" or a "(" and
# quoted text are code, and no prose.
prose_count() {
    awk -F '\t' -v pronouns="$pronouns" -v show="${1-}" '
    BEGIN {
        n = split(pronouns, word, /[ \n]+/)
        for (i = 1; i <= n; i++)
            is_pronoun[word[i]] = 1
        least["src"] = least["tests"] = least["manuals"] = 8
        least["messages"] = 4
    }
    {
        text = $4
        if ($1 == "messages") {
            gsub(/\\"/, "\"", text)
            gsub(/\\[a-z]|%[-+ #0-9.*]*[hlzjt]*[a-zA-Z]/, " ", text)
        }
        gsub(/"[^"]*"|`[^`]*`/, " ", text)
        n = split(tolower(text), word, /[ \t]+/)
        all = found = 0
        for (i = 1; i <= n; i++) {
            gsub(/^[^a-z0-9_]+|[^a-z0-9_()]+$/, "", word[i])
            if (word[i] ~ /^[a-z]+\)$/)
                sub(/\)$/, "", word[i])
            if (word[i] ~ /[_(]/ || word[i] !~ /[a-z]/)
                continue
            sub(/\047(s|ll|d|ve|re)$/, "", word[i])
            all++
            found += word[i] in is_pronoun
        }
        if (all < least[$1])
            next
        if (show != "" && 100 * found >= show * all) {
            gsub(/\\n/, " ")
            printf "%3d %% %s %s:%d: %s\n", 100 * found / all, $1, $2, $3, substr($4, 1, 200)
        }
        texts[$1]++
        words[$1] += all
        pronoun_n[$1] += found
        quarters[$1] += 4 * found >= all
    }
    END {
        for (kind in texts)
            if (show == "")
                printf "%s %d %d %.0f %d\n", kind, texts[kind], words[kind],
                    1000 * pronoun_n[kind] / words[kind], quarters[kind]
    }'
}

check_prose() {
    limits=$src/tests/lint.d/prose.limits
    [ -f "$limits" ] || limits=/dev/null
    if [ -n "${FORKBEARD_TEST_PROSE-}" ]; then
        prose_texts | prose_count "$FORKBEARD_TEST_PROSE" | sort -k1,1nr -k4
        return
    fi
    prose_texts | prose_count | sort | awk '
    function look(what, limit, slack, is, unit) {
        if (is > limit)
            printf "%s: %d %s; %d are the most (FORKBEARD_TEST_PROSE=25 shows texts)\n", what, is,
                unit, limit
        else if (is < limit && limit - is >= slack)
            printf "%s: %d %s; prose.limits has %d: lower it\n", what, is, unit, limit
    }
    BEGIN {
        share["?"] = 40
        count["?"] = 0
    }
    /^#/ {
        next
    }
    FILENAME != "-" {
        share[$1] = $2
        count[$1] = $3
        next
    }
    {
        row = $1 in share ? $1 : "?"
        name = $1 ~ /^(src|tests)$/ ? "comments of " $1 : $1
        look(name, share[row], row == "?" ? 41 : 5, $4, "pronouns and placeholders in 1,000 words")
        look(name, count[row], count[row] > 100 ? 20 : count[row] / 5, $5,
            "with a quarter of pronouns and placeholders")
    }' "$limits" -
}
