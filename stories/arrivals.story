# A machine that is on its way to a host is told of what is announced there: the host waits for it.
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
# If the host fails meanwhile, whoever comes too late is brought elsewhere, too.
redeploy a
approve a by a
at 3m   fail host h3
at 4m   expect a Started, a on h3
at 5m   expect a nothing, a on h1
# And if it is expected to fail, each that comes is told.
recover host h3
redeploy b
approve b by b
degrade host h3
at 8m   expect b on h3, b Scheduled
