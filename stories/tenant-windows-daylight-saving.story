# A window in a time zone follows the clocks there. Berlin is one hour ahead of UTC, and two from 2026-03-29, 01:00 UTC, on.
# promise: R1
host h1
vm db on h1
windows db sun 03:00-05:00 Europe/Berlin
# Saturday, 2026-03-21. On the next day it opens at 02:00 UTC.
at 1896h poll db
rollout reboot h1
expect db nothing, rollout waits-for-window
at 1910h poll db
at 1921h44m59s expect db nothing
at 1921h45m expect db Scheduled
at 1922h expect db Started
at 1922h1m expect rollout finished
# Saturday, 2026-03-28. In the night, the clocks go from 02:00 to 03:00, which is 01:00 UTC.
at 2064h poll db
rollout reboot h1
expect db nothing, rollout waits-for-window
at 2078h poll db
at 2088h44m59s expect db nothing
at 2088h45m expect db Scheduled
at 2089h expect db Started
at 2089h1m expect rollout finished
# A window that would begin between 02:00 and 03:00 in that night begins at the end of the missing hour: a week later it
# begins at half past two, 00:30 UTC.
windows db sun 02:30-05:00 Europe/Berlin
at 2232h poll db
rollout reboot h1
at 2246h poll db
at 2256h14m59s expect db nothing
at 2256h15m expect db Scheduled
at 2256h30m expect db Started
