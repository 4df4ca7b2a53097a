# A host that was expected to fail fails earlier: the events are withdrawn and the failure appears, in one step.
# promise: E4
host h1 h2
scaleset web
instance of web on h1 ud 0 times 2
vm solo on h1
vm quiet on h1
poll web_0
poll solo
degrade host h1 fails in 2h
expect web Scheduled Scheduled, solo Scheduled
# quiet is not enrolled: it is moved at once.
expect quiet on h2
at 1h   fail host h1
expect web Started, solo Started
at 2h   expect web nothing, web_0 on h2, web_1 on h2, solo on h2, web_0 disk 1
# Never less than ten minutes, whatever the operator expects; and not more than seven days.
degrade host h2 fails in 1m
at 2h9m59s expect web Scheduled Scheduled
# A recovered host keeps its machines.
recover host h2
expect web nothing
refused degrade host h2 fails in 8d
refused degrade host h1
recover host h1
