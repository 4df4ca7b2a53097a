# Freeze: a machine is paused. Memory, disks and host stay.
# promise: N1, E1, E2
host h1 h2
vm solo on h1
poll solo
update host h1
expect solo Scheduled
at 14m59s expect solo Scheduled
# Without approval it starts when the notice is over.
at 15m  expect solo Started
at 15m8s expect solo Started
at 15m9s expect solo nothing
expect solo on h1, solo boots 1, solo disk 1, solo running
