# No further host: the announced group is withdrawn, started work continues.
# promise: R1
host h1 h2
scaleset web
instance of web on h1 ud 0
instance of web on h2 ud 1
poll web_0
reboot host h1 h2
at 1m   cancel rollout
expect web nothing
reboot host h2 h1
at 2m   approve web by web_1
cancel rollout
expect web Started
at 3m   expect web nothing
at 1h   expect web nothing
expect web_0 boots 1, web_1 boots 2
