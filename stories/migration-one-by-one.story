# Hosts that can only take each other's machines are migrated one by one.
host h1 h2
vm a on h1
vm b on h2
poll all
migrate host h1 h2
expect a Scheduled, b nothing
at 1m   approve a by a
at 2m   expect a on h2, a Scheduled, b Scheduled
approve a by a
approve b by b
at 3m   expect a on h1, b on h1, a boots 1
