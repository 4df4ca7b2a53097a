# Where upgrades are automatic, every instance has a new model at once.
host h1
scaleset web automatic terminate 5m
instance of web on h1 times 3
poll web_0
revise web
expect web_0 model 2, web_1 model 2, web_2 model 2
# One that is about to be deleted has it as well; its announcement stays.
delete web_2
model web terminate 10m
expect web_0 model 3, web_2 model 3
at 4m59s expect web Scheduled
at 5m   expect web Started
# No longer so: a new model waits for somebody.
at 6m   upgrading web manual
model web terminate 15m
expect web_0 model 3, web_1 model 3
delete web_0
at 15m59s expect web Scheduled
at 16m  expect web Started
