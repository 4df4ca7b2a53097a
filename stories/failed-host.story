# A host fails: its machines are brought up elsewhere. There is nothing to wait for.
# promise: E2, E4
host h1 h2 h3
scaleset web
instance of web on h1 ud 0
instance of web on h2 ud 1
vm solo on h1
poll web_0
fail host h1
expect web Started, solo nothing
# solo is not enrolled: it was moved without an event.
expect solo on h2
at 30s  expect web nothing
# Not on h2, where another update domain of web is.
expect web_0 on h3, web_0 boots 2, web_0 disk 1
refused update host h1
recover host h1
# The operator may have failures redeploy instead.
set failure redeploy
at 1m   fail host h3
expect web Started
at 3m   expect web_0 on h1, web_0 disk 2
# A machine that was off, and has no place on the failed host any more, is started elsewhere.
deallocate solo
fail host h2
start solo
expect solo on h1, solo running
