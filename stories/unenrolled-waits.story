# An operator may have tenants that do not listen wait all the same.
# promise: T2
host h1 h2
vm quiet on h1
vm loud on h2
poll loud
set unenrolled waits
restart quiet
expect quiet nothing, quiet boots 1
at 14m59s expect quiet boots 1
at 15m  expect quiet boots 2
# On a shared host, a tenant that does not listen holds nothing up.
set unenrolled runs
vm silent on h2
update host h2
expect loud Scheduled
at 16m  approve loud by loud
expect loud Started
# Not even where such tenants wait for themselves.
set unenrolled waits
at 20m  update host h2
at 21m  approve loud by loud
expect loud Started
