# A live migration with work on the host: the machines leave, the empty host has its step, and no machine returns.
# promise: E1, E2
host h1 h2
vm solo on h1
poll solo
migrate host h1 work kernel 6.12.9
approve solo by solo
at 4s   expect solo Started
# There is no step before the last machine has left.
refused done host h1
at 5s   expect solo nothing, solo on h2, solo boots 1
# The step of a simulated host without machines takes no time, and nobody is told of it.
expect rollout finished
refused done host h1
# A machine that cannot leave: there is no step, and the work on the host has failed.
jam solo
migrate host h2 work kernel 6.12.9
approve solo by solo
at 1m   expect solo nothing, solo on h2, solo boots 1, rollout finished
# The host itself was not touched: it needs no attention.
migrate host h2 work kernel 6.12.9
approve solo by solo
at 2m   expect solo on h1, solo boots 1
