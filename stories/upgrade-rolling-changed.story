# Changes in the middle of a rolling upgrade: another model, another pace, an end.
# promise: T5
host h1
scaleset web rolling 25% pause 1h
instance of web on h1 times 4
poll web_0
model web terminate 5m
at 1h   expect web_0 model 2, web_1 model 2, web_2 model 1, web_3 model 1
# Another model begins with the first instance again, after the pause; the model in between is skipped.
at 1h30m model web terminate 10m
expect web_0 model 2, web_1 model 2
at 2h   expect web_0 model 3, web_1 model 2, web_2 model 1
at 3h   expect web_0 model 3, web_1 model 3, web_2 model 1, web_3 model 1
# An instance is upgraded manually: the next batch continues after it.
upgrade web_2
at 4h   expect web_2 model 3, web_3 model 3
# Stopped, and gone on with from where it was: at once.
at 5h   revise web
expect web_0 model 4, web_1 model 3
upgrading web manual
at 9h   expect web_1 model 3
upgrading web rolling 50% pause 2h
expect web_1 model 4, web_2 model 4, web_3 model 3
# A shorter pause holds for the one that is under way.
at 10h  upgrading web rolling 50% pause 30m
expect web_3 model 4
# A deletion that is taken back leaves an instance that had been passed over: it is in a batch of its own.
at 11h  delete web_0
expect web Scheduled
revise web
expect web_1 model 5, web_2 model 5, web_3 model 4, web_0 model 4
at 11h5m cancel E1
at 11h30m expect web_3 model 5, web_0 model 5
# Automatic: no instance waits any more.
revise web
expect web_2 model 5
upgrading web automatic
expect web_0 model 6, web_1 model 6, web_2 model 6, web_3 model 6
