# Terminate notification, step by step, as the guide of that name goes: on, longer, upgraded, deleted, approved, too late, not for spot.
# promise: T4
host h1 h2
scaleset web terminate 5m
instance of web on h1 ud 0 times 2
instance of web on h2 ud 1 times 3
# No machine has polled for events yet: an instance is deleted without an event.
delete web_4
expect web nothing, web_4 gone
poll web_0
# Ten minutes from now on; existing instances keep the five until they are upgraded.
model web terminate 10m
upgrade web_1
upgrade web_2
at 1m   delete web_3
expect  web Scheduled
at 5m59s expect web Scheduled
# Without approval it is deleted when its own five minutes are over.
at 6m   expect web Started
at 7m   expect web nothing, web_3 gone
# Two go with the new ten minutes. They are of the same moment: one of them waits for the other.
at 10m  delete web_1
delete  web_2
approve E2 by web_1
expect  web Scheduled Scheduled
# A delete cannot be put off, and other operations are events of their own.
restart web_0
approve E4 by web_0
expect  web Scheduled Scheduled Started
at 12m  approve E3 by web_2
expect  web Started Started
at 13m  expect web nothing, web_1 gone, web_2 gone, web_0 boots 2
# An instance that joins has the latest model.
instance of web on h2 ud 1
at 15m  delete web_5
at 24m59s expect web Scheduled
at 25m  expect web Started
# Spot machines get no event for their deletion.
refused scaleset cheap spot delete terminate 5m
scaleset cheap spot delete
refused model cheap terminate 5m
instance of cheap on h1
poll    cheap_0
delete  cheap_0
expect  cheap nothing, cheap_0 gone
# Off: later deletes are silent, once the instance has that model.
at 30m  model web terminate off
upgrade web_0
delete  web_0
expect  web_0 gone
