# Work that is held because no host is free continues as soon as one is: here, when its own work is done.
# promise: N2
host h1 h2
vm a on h1
vm b on h2
poll all
update host h2
degrade host h1 fails in 10m
at 10m  expect a Scheduled
at 15m  expect a Scheduled, b Started
at 15m9s expect a Started, b nothing
at 18m  expect a on h2
