# At most a part of a tenant at once, rounded down, but one machine at least.
# promise: R1
host h1 h2 h3 h4 h5 h6 h7 h8
scaleset web
instance of web on h1
instance of web on h2
instance of web on h3
instance of web on h4
instance of web on h5 times 2
availabilityset db
machine db-0 of db on h1
machine db-1 of db on h2
poll all
# Half of web are three of six; half of db is one of two.
rollout reboot h1 h2 h3 h4 h5 with share 50%
expect web Scheduled, db Scheduled
at 1m   approve web by web_0
approve db by db-0
at 1m30s expect web_0 boots 2, web_1 boots 1, web_2 boots 2, web_3 boots 2, db-0 boots 2, db-1 boots 1
at 2m   approve web by web_0
approve db by db-0
# h2 and h5 carry three machines of web.
at 2m30s expect web_1 boots 2, web_4 boots 2, web_5 boots 2, db-1 boots 2, rollout finished
# A host that carries more of a tenant than its share goes alone; otherwise it would wait for ever.
rollout reboot h5 h1 with share 10%
approve web by web_0
at 3m   expect web_4 boots 3, web_5 boots 3, web_0 boots 2
approve web by web_0
approve db by db-0
at 3m30s expect web_0 boots 3, rollout finished
# The planned work of another rollout counts, too.
rollout reboot h1
rollout reboot h2 with share 20%
expect web Scheduled, rollout waits-for-room
approve web by web_0
approve db by db-0
at 4m   expect web Scheduled, rollout going
