# On one host the machines of a tenant share an update domain: a fleet that breaks this is refused.
# promise: T1
host h1 h2
scaleset web
instance of web on h1 ud 0
refused instance of web on h1 ud 1
instance of web on h2 ud 1
service shop
machine FrontEnd_IN_0 of shop on h1 ud 0
machine BackEnd_IN_0 of shop on h1 ud 0
refused machine Worker_IN_0 of shop on h1 ud 1
# The target host of a moving machine counts, too.
poll all
host h3
redeploy web_0
approve web by web_0
expect web Started
refused instance of web on h3 ud 1
refused redeploy web_1
