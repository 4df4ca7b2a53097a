# An update rolls over many hosts, update domain by update domain: the next is announced when the last one is done.
# promise: E3, R1
host h1 h2 h3 h4 h5 h6
scaleset web
instance of web on h1 ud 0
instance of web on h2 ud 0
instance of web on h3 ud 1
instance of web on h4 ud 1
instance of web on h5 ud 2
instance of web on h6 ud 2
availabilityset db
machine db-0 of db on h1 ud 0
machine db-1 of db on h3 ud 1
machine db-2 of db on h6 ud 2
poll all
update host h1 h2 h3 h4 h5 h6
expect web Scheduled, db Scheduled
at 1m   approve web by web_5
at 2m   approve db by db-2
expect web Started, db Started
# The second domain: no approval.
at 2m9s expect web Scheduled, db Scheduled
at 17m9s expect web Started, db Started
# The third.
at 17m18s expect web Scheduled, db Scheduled
approve web by web_0
approve db by db-0
at 17m27s expect web nothing, db nothing
# Each was in exactly one event.
expect web incarnation 10
