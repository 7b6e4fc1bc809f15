# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# A comment names its subject: fewer than one in a hundred, of those with four words or more, begin
# with a word that only points at something. No line of a comment is wider than 100 columns.

vague='One Ones It Its Who Whoever What Whatever Has Have Of That Those These This As Is Are Where'
vague="$vague Which So Such Nobody Nothing Behind Then There Else Also And Or But Both All Each Same Not"

check_comments() {
    facts C src examples tests | awk -F '\t' -v vague="$vague" '
    BEGIN {
        n = split(vague, word, " ")
        for (i = 1; i <= n; i++)
            is_vague[tolower(word[i])] = 1
    }
    split($4, word, " ") >= 4 {
        all++
        first = tolower(word[1])
        gsub(/[^a-z]/, "", first)
        if (first in is_vague) {
            start = substr($4, 1, 60)
            sub(/[\200-\377]+$/, "", start) # half a character
            found[++found_n] = $2 ":" $3 ": a comment begins with \"" word[1] "\": " start
        }
    }
    END {
        if (found_n * 100 < all || found_n == 0)
            exit
        for (i = 1; i <= found_n; i++)
            print found[i]
        printf "%.1f %% of %d comments begin with such a word; it must be less than 1 %%\n",
            100 * found_n / all, all
    }'
    c_files src examples tests | xargs awk '
    FNR == 1 {
        within = 0
    }
    {
        is_comment = within || index($0, "/*")
        n = split($0, part, /\/\*/)
        if (is_comment)
            within = index(part[n], "*/") == 0
        width = $0
        gsub(/[\200-\277]/, "", width) # the further bytes of a character
        if (is_comment && length(width) > 100)
            printf "%s:%d: a line of a comment has %d columns; 100 are the most\n", FILENAME, FNR,
                length(width)
    }'
}
