# SPDX-License-Identifier: BSD-2-Clause
# Completion of forkbeard(8) for fish.

set -l words status explain upstream certificates events log upgrade certificate

complete -c forkbeard -f
complete -c forkbeard -s h -d 'Show a summary of the options'
complete -c forkbeard -s '?' -d 'Show a summary of the options'
complete -c forkbeard -l help -d 'Show a summary of the options on standard output'
complete -c forkbeard -s v -d 'Show the version'
complete -c forkbeard -l version -d 'Show the version on standard output'
complete -c forkbeard -s V -d 'Show the version and what it was built with'
complete -c forkbeard -s t -d 'Test the configuration'
complete -c forkbeard -s T -d 'Test the configuration and show it'
complete -c forkbeard -s q -d 'Print nothing unless there are mistakes'
complete -c forkbeard -s f -d 'Go on with the events that happen'
complete -c forkbeard -s s -x -a 'stop quit leave reopen reload resume upgrade' -d 'Send a command to the master process'
complete -c forkbeard -s p -x -a '(__fish_complete_directories)' -d 'Look for everything below this directory'
complete -c forkbeard -s e -r -F -d 'Log errors to this file'
complete -c forkbeard -s c -r -F -d 'Read this configuration'
complete -c forkbeard -s g -x -d 'Read these directives before the file'
complete -c forkbeard -l control -r -F -d 'Reach the daemon with this control socket'
complete -c forkbeard -l check -d 'Show problems alone, for a monitoring system'
complete -c forkbeard -l json -d 'Show the status as JSON'
complete -c forkbeard -l timeout -x -d 'Wait no longer for the reply'
complete -c forkbeard -l wait -x -d 'Wait so long for the end of all master processes'
complete -c forkbeard -l self-signed -d 'Make a certificate that is signed by its own key'
complete -c forkbeard -l days -x -d 'Let the certificate expire after so many days'
complete -c forkbeard -l out -x -a '(__fish_complete_directories)' -d 'Write key and certificate there'

complete -c forkbeard -n "not __fish_seen_subcommand_from $words" -a status -d 'Show the status of the running daemon'
complete -c forkbeard -n "not __fish_seen_subcommand_from $words" -a explain -d 'Show the entry of a directive in the manual'
complete -c forkbeard -n "not __fish_seen_subcommand_from $words" -a upstream -d 'Show the servers of upstreams, or change the state of one'
complete -c forkbeard -n "not __fish_seen_subcommand_from $words" -a certificates -d 'Show the certificates in use'
complete -c forkbeard -n "not __fish_seen_subcommand_from $words" -a events -d 'Show the last events of the daemon'
complete -c forkbeard -n "not __fish_seen_subcommand_from $words" -a log -d 'Show, set or take back a level of all error logs'
complete -c forkbeard -n "not __fish_seen_subcommand_from $words" -a upgrade -d 'Show, complete or roll back an upgrade'
complete -c forkbeard -n "not __fish_seen_subcommand_from $words" -a certificate -d 'Make a self-signed certificate'
complete -c forkbeard -n '__fish_seen_subcommand_from explain' -a '(forkbeard explain)' -d directive
complete -c forkbeard -n '__fish_seen_subcommand_from log' -a 'debug info notice warn error crit alert emerg default for'
complete -c forkbeard -n '__fish_seen_subcommand_from upgrade' -a 'status forward back'
complete -c forkbeard -n '__fish_seen_subcommand_from upstream' -a 'up drain down auto'
