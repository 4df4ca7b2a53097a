# Steps of the wall clock make an event late, never early.
# promise: N4
host h1
vm solo on h1
poll solo
restart solo
at 1m   step clock forward 1d
expect solo Scheduled
at 14m59s expect solo Scheduled
at 15m  expect solo Started
at 20m  restart solo
step clock back 1h
# The notice is over, but NotBefore is still ahead of the wall clock.
at 35m  expect solo Scheduled
at 1h34m59s expect solo Scheduled
at 1h35m expect solo Started
