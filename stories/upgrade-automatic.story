# Where upgrades are automatic, every instance has a new model at once.
# promise: T5
host h1
scaleset web automatic terminate 5m
instance of web on h1 times 3
poll web_0
revise web
expect web_0 model 2, web_1 model 2, web_2 model 2
# An instance that is about to be deleted has it, too; its announcement stays.
delete web_2
model web terminate 10m
expect web_0 model 3, web_2 model 3
at 4m59s expect web Scheduled
at 5m   expect web Started
# No longer automatic: a new model waits for an upgrade.
at 6m   upgrading web manual
model web terminate 15m
expect web_0 model 3, web_1 model 3
delete web_0
at 15m59s expect web Scheduled
at 16m  expect web Started
