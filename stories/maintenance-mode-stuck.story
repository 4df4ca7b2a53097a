# A machine that cannot leave: no other host can take it, or its move fails. The host has no step, and the operator
# chooses another way.
# promise: E4, R2
host h1 zone 1
host h2 zone 1
availabilityset db
machine db1 of db on h1 ud 0
machine db2 of db on h2 ud 1
vm solo on h1
poll db1
poll solo
# The only other host of the zone has another update domain of db: nothing is announced in vain.
maintenance enter h1 live then update
expect h1 entering, db nothing, solo nothing, rollout waits-for-room
at 1h   maintenance enter h1 stop
expect db Scheduled, solo Scheduled, h1 entering
at 1h   jam solo
at 1h20m expect h1 incomplete, solo running, db1 stopped
# The remaining machine leaves live; then the step that was asked for at first runs.
maintenance enter h1 live
expect solo Scheduled, h1 entering
at 2h   expect h1 entered, solo on h2, solo boots 1, db1 on h1
fail host h1
refused maintenance enter h1
recover host h1
maintenance exit h1 return
at 3h   expect solo on h1, db1 running, h1 open
