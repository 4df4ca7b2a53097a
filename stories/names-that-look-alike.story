# One name may begin like another, and the same name may stand in two tenants.
# promise: T1
host h1 h2
availabilityset one
machine vm1 of one on h1 ud 0
machine vm10 of one on h2 ud 1
availabilityset two
machine vm1 of two on h1 ud 0
poll all
restart one/vm1
expect one Scheduled, two nothing
approve one by vm10
expect one Started
