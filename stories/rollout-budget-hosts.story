# At most two hosts at once, though four could go together.
# promise: R1
host h1 h2 h3 h4 h5
vm a on h1
vm b on h2
vm c on h3
vm d on h4
poll all
rollout update all with at-once 2
expect a Scheduled, b Scheduled, c nothing, d nothing
at 1m   approve a by a
approve b by b
at 1m9s expect a nothing, b nothing, c Scheduled, d Scheduled
at 2m   approve c by c
approve d by d
# The last host has no machines: there is no event, and it is done at once.
at 2m9s expect rollout finished
