# A policy approves operations of the owner: straight to Started.
# promise: N1
host h1 h2
availabilityset db
machine db-0 of db on h1 ud 0
machine db-1 of db on h2 ud 1
poll db-0
policy db restart automatic
restart db-0
expect db Started
at 1m   host h3
redeploy db-1
expect db Scheduled
approve db by db-1
at 5m   policy db redeploy automatic
redeploy db-1
expect db Started
# It holds for the owner's own doings only.
at 10m  reboot host h1
expect db Scheduled
# The same for a scale set, for all its placement groups at once.
scaleset web
instance of web on h2
poll web_0
policy web restart automatic
restart web_0
expect web Started
# A policy that is changed while something waits holds for that, too.
vm solo on h2
poll solo
restart solo
expect solo Scheduled
policy solo restart automatic
expect solo Started
