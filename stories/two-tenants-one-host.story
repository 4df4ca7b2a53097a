# A host is about to be paused. It carries machines of two tenants.
# promise: E3
host h1 h2
scaleset east
instance of east on h1 ud 0
instance of east on h2 ud 1
scaleset west
instance of west on h1 ud 2
poll all

at 0s   update host h1
expect  east Scheduled, west Scheduled
# East is ready at once; the host still waits for west.
at 30s  approve east by east_1
expect  east Scheduled, west Scheduled
at 50s  approve west by west_0
expect  east Started, west Started
at 1m   expect east nothing, west nothing
# Memory was kept.
expect  east_0 boots 1, west_0 boots 1
