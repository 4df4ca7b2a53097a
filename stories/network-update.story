# An update of the network is announced as a Freeze of no length.
# promise: E1, E2
host h1
vm solo on h1
poll solo
update network h1
at 15m  expect solo nothing, solo boots 1
