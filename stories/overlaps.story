# A pending operation cannot be requested twice; delete and eviction replace it.
# promise: E5
host h1 h2
scaleset web terminate 5m
instance of web on h1 times 2
vm cheap on h1 spot delete
poll all
restart web_0
refused restart web_0
refused redeploy web_0
refused reimage web_0
# A delete supersedes it.
delete web_0
expect web Scheduled
refused restart web_0
restart cheap
evict cheap
expect cheap Scheduled
# A machine that is off cannot be restarted; one that has no place on a host cannot be moved either.
stop web_1
refused restart web_1
deallocate web_1
refused redeploy web_1
refused reimage web_1
# Stopping or starting again is already so.
stop web_1
deallocate web_1
start web_1
start web_1
expect web_1 running
