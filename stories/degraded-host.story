# A host is expected to fail: each of its machines has days to leave it.
# promise: E2, E4
host h1 h2 h3 h4
scaleset web
instance of web on h1 ud 0 times 3
poll web_0
degrade host h1
expect web Scheduled Scheduled Scheduled
# Already so.
degrade host h1
# Approval moves a machine at once.
at 1h   approve E1 by web_0
expect  web Started Scheduled Scheduled
at 1h2m expect web_0 on h2, web Scheduled Scheduled
# If the owner redeploys first, the event is withdrawn when the machine has left.
at 2h   redeploy web_1
approve E4 by web_1
expect  web Scheduled Scheduled Started
at 2h2m expect web Scheduled, web_1 on h2
# The last one is moved when the time is over.
at 6d23h59m59s expect web Scheduled
at 7d   expect web Started
at 7d2m expect web nothing, web_2 on h2, web_2 disk 2
