# A failed action is reported: the event ends, and the machine is unchanged.
# promise: E1
host h1 h2
vm solo on h1
poll solo
jam solo
redeploy solo
approve solo by solo
at 2m   expect solo nothing, solo on h1, solo boots 1
# The place that was kept for it on the other host is free again.
redeploy solo
approve solo by solo
at 5m   expect solo on h2
remove host h1
refused remove host h2
