# An operator may force a start; the record says so.
# promise: N1, N2
host h1
vm solo on h1
poll solo
restart solo
at 10s  force E1
expect solo Started
# Already so.
force E1
# Not while the brake is on.
at 1m   restart solo
brake on
refused force E2
brake off
force E2
expect solo Started
