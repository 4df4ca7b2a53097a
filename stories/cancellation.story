# The platform may withdraw an event that has not started: it disappears.
# promise: E5
host h1 h2
scaleset web
instance of web on h1 ud 0
instance of web on h2 ud 1
poll web_0
update host h1
at 5m   cancel E1
expect web nothing
at 20m  expect web nothing, web_0 boots 1
restart web_1
approve E2 by web_1
refused cancel E2
