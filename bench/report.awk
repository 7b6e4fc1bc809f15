# SPDX-License-Identifier: BSD-2-Clause
# Makes the tables of bench/RESULTS.md of the records that the measurements have written; with
# summary=1 the short one for README.md alone, with mechanisms=1 that of event mechanisms alone, with
# tls=1 that of TLS alone.

function number(n)
{
    if (n == "")
        return "n/a"
    return sprintf(n == 0 ? "%d" : n < 10 ? "%.2f" : n < 100 ? "%.1f" : "%.0f", n)
}

# The columns: all servers of which there is a record of this measure, in one order.
function columns(measure,    i, n)
{
    n = 0
    for (i = 1; i <= peers_n; i++)
        if ((measure, peers[i]) in has)
            column[++n] = peers[i]
    return n
}

function header(first, n,    i, line)
{
    line = "| " first " |"
    for (i = 1; i <= n; i++)
        line = line " " column[i] " |"
    print line
    line = "|---|"
    for (i = 1; i <= n; i++)
        line = line "---:|"
    print line
}

# A cell of CPU time: the figure, and how often the limit server's it is.
function cpu_cell(row, peer,    t, ratio)
{
    t = time[row, peer, "cpu_us"]
    ratio = time[row, peer, "ratio"]
    if (t == "")
        return ""
    if (ratio == "" || peer == "limit" || peer == "under-epoll")
        return number(t)
    return sprintf("%s (%.2f)", number(t), ratio)
}

function instruction_cell(row, peer,    n)
{
    n = instructions[row, peer]
    return n == "" ? "" : sprintf("%d", n)
}

function latency_cell(row, peer)
{
    if (time[row, peer, "p50_us"] == "" || row ~ /bulk/)
        return ""
    return number(time[row, peer, "p50_us"]) " / " number(time[row, peer, "p99_us"]) " / " \
        number(time[row, peer, "p999_us"])
}

function cell(kind, row, peer)
{
    if (kind == "cpu")
        return cpu_cell(row, peer)
    if (kind == "instructions")
        return instruction_cell(row, peer)
    if (kind == "rate")
        return time[row, peer, "rate"] == "" ? "" : sprintf("%d", time[row, peer, "rate"])
    return latency_cell(row, peer)
}

function table(kind, measure,    n, i, j, line)
{
    n = columns(measure)
    if (n == 0)
        return
    header("row", n)
    for (i = 1; i <= rows_n; i++) {
        if (!((measure, rows[i]) in has))
            continue
        line = "| " rows[i] " |"
        for (j = 1; j <= n; j++)
            line = line " " cell(kind, rows[i], column[j]) " |"
        print line
    }
    print ""
}

function calls_table(row,    n, i, j, k, line, total)
{
    k = columns("calls")
    n = 0
    for (i = 1; i <= k; i++)
        if ((row, column[i]) in total_calls)
            column[++n] = column[i]
    header("`" row "`", n)
    for (i = 1; i <= names_n; i++) {
        if (!((row, names[i]) in has_name))
            continue
        line = "| " names[i] " |"
        for (j = 1; j <= n; j++)
            line = line " " calls[row, column[j], names[i]] " |"
        print line
    }
    line = "| all |"
    for (j = 1; j <= n; j++)
        line = line sprintf(" %.2f |", total_calls[row, column[j]])
    print line
    print ""
}

function loss(peer, kind, share)
{
    return sprintf(", %s %s %.2f of ours", peer, kind, share)
}

# Rows of the table in which another server, that is not a limit, has the better figure.
function losses(    i, j, r, p, t, list)
{
    for (i = 1; i <= rows_n; i++) {
        r = rows[i]
        list = ""
        for (j = 1; j <= peers_n; j++) {
            p = peers[j]
            if (p ~ /^forkbeard/ || p ~ /^limit/)
                continue
            t = time[r, p, "cpu_us"]
            if (t != "" && t < 0.97 * time[r, "forkbeard", "cpu_us"])
                list = list loss(p, "CPU time", t / time[r, "forkbeard", "cpu_us"])
            t = instructions[r, p]
            if (t != "" && t < 0.97 * instructions[r, "forkbeard"])
                list = list loss(p, "instructions", t / instructions[r, "forkbeard"])
        }
        if (list != "")
            print "- `" r "`: " substr(list, 3)
    }
}

# The name of a mechanism, of the word by which bench/mechanisms measured it.
function mechanism_name(word)
{
    sub(/^[^-]*-/, "", word)
    return word
}

function mechanisms_table(    i, j, share, shims, line, list, better)
{
    line = "| row |"
    for (i = 1; i <= under_n; i++) {
        line = line " " mechanism_name(under[i]) " |"
        if (under[i] ~ /^shim-/)
            shims = shims (shims == "" ? "" : ", ") mechanism_name(under[i])
    }
    print line
    line = "|---|"
    for (i = 1; i <= under_n; i++)
        line = line "---:|"
    print line
    for (i = 1; i <= rows_n; i++) {
        if (!(("under", rows[i]) in has))
            continue
        line = "| " rows[i] " |"
        list = ""
        for (j = 1; j <= under_n; j++) {
            line = line " " cpu_cell(rows[i], under[j]) " |"
            share = time[rows[i], under[j], "ratio"]
            if (share != "" && share < 0.97)
                list = list sprintf(", %s %.2f", mechanism_name(under[j]), share)
        }
        print line
        if (list != "")
            better = better "- `" rows[i] "`: " substr(list, 3) "\n"
    }
    if (shims != "")
        print "\nOver shims of tests/shims, whose cost is in the figures: " shims "."
    if (better != "")
        print "\nRows in which another one takes less than 0.97 of epoll's time:\n\n" better
}

function tls_table(    n, i, j, line)
{
    n = columns("tls")
    header("row", n)
    for (i = 1; i <= tls_n; i++) {
        line = "| " tls_rows[i] " |"
        for (j = 1; j <= n; j++)
            line = line " " shown(tls_figure[tls_rows[i], column[j]]) " |"
        print line
    }
    print ""
}

function summary_table(    i, j, n, r, line)
{
    n = split("forkbeard nginx haproxy limit", column, " ")
    print "| | CPU µs, Forkbeard | nginx | HAProxy | smallest " \
        "| instructions, Forkbeard | nginx | HAProxy | smallest |"
    print "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for (i = 1; i <= rows_n; i++) {
        r = rows[i]
        if (r ~ /rate$/)
            continue
        line = "| " what[r] " |"
        for (j = 1; j <= n; j++)
            line = line " " shown(time[r, column[j], "cpu_us"]) " |"
        for (j = 1; j <= n; j++)
            line = line " " instruction_cell(r, column[j]) " |"
        print line
    }
}

function shown(n)
{
    return n == "" ? "" : number(n)
}

BEGIN {
    peers_n = split("forkbeard forkbeard-group limit limit-splice nginx nginx-group haproxy " \
        "haproxy-splice libevent libuv", peers, " ")
}

$1 == "what" {
    rows[++rows_n] = $2
    line = $0
    sub(/^what [^ ]+ /, "", line)
    what[$2] = line
    next
}

{
    has[$1, $3] = has[$1, $2] = 1
}

$1 == "time" && $3 ~ /^(under|shim)-/ {
    has["under", $2] = 1
    if (!($3 in is_under))
        under[is_under[$3] = ++under_n] = $3
}

$1 == "time" {
    for (i = 4; i < NF; i += 2)
        time[$2, $3, $i] = $(i + 1)
}

$1 == "instructions" {
    instructions[$2, $3] = $4
}

$1 == "calls" {
    if (!($4 in name_number))
        names[name_number[$4] = ++names_n] = $4
    if (!($2 in call_row))
        call_rows[call_row[$2] = ++call_rows_n] = $2
    has_name[$2, $4] = 1
    calls[$2, $3, $4] = $5
    total_calls[$2, $3] += $5
}

$1 == "memory" {
    memory[++memory_n] = "| " $3 " | " $2 " | " $4 " | " $5 " |"
}

$1 == "proxied" {
    proxied[++proxied_n] = "| " $3 " | " $2 " | " $4 " | " $5 " |"
}

$1 == "spread" {
    spread[++spread_n] = "| " $3 " | " $2 " | " $4 " | " $5 " | " $6 " |"
}

$1 == "wakeups" {
    wakeups[++wakeup_n] = "| " $3 " | " $2
    for (i = 4; i <= NF; i++)
        wakeups[wakeup_n] = wakeups[wakeup_n] " | " $i
}

$1 == "many" {
    many[++many_n] = "| " $2 " | " $7 " | " $4 " | " $5 " | " $6 " |"
}

$1 == "aio" {
    gsub(/_/, " ", $2)
    aio[++aio_n] = "| " $2 " | " $3 " | " $4 " | " $5 " | " $6 " | " $7 " |"
}

$1 == "aio_disk" {
    aio_disk = $2
}

$1 == "ratio" {
    ratio = $4
}

$1 == "tls" {
    if (!($2 in tls_row))
        tls_rows[tls_row[$2] = ++tls_n] = $2
    tls_figure[$2, $3] = $4
}

END {
    if (summary) {
        summary_table()
        exit
    }
    if (mechanisms) {
        mechanisms_table()
        exit
    }
    if (tls) {
        tls_table()
        exit
    }
    print "## CPU time of an operation\n"
    print "Microseconds of all of the server's processes, as the kernel accounts them, one worker"
    print "on one processor; in brackets the multiple of the limit server's. Medians of rounds.\n"
    table("cpu", "time")
    print "## Latency\n"
    print "Microseconds: median / 99 % / 99.9 %. Rows that end with `rate` are at fixed times, and"
    print "count from these (open loop); the others send when an answer has come: full load.\n"
    table("latency", "time")
    print "## Operations a second\n"
    table("rate", "time")
    if (columns("instructions") > 0) {
        print "## User-space instructions of an operation\n"
        print "Counted by callgrind: the difference of two runs. Figures of several clients vary by"
        print "about 3 % with how events come together.\n"
        table("instructions", "instructions")
    }
    if (call_rows_n > 0) {
        print "## System calls of an operation\n"
        print "Counted by `strace -c -f`: the difference of two runs of single clients.\n"
        for (i = 1; i <= call_rows_n; i++)
            calls_table(call_rows[i])
    }
    if (memory_n > 0) {
        print "## Memory of an idle connection\n"
        print "Bytes: proportional set size of all of the server's processes; one worker.\n"
        print "| server | connections | whole tree | growth |"
        print "|---|---:|---:|---:|"
        for (i = 1; i <= memory_n; i++)
            print memory[i]
        print ""
    }
    if (proxied_n > 0) {
        print "## Memory of an idle proxied session\n"
        print "Bytes of a session after one exchange, as above; two workers.\n"
        print "| proxy | sessions | whole tree | growth |"
        print "|---|---:|---:|---:|"
        for (i = 1; i <= proxied_n; i++)
            print proxied[i]
        print ""
    }
    if (spread_n > 0) {
        print "## Spread over four workers\n"
        print "The fullest worker's connections over the mean.\n"
        print "| server | accepting | " spread_of \
            " at 2,000 a second | the same, 4 others busy | 64 busy |"
        print "|---|---|---:|---:|---:|"
        for (i = 1; i <= spread_n; i++)
            print spread[i]
        print ""
    }
    if (wakeup_n > 0) {
        print "## Wake-ups\n"
        print "How often workers wake, and the microseconds of CPU time of all of them, for a client that"
        print "connects and is sent a line: the first after a second of quiet, and so many a second.\n"
        print "| server | workers | first | 20/s | 100/s | 1,000/s | µs, 20/s | 100/s | 1,000/s |"
        print "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
        for (i = 1; i <= wakeup_n; i++)
            print wakeups[i] " |"
        print ""
    }
    if (aio_n > 0) {
        print "## An echo beside a large file\n"
        print "Microseconds that an exchange takes at fixed times, while the same worker sends a file to"
        print "100 others in each way of `aio`, and MiB a second that these receive. The file's pages are"
        print "dropped from the page cache again and again" \
            (aio_disk == "" ? "." : ", and the disk gives " aio_disk " bytes a second.") "\n"
        print "| aio | p50 | p99 | p99.9 | max | MiB/s |"
        print "|---|---:|---:|---:|---:|---:|"
        for (i = 1; i <= aio_n; i++)
            print aio[i]
        print ""
    }
    if (many_n > 0) {
        print "## Many connections\n"
        print "CPU time of an exchange while all are open; as many exchanges a second for each.\n"
        print "| connections | workers | CPU µs | p50 | p99 |"
        print "|---:|---:|---:|---:|---:|"
        for (i = 1; i <= many_n; i++)
            print many[i]
        if (ratio != "")
            print "\nRatio: " ratio "."
        print ""
    }
    print "## Rows in which another server is better by more than 3 %\n"
    losses()
}
