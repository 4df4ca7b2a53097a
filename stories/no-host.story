# A machine that must leave its host and has nowhere to go waits until there is somewhere.
# promise: N2
host h1 h2
vm solo on h1
poll solo
degrade host h1 fails in 10m
fail host h2
at 10m  expect solo Scheduled
at 1h   host h3
expect solo Started
at 1h2m expect solo on h3
# A healthy host may also get room from a machine that leaves it.
availabilityset db
machine db-0 of db on h3 ud 0
host h4
machine db-1 of db on h4 ud 1
poll db-0
at 2h   degrade host h3 fails in 10m
at 2h10m expect db Scheduled
at 3h   delete db-1
expect db Started
at 3h2m expect db-0 on h4
