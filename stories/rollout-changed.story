# Terms and hosts change while a rollout is in progress; the announced group stays.
# promise: R1
host h1 h2 h3 h4 h5
vm a on h1
vm b on h2
vm c on h3
vm d on h4
vm e on h5
poll all
rollout reboot h1 h2 h3 with at-once 1
expect a Scheduled
# h3 shall not be touched after all, h4 and h5 shall; and two may go together now.
change rollout remove h3 add h4 h5 with at-once 2
refused change rollout remove h1
refused change rollout remove h3
at 1m   approve a by a
at 1m30s expect a nothing, b Scheduled, d Scheduled, e nothing
refused change rollout add h1
approve b by b
approve d by d
at 2m   expect e Scheduled
# Another window holds a group that is already announced.
change rollout with window 12:00-13:00
approve e by e
expect e Scheduled
change rollout with window any
expect e Started
at 3m   expect rollout finished, c boots 1, a boots 2, b boots 2, d boots 2, e boots 2
