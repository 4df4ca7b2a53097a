# Work on a host includes the host itself: its machines are aside until its step is over.
# promise: E1
host h1 h2
vm solo on h1
availabilityset db
machine db-0 of db on h1
machine db-1 of db on h2
poll all
update host h1
approve solo by solo
# The step waits for all machines of the host.
refused done host h1
approve db by db-0
expect solo Started, db Started
# A step ends by itself, or an operator ends it. The events end when the machines have returned.
at 5s   done host h1
expect solo nothing, db nothing, solo boots 1, db-0 boots 1
refused done host h1
refused giveup host h1
# It is not repeated when its usual time is over.
at 1m   expect solo nothing, rollout finished
# A host without machines has its step at once: nobody is told.
host h3
update host h3
expect solo nothing, db nothing
at 2m   expect rollout finished
