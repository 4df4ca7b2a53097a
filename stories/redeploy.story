# Redeploy: a machine goes to another host. Memory and the ephemeral disk are lost; name and update domain stay.
# promise: E1, E2
host h1 h2
availabilityset db
machine db-0 of db on h1 ud 0
machine db-1 of db on h2 ud 1
host h3
poll db-0
redeploy db-0
at 9m59s expect db Scheduled
at 10m  expect db Started
at 12m  expect db nothing
# Not on h2: another update domain of the same set is there.
expect db-0 on h3, db-0 boots 2, db-0 disk 2, db-0 running
# Nor may db-1 go to h3, now that db-0 is there; h1 is free.
redeploy db-1
approve db by db-0
at 20m  expect db-1 on h1
# With nowhere to go, it is refused.
fail host h2
refused redeploy db-1
