# A delete that is approved waits while another delete of the same tenant waits for its approval.
# promise: T4
host h1 h2
scaleset web terminate 10m
instance of web on h1 ud 0 times 2
instance of web on h2 ud 1 times 2
poll web_0
at 0s   delete web_1
at 1m   delete web_2
# The second one is ready first.
at 2m   approve E2 by web_2
expect  web Scheduled Scheduled
at 3m   approve E1 by web_1
expect  web Started Started
at 4m   expect web nothing
expect  web_1 gone, web_2 gone
# The first one never answers: both go when its notice is over.
at 5m   delete web_0
at 6m   delete web_3
at 7m   approve E4 by web_3
expect  web Scheduled Scheduled
at 14m59s expect web Scheduled Scheduled
at 15m  expect web Started Started
