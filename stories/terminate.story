# Terminate: an instance is deleted, and leaves its tenant.
# promise: E1, T4
host h1 h2
scaleset web terminate 5m
instance of web on h1 ud 0
instance of web on h2 ud 1
poll web_0
delete web_1
# A second delete is already so.
delete web_1
expect web Scheduled
at 4m59s expect web Scheduled
at 5m   expect web Started
at 5m5s expect web nothing
expect web_1 gone, web_0 running
# A standalone machine with its own profile gets an event, too; its tenant is removed with it.
vm solo on h2 terminate 10m
poll solo
delete solo
approve solo by solo
at 6m   expect solo gone
