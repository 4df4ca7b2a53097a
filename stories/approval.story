# An approval counts for all machines of the event, from any machine of the tenant; whole or not at all.
# promise: T3
host h1 h2
scaleset web
instance of web on h1 ud 0 times 2
vm other on h2
poll all
restart web_0
restart web_1
restart other
# Another tenant's event, and one that never was, look alike.
refused approve E1 E3 by web_0
expect web Scheduled Scheduled
refused approve E1 by other
# The same id twice is once; approving again changes nothing.
approve E1 E1 by web_1
expect web Started Scheduled
approve E1 by web_1
expect web incarnation 4
# The owner may approve, too.
approve E2 by owner of web
expect web Started Started
at 30s  expect web nothing, web incarnation 7
# Clients go on approving: for an hour, ids of events that are gone are still good.
at 1h29s approve E1 by web_0
at 1h31s refused approve E1 by web_0
