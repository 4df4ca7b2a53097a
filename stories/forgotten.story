# A forgotten machine leaves its tenant: nothing is done to it, and events that name only it are withdrawn.
# promise: E6, T1
host h1 h2
scaleset web
instance of web on h1 ud 0 times 3
vm solo on h2
poll all
restart web_0
restart solo
expect web Scheduled, solo Scheduled
forget web_0
expect web nothing, web_0 gone
# A standalone machine takes its tenant along.
forget solo
expect solo gone
# Work that names other machines, too, goes on without the forgotten one.
update host h1
forget web_1
expect web Scheduled
at 1m   approve web by web_2
expect  web Started
# Actions in progress have to end first.
refused forget web_2
at 2m   expect web nothing, web_2 boots 1
# A host is forgotten when no machine is on it.
refused forget host h1
forget web_2
forget host h1
forget host h2
remove scaleset web
