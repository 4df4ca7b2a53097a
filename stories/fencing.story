# A failed host may still run its machines. Two copies of a machine on one disk destroy it: the fence comes first.
# promise: E4
host h1 h2 h3
scaleset web
instance of web on h1 ud 0
vm solo on h1
poll web_0
fencing required
fail host h1
# Everything is held, even what an operator wants at once. solo is not enrolled, and waits as well.
expect web Scheduled, web_0 on h1, solo on h1
refused force E1
refused recover host h1
crash
at 9s   expect web Scheduled, solo on h1, solo boots 1
at 10s  expect web Started, solo on h2
at 1m   expect web nothing, web_0 on h2, web_0 boots 2
recover host h1
# An operator knows that the power is off.
at 2m   fail host h2
expect web Scheduled
at 2m5s fail host h2 fenced
expect web Started
# An owner cannot have a second copy either, but may switch it off.
at 5m   expect solo on h3
fail host h3
deallocate solo
refused start solo
at 5m10s start solo
expect solo on h1
