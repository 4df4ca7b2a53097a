# A paused rollout announces no further group; the announced group keeps its time.
# promise: R2
host h1 h2 h3
scaleset web
instance of web on h1 ud 0
instance of web on h2 ud 1
instance of web on h3 ud 2
poll all
rollout reboot all
at 1m   pause rollout
expect web Scheduled, rollout paused
at 15m  expect web Started
at 1h   expect web nothing, rollout paused
resume rollout
expect web Scheduled, rollout going
# On request, a group that has not started is withdrawn; its hosts wait again.
at 1h1m pause rollout taking-back
expect web nothing, rollout paused
at 2h   resume rollout
expect web Scheduled
approve web by web_0
at 2h30s expect web Scheduled
approve web by web_0
at 2h1m expect rollout finished, web_0 boots 2, web_1 boots 2, web_2 boots 2
# Nothing is under way that could be resumed.
