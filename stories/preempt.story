# Preempt: a spot machine is evicted after thirty seconds. The policy decides whether its disks stay.
# promise: E1, E2
host h1
vm keep on h1 spot deallocate
vm drop on h1 spot delete
vm firm on h1
poll all
evict keep
evict drop
expect keep Scheduled, drop Scheduled
# A second eviction is already so; a machine that is not spot cannot be evicted.
evict keep
refused evict firm
at 10s  approve keep by keep
expect keep Started
at 15s  expect keep nothing
expect keep deallocated, keep disk 2
at 29s  expect drop Scheduled
at 30s  expect drop Started
at 35s  expect drop gone
# A deallocated machine can be started again.
start keep
expect keep running, keep boots 2
