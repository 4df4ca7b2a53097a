# Maintenance mode with standalone machines that are stopped: they stay on the host, off, until the operator brings them
# back. An exit before the start withdraws the announced work.
# promise: E4
host h1 h2
vm solo on h1
vm other on h1
poll solo
maintenance enter h1 stop
expect solo Scheduled, h1 entering
at 5m   maintenance exit h1
expect solo nothing, h1 open, solo running
maintenance enter h1 stop then reboot
at 25m  expect solo nothing, h1 entered, solo stopped, other stopped, solo on h1
# An owner who starts a machine gets it on another host.
start other
expect other on h2, other running
at 1h   maintenance exit h1 return
expect solo running, solo boots 2, solo nothing, other on h2, h1 open
# Without a return, the machines stay off.
at 2h   maintenance enter h1 stop
at 2h15m expect solo stopped, h1 entered
maintenance exit h1
expect solo stopped, h1 open
start solo
expect solo running, solo on h1
