# With `health machines`, a rollout announces no group until the machines of the last group have polled again.
# promise: R2
host h1 h2 h3 h4 h5
scaleset web
instance of web on h1 ud 0
instance of web on h2 ud 1
instance of web on h3 ud 2
instance of web on h4 ud 3
instance of web on h5 ud 4
poll all
rollout reboot h1 h2 h3 h4 h5 with health machines
# An approval is also a request of web_0 after the announcement: its return is awaited.
approve web by web_0
at 30s  expect web nothing, rollout waits-for-health
at 5m   poll web_1
expect web nothing, rollout waits-for-health
at 6m   poll web_0
expect web Scheduled, rollout going
# A machine that its operator stops holds no rollout.
approve web by web_1
at 7m   expect web nothing, rollout waits-for-health
stop web_1
expect web Scheduled, rollout going
# web_2 has not polled since the announcement: nothing would report its return, and the rollout goes on.
approve web by web_0
at 8m   expect web Scheduled, rollout going
# A resume says that it has been seen.
poll web_3
approve web by web_0
at 9m   expect web nothing, rollout waits-for-health
resume rollout
expect web Scheduled, rollout going
at 1h   expect rollout finished
# Other gates wait for no machine.
rollout reboot h1 h2
approve web by web_0
at 1h1m expect web Scheduled, rollout going
