# Maintenance mode of the host of some instances of a scale set: they leave live, the host is updated, and they return.
# promise: E4
host h1 h2 h3 h4
scaleset web
instance of web on h1 ud 0 times 3
instance of web on h2 ud 1
poll web_0
maintenance enter h1 live then update
expect web Scheduled, h1 entering
# The same wish again changes nothing, and other work on the host is refused.
maintenance enter h1 live then update
refused update host h1
refused instance of web on h1 ud 0
at 2m   approve web by web_1
at 2m5s expect web nothing, h1 entered, web_0 on h3, web_1 on h3, web_2 on h3, web_0 boots 1
# Update domains are kept: planned work on the other instance holds the return.
at 1h   update host h2
at 1h   expect web Scheduled
at 1h   maintenance exit h1 return
expect web Scheduled Scheduled, h1 open
at 1h15m expect web Started Scheduled
at 1h30m expect web nothing, web_0 on h1, web_1 on h1, web_2 on h1, web_2 boots 1
