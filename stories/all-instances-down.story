# While no machine of a tenant runs, no approval is possible; unless the policy says otherwise, nothing waits.
# promise: N1
host h1 h2
availabilityset db
machine db-0 of db on h1 ud 0
machine db-1 of db on h2 ud 1
poll db-0
stop db-0
update host h1
expect db Scheduled
at 1m   stop db-1
expect db Started
at 2m   expect db nothing
# A machine that is off is not started by a reboot of its host.
reboot host h2
at 3m   expect db-1 stopped, db-1 boots 1
policy db alldown asked
at 4m   update host h1
expect db Scheduled
at 19m  expect db Started
# The last machine that runs may also be deleted, and the policy may change while something waits.
at 30m  start db-1
update host h1
expect db Scheduled
delete db-1
expect db Scheduled
policy db alldown automatic
expect db Started
start db-0
machine db-2 of db on h2 ud 1
at 31m  stop db-0
update host h1
expect db Scheduled
delete db-2
expect db Started
