# An operator moved a machine by other means and has that recorded: no event, no impact.
# promise: E6
host h1 h2 h3
host h4 zone 2
scaleset web
instance of web on h1 ud 0 times 2
instance of web on h3 ud 1
vm solo on h2
poll all
move web_0 to h2
expect web nothing, web_0 on h2, web_0 boots 1, web_0 disk 1
# Already so.
move web_0 to h2
# The machines that are on a host now get the event of its work.
update host h2
expect web Scheduled, solo Scheduled
# Planned work refuses the move of a machine that it names, unless the move is forced.
refused move web_0 to h1
move web_0 to h1 force
expect web nothing, solo Scheduled
# A host with announced work takes no machine, because the machine would have missed the event.
refused move web_0 to h2
at 1m   approve solo by solo
at 2m   expect solo nothing
# The rules of placement hold: one update domain per tenant and host, and the zone.
refused move web_0 to h3 force
refused move web_0 to h4 force
# A machine that was moved has left its degraded host.
degrade host h1
expect web Scheduled Scheduled
move web_1 to h2 force
expect web Scheduled, web_1 on h2
# When the host fails, only the other machine is brought up elsewhere.
fail host h1
expect web Started
refused move web_0 to h2 force
at 10m  expect web nothing, web_0 on h2, web_0 boots 2, web_1 boots 1
