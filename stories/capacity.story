# A host has CPUs and memory, a machine takes some of them, and no choice of a host gives it more than it has.
# promise: T1
host h1 cpus 8 memory 32GiB
host h2 cpus 8 memory 32GiB
vm solo on h1 cpus 6 memory 8GiB
vm other on h2 cpus 4 memory 8GiB
poll solo
refused vm third on h1 cpus 4 memory 1GiB
refused vm third on h2 cpus 1 memory 30GiB
refused redeploy solo
# A degraded host announces at once that its machines will be moved; without room they wait.
degrade host h1 fails in 10m
expect solo Scheduled
at 15m  expect solo Scheduled, solo on h1
# A deallocated machine takes no room.
deallocate other
at 20m  expect solo nothing, solo on h2
refused start other
# It starts as soon as there is room.
recover host h1
start other
expect other on h1
# A move that happened outside is recorded, whatever the capacity.
move other to h2
expect other on h2
capacity h2 cpus 4
refused vm third on h2 cpus 1
resize solo cpus 1
refused vm third on h2 cpus 1
vm third on h2
