# A machine that is moving to a host gets the events announced there: the host waits for it.
# promise: E3
host h1 h2 h3
vm a on h1
vm b on h2
poll all
redeploy a
approve a by a
expect a Started
at 1m   reboot host h2
expect b nothing
at 2m   expect a Scheduled, b Scheduled, a on h2
cancel rollout
# If the host fails meanwhile, a machine that arrives too late is moved elsewhere, too.
redeploy a
approve a by a
at 3m   fail host h3
at 4m   expect a Started, a on h3
at 5m   expect a nothing, a on h1
# And if it is expected to fail, each arriving machine gets an event.
recover host h3
redeploy b
approve b by b
degrade host h3
at 8m   expect b on h3, b Scheduled
