# A machine that must leave its host and has nowhere to go waits until there is somewhere.
host h1 h2
vm solo on h1
poll solo
degrade host h1 fails in 10m
fail host h2
at 10m  expect solo Scheduled
at 1h   host h3
expect solo Started
at 1h2m expect solo on h3
