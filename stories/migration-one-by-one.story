# Hosts that can only take each other's machines are migrated one by one.
# promise: R1
host h1 h2
vm a on h1
vm b on h2
poll all
migrate host h1 h2
expect a Scheduled, b nothing
# A host that joins does not change that: the next group is announced when this one is done.
host h3
expect a Scheduled, b nothing
at 1m   approve a by a
at 2m   expect a on h2, a Scheduled, b Scheduled
approve a by a
approve b by b
at 3m   expect a on h3, b on h3, a boots 1
