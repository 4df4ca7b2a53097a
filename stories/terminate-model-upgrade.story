# A change of the model reaches an instance when it is upgraded.
# promise: T5
host h1
scaleset web
instance of web on h1 times 3
poll web_0
model web terminate 10m
# web_0 still runs the first model: it goes without a word.
delete web_0
expect web_0 gone, web nothing
upgrade web_1
delete web_1
expect web Scheduled
# An announcement never changes, whatever becomes of the model.
model web terminate 5m
upgrade web_1
at 9m59s expect web Scheduled
at 10m  expect web Started
# A new instance has the latest model.
at 11m  instance of web on h1
delete web_3
at 15m59s expect web Scheduled
at 16m  expect web Started
# With automatic upgrades every instance has it at once.
scaleset auto automatic
instance of auto on h1
poll auto_0
model auto terminate 7m
delete auto_0
expect auto Scheduled
# Off again: later deletes are silent.
at 20m  model auto terminate off
instance of auto on h1
delete auto_1
expect auto_1 gone
