# Only nights: a group is announced so that its notice ends in a window, and it starts in one. A story begins on a Thursday.
# promise: R1
host h1 h2 h3 h4
scaleset web
instance of web on h1 ud 0
instance of web on h2 ud 1
instance of web on h3 ud 2
poll all
# Midnight in UTC is one o'clock an hour ahead of it: the night from Wednesday to Thursday is still on, until 00:40 UTC.
rollout reboot h1 h2 h3 with window mon-fri 22:00-01:40 +01:00
expect web Scheduled, rollout going
at 15m30s expect web Scheduled
at 30m30s expect web Started
# The notice of the third would end at 00:46 UTC. It is announced a quarter of an hour before 21:00 UTC.
at 31m  expect web nothing, rollout waits-for-window
at 20h44m59s expect web nothing
at 20h45m expect web Scheduled
# Approved early, it waits for the window all the same: late, never lost.
at 20h46m approve web by web_2
expect web Scheduled
at 20h59m59s expect web Scheduled
at 21h  expect web Started
at 21h30s expect web nothing, rollout finished, web_0 boots 2, web_1 boots 2, web_2 boots 2
# A group that was announced at night and released in the morning waits for the next night.
rollout reboot h1 h2 with window mon-fri 22:00-01:40 +01:00
brake on
at 31h  brake off
expect web Scheduled
at 44h59m59s expect web Scheduled
at 45h  expect web Started
# The last notice of this night would end at 00:41 UTC on Saturday; the next night is Monday's.
at 45h10s pause rollout
at 48h26m resume rollout
expect web nothing, rollout waits-for-window
at 116h poll web_0
at 116h44m59s expect web nothing
at 116h45m expect web Scheduled
# An operator who forces a start does not wait for a window; a host that fails waits for nothing.
force E5
expect web Started
at 117h rollout update h1 h2 with window 12:00-13:00
expect web nothing
fail host h1
expect web Started
at 117h1m expect web_0 boots 4
