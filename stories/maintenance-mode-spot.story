# Maintenance mode with spot machines: they leave by redeploy, the host restarts, and they return. An eviction takes
# a machine that has left along, and the others return without it.
# promise: E4
host h1 h2 h3
scaleset batch spot delete
instance of batch on h1 ud 0 times 2
vm cheap on h1 spot deallocate
poll batch_0
poll cheap
maintenance enter h1 redeploy then reboot
expect h1 entering, batch Scheduled, cheap Scheduled
refused vm other on h1
at 10m  expect batch Started, h1 entering
at 12m  expect batch nothing, h1 entered, batch_0 on h2, batch_0 disk 2, cheap on h2, cheap disk 2
# Nothing happens until the operator wants it.
at 2h   evict batch_1
at 2h   expect h1 entered, batch Scheduled
at 3h   expect batch_1 gone, batch nothing
at 3h   maintenance exit h1 return
expect h1 open, batch Scheduled, cheap Scheduled
at 3h30m expect batch_0 on h1, batch_0 disk 3, cheap on h1, batch nothing
