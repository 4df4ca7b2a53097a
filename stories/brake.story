# A brake holds every start: late, never lost.
# promise: N1, N2
host h1 h2
vm solo on h1
vm quiet on h1
poll solo
restart solo
brake on
at 10m  approve solo by solo
expect solo Scheduled
at 20m  expect solo Scheduled
# Unannounced work waits, too; work without events does not.
restart quiet
expect quiet boots 1
stop quiet
expect quiet stopped
start quiet
# A failed host does not wait for approval.
fail host h1
expect solo Scheduled Started
at 21m  brake off
expect solo Started, quiet boots 4
