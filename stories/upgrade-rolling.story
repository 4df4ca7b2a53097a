# A rolling upgrade gives a new model to a part of the instances at a time, in the order of their numbers, and rests in between.
# promise: T5
host h1
scaleset web rolling 40% pause 1h terminate 5m
instance of web on h1 times 6
poll web_0
at 10m  model web terminate 10m
# Two fifths of six are three, rounded up.
expect web_0 model 2, web_1 model 2, web_2 model 2
expect web_3 model 1, web_4 model 1, web_5 model 1
# Two of them go meanwhile, as their model says.
delete web_3
approve web by web_3
expect web Started
at 11m  delete web_4
at 16m  expect web_3 gone
# A new instance has the latest model already.
instance of web on h1
expect web_6 model 2
at 1h9m59s expect web_5 model 1
at 1h10m expect web_5 model 2, web_4 gone
# Without a pause, the batches follow each other at once.
upgrading web rolling 20%
revise web
expect web_0 model 3, web_1 model 3, web_2 model 3, web_5 model 3, web_6 model 3
refused upgrading web rolling pause 8d
