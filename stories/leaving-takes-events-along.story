# A machine that is deleted, evicted or deallocated takes along every event that names only it.
# promise: E5
host h1 h2
scaleset web
instance of web on h1 ud 0
instance of web on h2 ud 1
instance of web on h2 ud 1
poll web_0
restart web_0
update host h1
expect web Scheduled Scheduled
deallocate web_0
expect web nothing
# Two machines on h2: one that has left keeps its name in the event, and nothing is done to it.
update host h2
expect web Scheduled
delete web_1
expect web Scheduled
approve web by web_2
expect web Started
at 9s   expect web nothing
# A machine that is off and was to be deleted has no one left to warn.
vm solo on h1 terminate 15m
poll solo
delete solo
expect solo Scheduled
deallocate solo
expect solo gone
