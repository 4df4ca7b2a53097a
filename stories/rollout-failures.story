# A rollout pauses when an impact fails; resuming it acknowledges the failure.
# promise: R2
host h1 h2 h3 h4
scaleset web
instance of web on h1 ud 0
instance of web on h2 ud 1
instance of web on h3 ud 2
instance of web on h4 ud 3
poll all
jam web_1
rollout reboot all
approve web by web_0
at 30s  approve web by web_0
at 1m   expect web nothing, rollout paused-by-failures, web_1 boots 1
at 1h   expect web nothing
resume rollout
expect web Scheduled
# The host on which it failed is not tried again, unless an operator adds it.
change rollout add h2
refused change rollout add h1
approve web by web_0
at 2h   expect web nothing, rollout finished, web_1 boots 2, web_2 boots 2, web_3 boots 2
# Two may fail here.
jam web_0
jam web_1
jam web_2
rollout reboot all with stop-after 2
at 2h30m expect web Scheduled, rollout going
at 3h   expect web nothing, rollout paused-by-failures
resume rollout
at 4h   expect rollout finished
# And here any number, and the last one may always.
jam web_0
rollout reboot all with stop-after never
at 6h   expect rollout finished, web_3 boots 4
jam web_3
rollout reboot h4
at 7h   expect rollout finished
