# Reboot: a machine is restarted on its host. Disks stay, memory is lost.
# promise: E1, E2
host h1 h2
vm solo on h1
poll solo
# By its owner.
restart solo
approve solo by solo
expect solo Started
at 30s  expect solo nothing
expect solo on h1, solo boots 2, solo disk 1
# By the platform, which restarts the host: a quarter of an hour's notice.
at 1m   reboot host h1
at 15m59s expect solo Scheduled
at 16m  expect solo Started
at 17m  expect solo nothing
expect solo on h1, solo boots 3, solo disk 1, solo running
