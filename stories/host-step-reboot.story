# A restart of a host: its machines are stopped, the host is restarted, and its machines are started again, once.
# promise: E1, E2
host h1 h2
vm solo on h1
vm off on h1
poll all
stop off
reboot host h1
approve solo by solo
approve off by off
expect solo Started
at 10s  done host h1
at 5m   expect solo nothing, solo boots 2, solo disk 1, solo on h1, solo running
# A machine that was off stays off.
expect off boots 1, off stopped
# A host that does not come back: its machines are started again where they are.
reboot host h1
approve solo by solo
at 5m10s done host h1 failed no answer
at 10m  expect solo nothing, solo boots 3, solo running
refused reboot host h1
