# Machines that start to move in one step do not meet where they may not.
# promise: E3
host h1 h2
availabilityset db
machine db-0 of db on h1 ud 0
machine db-1 of db on h2 ud 1
host h3 h4
poll db-0
redeploy db-0
redeploy db-1
approve db by db-0
expect db Started Started
at 2m   expect db-0 on h3, db-1 on h4
