# Deletes of the same moment have the same NotBefore: all are approved, or none goes before it.
# promise: T4
host h1
scaleset web terminate 5m
instance of web on h1 times 3
poll web_0
delete web_0
delete web_1
approve E1 by web_0
at 4m59s expect web Scheduled Scheduled
at 5m   expect web Started Started
at 6m   expect web nothing
# An approved delete goes at its own NotBefore in any case, though another still waits.
host h2
instance of web on h2
at 10m  delete web_2
at 12m  model web terminate 15m
upgrade web_3
delete web_3
at 13m  approve E3 by web_2
expect  web Scheduled Scheduled
at 15m  expect web Started Scheduled
# Other events neither wait nor are waited for.
instance of web on h2
restart web_4
approve E5 by web_4
expect  web Started Scheduled Started
# When the one that holds the others up is cancelled, they go.
instance of web on h2
at 20m  delete web_5
approve E6 by web_5
expect  web Scheduled Scheduled
cancel E4
expect  web Started
# A restart without approval does not delay a delete.
at 25m  restart web_4
delete  web_3
approve E8 by web_3
expect  web Scheduled Started
