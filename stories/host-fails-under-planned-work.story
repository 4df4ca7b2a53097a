# A host fails while work on it is announced: the work is withdrawn, and the rollout returns when the host is healthy.
# promise: E4
host h1 h2 h3
scaleset web
instance of web on h1 ud 0
instance of web on h3 ud 0
vm solo on h1
poll all
reboot host h1 h3
expect web Scheduled, solo Scheduled
at 1m   fail host h1
# web still has an event for h3; solo only for the failure.
expect web Scheduled Started, solo Started
at 2m   expect web_0 on h2, web_0 boots 2, solo on h2
at 15m30s expect web nothing, web_1 boots 2, web_0 boots 2
at 1h   recover host h1
expect web nothing
# The host got its work, without machines on it.
update host h1
# A machine without a target host is still there when the host is healthy: the rollout returns to it.
host a1 zone 1
host b1 zone 2
vm stays on a1
vm goes on b1
poll all
at 2h   reboot host a1 b1
expect stays Scheduled, goes Scheduled
fail host a1
expect stays Started
at 2h1m expect stays nothing, stays boots 2
at 2h16m expect goes nothing, goes boots 2
recover host a1
expect stays Scheduled
