# The process dies at any time: nothing is forgotten, nothing is done twice.
# promise: D1
host h1 h2
vm solo on h1
vm other on h1
poll all
update host h1
crash
approve solo by solo
crash
at 15m  expect solo Started, other Started
crash
expect solo Started
at 15m9s expect solo nothing
restart solo
at 20m  approve solo by solo
crash
at 21m  expect solo boots 2, solo nothing
