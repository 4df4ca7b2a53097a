# Windows of tenants: work on a host starts when a window of each of its tenants is open.
# promise: R1
host h1 h2
vm db on h1
vm mail on h1
vm web on h2
poll all
windows db 02:00-04:00
windows mail sat 12:00-13:00 and 03:00-05:00
rollout reboot h1 h2
# web has no windows: its host goes first.
expect web Scheduled, db nothing, mail nothing
at 15m  expect web Started
# Both are open from three o'clock on: the group is announced a quarter of an hour before.
at 16m  expect web nothing, rollout waits-for-window
at 2h44m59s expect db nothing
at 2h45m expect db Scheduled, mail Scheduled
# Approved early, it waits for the windows.
approve db by db
approve mail by mail
expect db Scheduled, mail Scheduled
at 2h59m59s expect db Scheduled
at 3h   expect db Started, mail Started
at 3h1m expect db nothing, rollout finished, db boots 2, mail boots 2, web boots 2
# A rollout whose windows never meet those of a tenant would wait forever: it is refused.
windows db 12:00-13:00
refused rollout update h1 with window 22:00-06:00
rollout update h2 with window 02:00-06:00
at 4h   expect rollout finished
# The owner does not wait for windows, and neither does a host that is expected to fail.
restart db
approve db by db
expect db Started
at 4h5m degrade host h1
approve db by db
expect db Started
# db has left the degraded host, and its windows are those of its new host. Without windows, work starts at any time.
at 5h   rollout update h2
expect web nothing, rollout waits-for-window
windows db any
expect web Scheduled, db Scheduled
