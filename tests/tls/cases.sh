# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2094,SC2154,SC2034 # read by tests/tls.test, and files that others wait for
# Cases of tests/tls.test, a function part_NAME each.

# has_lines FILE PATTERN [NUMBER]: so many lines, or one at least
has_lines() {
    [ "$(grep -c -E -e "$2" "$1")" -ge "${3-1}" ]
}

# logged PATTERN: a session has ended so
logged() {
    eventually has_lines tls.log "$1"
}

# replied FILE: what came back, or that nothing will
replied() {
    within 60 grep -q -E '0123456789|^closed|errno=|:error:' "$1"
}

# ask FILE PORT ARGUMENT ...: openssl sends a line, and has to get it back; FILE has all it says
ask() {
    asked=$1
    shift
    : >"$asked"
    { cat small && replied "$asked"; } | s_client "$@" >"$asked" 2>&1
    grep -q 0123456789 "$asked"
}

answers() {
    ask "$@" || fail "openssl s_client $*: $(cat "$1")"
}

# refuses ALERT FILE PORT ARGUMENT ...
refuses() {
    alert=$1
    shift
    ! ask "$@" || fail "openssl s_client $*: is served"
    grep -q -i "alert.*number $alert" "$1" || fail "openssl s_client $*: not alert $alert: $(cat "$1")"
}

# ---- Ends ----

part_ends() {
    printf '' | s_client 7002 -ign_eof >bye 2>&1
    for word in bye closed; do
        grep -q -x $word bye || fail "openssl: no end by close_notify: $(cat bye)"
    done
    [ -e kept ] || mkfifo kept
    : >kept.out
    openssl s_client -connect "$ours:7012" -servername openssl.test -quiet <kept >kept.out 2>&1 &
    client=$!
    exec 3>kept
    cat small >&3
    eventually grep -q 0123456789 kept.out
    kill -KILL $client
    { wait $client; } 2>/dev/null # the shell tells of the signal
    exec 3>&-
    logged '^openssl.test 7012 '
    [ "$server" = nginx ] || eventually has_lines truncated.log 'without close_notify'
    if [ -d nss ]; then
        timeout 60 tstclnt -d sql:nss -a nss.test -h "$ours" -p 7002 <small >nss.out 2>nss.said ||
            fail "nss: no end by close_notify: $(cat nss.said)"
        grep -q -x bye nss.out || fail "nss: no bytes before the end: $(cat nss.said)"
    fi
    if has "${python:-python3}"; then
        quietly python pieces 7001
        [ "$server" = nginx ] || quietly python glued 7001
        quietly python ended 7002
        quietly python truncated 7012
        quietly python damaged 7012
    fi
}

# ---- Names, ALPN, the pair of a key ----

part_choices() {
    answers alpn 7001 -alpn h2,echo
    logged '^openssl.test 7001 TLSv1.3 .* alpn=echo '
    answers alpn 7001 -alpn h2 -tls1_2
    logged '^openssl.test 7001 TLSv1.2 .* alpn=h2 '
    refuses 120 alpn 7001 -alpn smtp
    named=-noservername
    answers unnamed 7001
    named='-servername openssl.test'
    logged '^-? 7001 '
    answers pair 7001 -sigalgs RSA-PSS+SHA256
    grep -q -i 'Peer signature type: RSA.PSS' pair || fail "not RSA: $(cat pair)"
    answers pair 7001 -sigalgs ECDSA+SHA256
    grep -q -i 'Peer signature type: ECDSA' pair || fail "not ECDSA: $(cat pair)"
    [ "$server" = forkbeard ] || return 0
    refuses 112 rejected 7007
    eventually has_lines rejected.log 'handshake rejected while SSL handshaking'
    refuses 112 rejected 7008
    answers one 7008 -servername one.test
    answers two 7008 -servername two.test
    for version in 1_2 1_3; do
        answers logged 7017 -tls$version -keylogfile client.log
    done
    sort client.log | sed '/^#/d' >client.sorted
    sort keys.log | cmp client.sorted - || fail "not the client's keys: $(cat keys.log)"
    case $(ls -l keys.log) in -rw-------*) ;; *) fail "keys.log is open to others" ;; esac
    for version in 1_2 1_3; do
        answers stapled 7016 -tls$version -status
        grep -q 'OCSP Response Status: successful' stapled || fail "no response of OCSP: $(cat stapled)"
        answers stapled 7012 -tls$version -status
        grep -q 'OCSP response: no response sent' stapled || fail "a response of OCSP: $(cat stapled)"
    done
    [ "$(grep -c -i 'Peer signature type: RSA.PSS' one two)" = "one:0
two:1" ] || fail "names have each other's certificates"
}

# ---- Resumption ----

part_resumption() {
    for version in 1_2 1_3; do
        answers first 7001 -tls$version -sess_out session.$version
        grep -q '^New, TLSv' first || fail "openssl: not a new session: $(cat first)"
        for _ in 1 2 3 4; do
            answers again 7001 -tls$version -sess_in session.$version
            grep -q '^Reused, TLSv' again || fail "openssl: TLS $version is not resumed: $(cat again)"
        done
        logged "^openssl.test 7001 TLSv$(echo $version | tr _ .) .* reused=r "
        ! has "${python:-python3}" || quietly python resumed 7001 TLSv$version
    done
    answers again 7001 -tls1_2 -reconnect
    has_lines again '^Reused, TLSv1.2' 5 || fail "openssl -reconnect: $(cat again)"
    has gnutls-cli || return 0
    for version in 1.2 1.3; do
        : >again
        { cat small && within 60 grep -q 0123456789 again; } |
            gnutls 7001 --resume --waitresumption --priority "NORMAL:-VERS-ALL:+VERS-TLS$version" \
                >again 2>again.said
        grep -q 'This is a resumed session' again ||
            fail "gnutls-cli: TLS $version is not resumed: $(cat again.said again)"
    done
}

# page PORT PATTERN: whether a server of openssl behind the port shows a handshake like that
page() {
    printf 'GET / HTTP/1.0\r\n\r\n' | socat -T 60 -,ignoreeof "TCP:$ours:$1" >page 2>&1
    grep -q "$2" page
}

part_servers() {
    begin openssl s_server -accept "$ours:7033" -cert ecdsa.pem -key ecdsa.key -www -tls1_2
    begin openssl s_server -accept "$ours:7034" -cert ecdsa.pem -key ecdsa.key -www -tls1_3
    for case in '7031 TLSv1.2' '7032 TLSv1.3'; do
        eventually page "${case% *}" "${case#* }, Cipher"
        grep -q '^New' page || fail "openssl s_server: not a new session: $(cat page)"
        # the first ticket may still be under way
        eventually page "${case% *}" "^Reused, ${case#* }"
        page "${case% *}" "^Reused, ${case#* }" || fail "openssl s_server: not resumed: $(cat page)"
    done
}

# ---- KeyUpdate, and what TLS 1.2 had in its place ----

# commands FILE SAID: a megabyte, and another one behind each letter
commands() {
    n=$(wc -c <big) number=0
    cat big
    for letter in k K K k; do
        number=$((number + 1))
        within 60 has_size "$1" $((number * n)) || return
        echo $letter
        within 60 has_lines "$2" KEYUPDATE $number || return
        cat big
    done
    within 60 has_size "$1" $((5 * n))
}

# rekeys FILE: lines, a command, and the lines again
rekeys() {
    cat few
    within 60 has_lines "$1" '^[0-9]+$' 3000 || return
    echo '^rekey^'
    within 60 has_lines "$1" 'Rekey was completed' || return
    cat few
    within 60 has_lines "$1" '^[0-9]+$' 6000
}

# renews: a line, and the command of a new handshake, until that has failed
renews() {
    cat small
    within 60 has_size renewed "$(wc -c <small)" || return
    echo R
    within 60 has_lines renewed.said ':error:|errno='
}

part_updates() {
    : >updated
    commands updated updated.said | s_client 7001 -tls1_3 -quiet -no_ign_eof >updated 2>updated.said ||
        fail "openssl: KeyUpdate: $(cat updated.said)"
    cat big big big big big | cmp - updated || fail "openssl: KeyUpdate: other bytes came back"
    : >renewed
    : >renewed.said
    renews | s_client 7001 -tls1_2 -quiet -no_ign_eof >renewed 2>renewed.said
    grep -q RENEGOTIATING renewed.said || fail "openssl: no renegotiation was tried: $(cat renewed.said)"
    logged '^openssl.test 7001 TLSv1.2 .* 11/11 '
    has gnutls-cli || return 0
    : >updated
    rekeys updated | gnutls 7001 --inline-commands >updated 2>updated.said ||
        fail "gnutls-cli: KeyUpdate: $(cat updated.said)"
    grep -E '^[0-9]+$' updated >rest
    cat few few | cmp - rest || fail "gnutls-cli: KeyUpdate: other bytes came back"
}

# ---- Old versions ----

part_versions() {
    refuses 70 old 7001 -tls1 -cipher ALL:@SECLEVEL=0
    refuses 70 old 7001 -tls1_1 -cipher ALL:@SECLEVEL=0
    refuses 70 old 7103 -tls1_2
    refuses 70 old 7100 -tls1_3
    refuses 40 old 7100 -tls1_2 -cipher ECDHE-ECDSA-AES256-GCM-SHA384
}

# ---- Certificates of clients ----

part_verify() {
    for version in 1_2 1_3; do
        number=$(echo $version | tr _ .)
        for port in 7003 7004; do
            answers verify $port -tls$version -cert client.pem -key client.key
            logged "^openssl.test $port TLSv$number .* verify=SUCCESS "
            ! ask verify $port -tls$version -cert wrong.pem -key wrong.key ||
                fail "port $port takes the certificate of a stranger"
            logged "^openssl.test $port TLSv$number .* verify=FAILED:"
        done
        ! ask verify 7003 -tls$version || fail "no certificate is needed"
        logged "^openssl.test 7003 TLSv$number .* verify=NONE "
        answers verify 7004 -tls$version
        logged "^openssl.test 7004 TLSv$number .* verify=NONE "
    done
    eventually has_lines log 'client SSL certificate verify error: \(.*while SSL handshaking' 4
    eventually has_lines log 'client sent no required SSL certificate while SSL handshaking' 2
}

# ---- What is no TLS, or not in time ----

# garbage BYTES: a client that sends them costs one line
garbage() {
    number=$((number + 1))
    # shellcheck disable=SC2059 # bytes that no text can have
    printf "$1" | socat -t 60 -T 60 - "TCP:$ours:7011" >garbage.out 2>&1
    eventually has_lines garbage.log 'while SSL handshaking' $number
}

part_refusals() {
    socat -T 60 -u "TCP:$ours:7005" - >silent.out 2>&1
    [ "$server" = nginx ] || eventually has_lines silent.log 'client timed out \(.*\) while SSL handshaking'
    number=$(grep -c 'while SSL handshaking' garbage.log)
    garbage 'GET / HTTP/1.1\r\nHost: one.test\r\n\r\n'
    garbage 'EHLO one.test\r\n'
    garbage '\0'
    garbage '\026\003\001\377\377'
    garbage '\026\003\001\0\0'
    garbage '\026\003\001\0\005\002\0\0\001\0'
    garbage '\026\003\001\0\004\001\377\377\377'
    garbage '\026\003\001\002\0\001'
    garbage '\025\003\001\0\002\002\050'
    garbage '\027\003\003\0\020aaaaaaaaaaaaaaaa'
    garbage '\200\056\001\003\001\0\025\0\0\0\020'
    [ "$(grep -c 'while SSL handshaking' garbage.log)" = $number ] ||
        fail "more than a line of a client: $(cat garbage.log)"
    answers honest 7011
}

# ---- The PROXY protocol in front of TLS ----

# listens PORT: one of haproxy's
listens() {
    socat -u /dev/null "TCP:$theirs:$1" 2>/dev/null
}

part_proxied() {
    if has "${python:-python3}"; then
        quietly python proxied 7006 1
        quietly python proxied 7006 2
        eventually has_lines tls.log '^python.test 7006 .* from=192.0.2.1$' 2
    fi
    if [ "$server" = forkbeard ]; then
        answers told 7014 -cert client.pem -key client.key -alpn h2
        eventually has_lines tlvs.log \
            '^openssl.test alpn=h2 verify=0 TLSv1.3 cn=client TLS_[^ ]* ecdsa-with-SHA256 RSA2048 certificate=-$'
        answers told 7014 -tls1_2
        eventually has_lines tlvs.log \
            '^openssl.test alpn=- verify=1 TLSv1.2 cn=- ECDHE-RSA-[^ ]* ecdsa-with-SHA256 RSA2048 certificate=-$'
        answers told 7015 -cert client.pem -key client.key
        eventually has_lines tlvs.log ' cn=client .* EC256 certificate=0'
    fi
    has haproxy || return 0
    cat rsa.pem rsa.key >haproxy.pem
    cat >haproxy.conf <<EOF
defaults
    mode tcp
    timeout connect 5s
    timeout client 30s
    timeout server 30s
listen v1
    bind $theirs:7001
    server forkbeard $ours:7006 send-proxy
listen v2
    bind $theirs:7002
    server forkbeard $ours:7006 send-proxy-v2
listen tls
    bind $theirs:7003 ssl crt haproxy.pem ca-file ca.pem verify optional alpn echo,h2
    server forkbeard $ours:7013 send-proxy-v2-ssl-cn proxy-v2-options cert-key,cert-sig,ssl-cipher,authority
EOF
    begin haproxy -db -f haproxy.conf
    for port in 7001 7002; do
        eventually listens $port
        answers proxied "$theirs:$port"
    done
    eventually has_lines tls.log '^openssl.test 7006 .* from=127.0.0.1$' 2
    [ "$server" = forkbeard ] || return 0
    eventually listens 7003
    for address in "$theirs:7003" "$ours:7014"; do
        for version in 1_2 1_3; do
            lines=$(wc -l <tlvs.log)
            answers told "$address" -tls$version -alpn echo -cert client.pem -key client.key
            eventually has_lines tlvs.log . $((lines + 1))
            tail -n 1 tlvs.log >"told.$version.${address#*:}"
        done
    done
    for version in 1_2 1_3; do
        cmp told.$version.7003 told.$version.7014 ||
            fail "haproxy and forkbeard tell servers differently: $(cat told.$version.*)"
    done
}

# ---- Many at once ----

part_many() {
    has "${python:-python3}" || return 0
    quietly python many 7001 200
}

# ---- Reloads ----

# certificate_is NAME
certificate_is() {
    s_client 7010 </dev/null 2>/dev/null | grep -q -E "^subject=CN ?= ?$1\$"
}

# says TEXT: the kept session does, and gets it back
says() {
    echo "$1" >&4
    eventually grep -q -x "$1" held.out
}

part_reload() {
    mkfifo held
    s_client 7010 -quiet -no_ign_eof -nocommands <held >held.out 2>held.said &
    client=$!
    exec 4>held
    says 1
    certificate_is swap || fail "not the first certificate"
    cp swapped.key swap.key && cp swapped.pem swap.pem
    answers first 7001 -sess_out session.reload
    reload
    answers again 7001 -sess_in session.reload
    [ "$server" = nginx ] || grep -q '^Reused, TLSv' again || fail "not resumed: $(cat again)"
    says 2
    eventually certificate_is swapped
    cp wrong.key swap.key
    echo 'key values mismatch' >>expected
    ! run_server command -t >said 2>&1 || fail "-t takes the wrong key"
    [ "$(grep -c emerg said)" = 1 ] || fail "-t: $(cat said)"
    emergs=$(grep -c '\[emerg\]' log)
    kill -HUP "$(cat pid)"
    eventually has_lines log '\[emerg\]' $((emergs + 1))
    says 3
    certificate_is swapped || fail "the wrong key has been taken"
    is_generation || fail "the configuration with the wrong key has been taken"
    [ "$(grep -c '\[emerg\]' log)" = $((emergs + 1)) ] || fail "more than a line of the wrong key"
    cp swapped.key swap.key
    reload
    says 4
    exec 4>&-
    wait $client || fail "the session from before: $(cat held.said)"
}

# ---- Servers of others ----

# through PORT: a megabyte to the server and back
through() {
    : >through.out
    feed through.out all | socat -t 60 - "TCP:$ours:$1" >through.out 2>through.said || fail "$1: $(cat through.said)"
    cmp through.out all || fail "$1: what came back differs"
    eventually has_lines secured.log "^$1 200 $(wc -c <all)/$(wc -c <all) $(wc -c <all)/$(wc -c <all)$"
}

# fails PORT LOG LINE: the session has no server
fails() {
    socat -t 60 -u "TCP:$ours:$1" - >through.out 2>&1
    [ ! -s through.out ] || fail "$1: is served: $(cat through.out)"
    eventually has_lines "$2" "$3"
    eventually has_lines secured.log "^$1 502 0/0 0/0$"
}

gnutls_listens() {
    socat -u /dev/null "TCP:127.0.0.1:$gnutls" 2>/dev/null
}

part_secured() {
    listen=bind=$theirs,fork,reuseaddr,cert=ecdsa.pem,key=ecdsa.key
    begin socat "OPENSSL-LISTEN:7501,$listen,verify=0,openssl-min-proto-version=TLS1.3" EXEC:cat
    begin socat "OPENSSL-LISTEN:7502,$listen,verify=1,cafile=ca.pem,openssl-max-proto-version=TLS1.2" EXEC:cat
    begin socat "OPENSSL-LISTEN:7505,$listen,verify=0,openssl-max-proto-version=TLS1.2" EXEC:cat
    begin socat "TCP-LISTEN:7506,bind=$theirs,fork,reuseaddr" EXEC:'head -c 20'
    for port in 7501 7502 7505 7506; do
        eventually listens $port
    done
    through 7501
    through 7502
    if has gnutls-serv; then
        begin gnutls-serv --echo --crlf --disable-client-cert --port "$gnutls" --x509certfile ecdsa.pem \
            --x509keyfile ecdsa.key
        eventually gnutls_listens
        through 7503
    fi
    answers through 7504
    if [ "$server" = forkbeard ]; then
        answers through 7507 -servername one.test
        eventually has_lines secured.log '^7507 200 11/11 11/11$'
        ! ask through 7508 -servername two.test || fail "a circle: is served"
        eventually has_lines circle.log 'come back to .*:7508: servers lead to each other in a circle'
    fi
    fails 7505 refused.log 'SSL_do_handshake.. failed .* while SSL handshaking to upstream'
    fails 7506 cut.log 'peer closed connection in SSL handshake while SSL handshaking to upstream'
}

# ---- Deaths ----

# processes KIND: their numbers
processes() {
    ps -o pid=,args= --ppid "$(cat pid)" | awk -v kind="$1 process" 'index($0, kind) { print $1 }'
}

part_kill() {
    has "${python:-python3}" || return 0
    # shellcheck disable=SC2046 # a list of words
    quietly python killed 7001 $(processes worker | tr '\n' ,)
    for keeper in $(processes keeper); do
        kill -KILL "$keeper"
    done
    quietly python many 7001 20
}

# ---- A scanner ----

# testssl.sh finds nothing, but that nobody revokes these certificates, or has them in the DNS.
part_scan() {
    has testssl || return 0
    testssl --quiet --color 0 --warnings off --add-ca ca.pem --severity LOW --csvfile scan.csv \
        --ip "$ours" openssl.test:7018 >scan 2>&1
    grep -q '^ Done ' scan || fail "testssl: $(tail -n 20 scan)"
    found=$(grep -E '"(LOW|MEDIUM|HIGH|CRITICAL)"' scan.csv | grep -v -E '^"(cert_revocation|DNS_CAArecord)"')
    [ -z "$found" ] || fail "testssl: $found"
}

# ---- One process ----

part_single() {
    stop
    start off
    clients='openssl python' nth=0
    for part in suites ends choices resumption updates verify refusals proxied many; do
        nth=$((nth + 1))
        ! has_turn $nth 3 || part_$part
    done
    case " $parts " in *" secured "*) through 7501 ;; esac
}
