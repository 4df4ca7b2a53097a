# A rollout reports hosts that were worked on: a step that fails counts, and an operator decides how it goes on.
# promise: R2
host h1 h2 h3 h4
scaleset web
instance of web on h1 ud 0
instance of web on h2 ud 1
instance of web on h3 ud 2
poll all
rollout update all with at-once 1
approve web by web_0
at 3s   done host h1 failed does not boot
expect web nothing, rollout paused-by-failures
at 1h   expect web nothing
# The host on which it failed is not tried again.
resume rollout
expect web Scheduled
approve web by web_0
at 1h5s giveup host h2
expect rollout paused-by-failures
resume rollout
approve web by web_0
at 2h   expect web nothing, rollout finished, web_0 boots 1, web_1 boots 1
# Hosts that need attention are not part of another rollout until they are cleared.
refused rollout update h1
clear host h1
clear host h2
rollout update all with stop-after 2
approve web by web_0
at 2h4s done host h1 failed no kernel
expect rollout going
at 3h   expect rollout finished
