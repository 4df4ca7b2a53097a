# With manual upgrades, an instance keeps its model until it is upgraded.
# promise: T5
host h1
scaleset web terminate 5m
instance of web on h1 times 3
poll web_0
vm solo on h1
refused upgrade solo
# A part of the model outside the rules may change, too: an image, a size.
revise web
expect web_0 model 1, web_1 model 1, web_2 model 1
upgrade web_1
expect web_0 model 1, web_1 model 2
instance of web on h1
expect web_3 model 2
at 20h  expect web_0 model 1, web_2 model 1
# Upgrades become automatic: instances with an older model get the latest at once.
model web terminate 10m
upgrading web automatic
expect web_0 model 3, web_1 model 3, web_2 model 3, web_3 model 3
delete web_0
expect web Scheduled
