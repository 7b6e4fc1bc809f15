# SPDX-License-Identifier: BSD-2-Clause
# Makes compile_commands.json of what `make -n V=1` prints: each command that compiles, without libtool
# and without what writes dependencies. `directory` is where they run.

function quoted(text) {
    gsub(/\\/, "\\\\\\\\", text)
    gsub(/"/, "\\\"", text)
    return "\"" text "\""
}

BEGIN {
    print "["
}
/ -c -o [^ ]+ .*\.c( |$)/ {
    sub(/^.*--mode=compile +/, "")
    sub(/ *(&&|;) *\\?$/, "")
    sub(/ -MT [^ ]+ -MD -MP -MF [^ ]+/, "")
    # `test -f 'x.c' || echo '../'`x.c
    sub(/`test -f '[^']*' \|\| echo '/, "")
    sub(/'`/, "")
    printf "%s{\n  \"directory\": %s,\n  \"file\": %s,\n  \"command\": %s\n}", n++ ? ",\n" : "",
        quoted(directory), quoted($NF), quoted($0)
}
END {
    print "\n]"
    exit n == 0
}
