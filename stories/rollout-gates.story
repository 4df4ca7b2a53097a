# Between two groups a rollout pauses, checks the health of hosts, and waits for confirmation, depending on its terms.
# promise: R2
host h1 h2 h3 h4 spare
scaleset web
instance of web on h1 ud 0
instance of web on h2 ud 1
instance of web on h3 ud 2
instance of web on h4 ud 3
poll all
rollout reboot h1 h2 h3 h4 with pause 10m confirm first
approve web by web_0
# The first group is a trial: an operator has to confirm it.
at 30s  expect web nothing, rollout waits-for-confirmation
at 5m   resume rollout
expect rollout rests
at 10m29s expect web nothing
at 10m30s expect web Scheduled
approve web by web_0
# A host that was worked on is unhealthy: the rollout waits until it is healthy.
at 11m  fail host h1
at 15m  expect rollout rests
at 21m  expect web nothing, rollout waits-for-health
at 30m  recover host h1
expect web Scheduled, rollout going
# A resume says that it has been seen.
at 31m  approve web by web_0
degrade host h2
at 45m  expect rollout waits-for-health
resume rollout
at 46m  expect web Scheduled Scheduled, rollout going
at 2h   expect rollout finished
# The terms can ignore health.
recover host h2
rollout reboot h3 h4 with health ignored pause 10m
approve web by web_0
at 2h1m fail host h3
at 2h10m29s expect web nothing, rollout rests
at 2h10m30s expect web Scheduled, rollout going
