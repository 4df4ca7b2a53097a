# Only delete raises Terminate.
# promise: E2, T4
host h1 h2
scaleset web terminate 5m
instance of web on h1 times 2
poll web_0
reimage web_0
stop web_0
start web_0
deallocate web_0
start web_0
expect web nothing, web_0 boots 4
restart web_1
redeploy web_0
expect web Scheduled Scheduled
approve web by web_0
at 5m   expect web nothing
delete web_0
expect web Scheduled
